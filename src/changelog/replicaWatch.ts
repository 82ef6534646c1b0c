import { setTimeout as sleep } from 'node:timers/promises';
import { RepeatedWork } from '../lib/repeatedWork.ts';
import { withDeadline } from '../lib/time.ts';
import type { ReplicaConnections } from '../postgres/connections.ts';
import { NO_REPLICA } from '../postgres/hosts.ts';
import type { Query, Sql } from '../postgres/sql.ts';
import { errorFields, PostgresUnreachable } from '../postgres/sqlErrors.ts';
import { selectLogPlace } from './logPlace.sql.ts';
import { type LogPlace, ReplicaLag, type Standing, standingOf } from './logPlace.ts';

/**
 * Whether the replica is used, or why not. `away`: it does not answer. `unknown`: the primary does not say how far it is. The
 * others are those of a standing.
 */
export type ReplicaState = 'serving' | 'away' | 'unknown' | Exclude<Standing, 'level'>;

export const REPLICA_STATES: readonly ReplicaState[] = [
  'serving',
  'behind',
  'away',
  'no_replica',
  'other_cluster',
  'other_history',
  'unknown',
];

const LOOK_MS = 1_000;
/** A server that takes longer to say how far it is does not answer. */
const ANSWER_LIMIT_MS = 2_000;
/** A replica that is further behind is reported, and left for another. */
const LATE_MS = 2_000;
/** How long a read waits for the replica to come level. One that takes longer is not used until it was level again. */
const REPLAY_WAIT_MS = 200;
const PAUSE_MIN_MS = 2;
const PAUSE_MAX_MS = 32;

interface WatchPorts {
  readonly replica: Pick<ReplicaConnections, 'probes' | 'hosts'>;
  readonly places: Pick<SharedPlaces, 'read'>;
  readonly podId: string;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/**
 * Looks every second whether the replica is level with the primary, and closes all connections to one that must not be
 * used.
 */
export class ReplicaWatch {
  readonly #ports: WatchPorts;
  readonly #lag = new ReplicaLag();
  readonly #looks: RepeatedWork;
  #state: ReplicaState = 'unknown';
  /** What was logged last. */
  #said: ReplicaState = 'unknown';

  constructor(ports: WatchPorts) {
    this.#ports = ports;
    this.#looks = new RepeatedWork(
      () => this.#look(),
      (error) => ports.log.warn({ err: error }, 'the replica cannot be looked at; trying again'),
    );
  }

  get state(): ReplicaState {
    return this.#state;
  }

  /** How long the replica has been behind, in milliseconds. */
  get lagMs(): number {
    return this.#lag.lagMs(performance.now());
  }

  start(): void {
    this.#looks.start(LOOK_MS);
  }

  stop(): Promise<void> {
    return this.#looks.stop();
  }

  /** Stops using the replica, because a read found it in this state, and checks it again at once. */
  doubt(state: ReplicaState): void {
    this.#state = state;
    this.#looks.wake();
  }

  async #look(): Promise<void> {
    const { replica, places, podId } = this.#ports;
    const atMs = performance.now();
    let primary: LogPlace;
    try {
      primary = await places.read();
    } catch (error) {
      this.#become('unknown', error);
      return;
    }
    try {
      const level = awaitLevel(replica.probes, podId, primary);
      const { standing, walBytes } = await withDeadline(level, ANSWER_LIMIT_MS, 'the replica');
      if (standing === 'level') this.#lag.level(primary.walBytes, atMs, performance.now() - atMs);
      else this.#lag.behind(primary.walBytes, atMs, standing === 'behind' ? walBytes : null);
      this.#become(standing === 'level' ? 'serving' : standing, null);
    } catch (error) {
      this.#lag.behind(primary.walBytes, atMs, null);
      const isNone = error instanceof PostgresUnreachable && error.code === NO_REPLICA;
      this.#become(isNone ? 'no_replica' : 'away', error);
    }
  }

  #become(state: ReplicaState, error: unknown): void {
    const { log, replica } = this.#ports;
    const { hosts } = replica;
    this.#state = state;
    const isLate = this.lagMs > LATE_MS;
    // What waits for an answer is asked elsewhere then. One that is only behind may give the answers that it has begun.
    if (state !== 'serving' && state !== 'unknown' && (state !== 'behind' || (isLate && hosts.areSeveral)))
      hosts.leave();
    if (state === this.#said || (state === 'behind' && !isLate)) return;
    this.#said = state;
    if (state === 'serving') log.info({}, 'reads are answered by the replica');
    else
      log.warn(
        { state, ...(error === null ? {} : errorFields(error)) },
        'the replica is not used; the primary answers',
      );
  }
}

/** How a server stands to a place of the primary, when it is level or has been waited for. */
export async function awaitLevel(
  server: Query,
  podId: string,
  primary: LogPlace,
): Promise<{ readonly standing: Standing; readonly walBytes: number }> {
  const untilMs = performance.now() + REPLAY_WAIT_MS;
  for (let pauseMs = PAUSE_MIN_MS; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MAX_MS)) {
    const place = await selectLogPlace(server, podId);
    const standing = standingOf(place, primary);
    // A report may be replayed while the statement runs, which then looks like another history: ask again.
    const mayChange = standing === 'behind' || standing === 'other_history';
    if (!mayChange || performance.now() + pauseMs > untilMs) return { standing, walBytes: place.walBytes };
    await sleep(pauseMs);
  }
}

/** Asks the primary for its place, once for all who want to know it at the same time. */
export class SharedPlaces {
  readonly #sql: Sql;
  readonly #podId: string;
  #running: Promise<unknown> = Promise.resolve();
  /** The one that begins after the one that runs. */
  #next: Promise<LogPlace> | null = null;

  constructor(sql: Sql, podId: string) {
    this.#sql = sql;
    this.#podId = podId;
  }

  /** A place in the log after everything that was acknowledged before the call. Rejects when the primary does not say it. */
  read(): Promise<LogPlace> {
    if (this.#next !== null) return this.#next;
    const ask = (): Promise<LogPlace> => {
      this.#running = next;
      this.#next = null;
      return withDeadline(selectLogPlace(this.#sql, this.#podId), ANSWER_LIMIT_MS, 'the primary');
    };
    // One that runs may have been answered before what this caller has written.
    const next = this.#running.then(ask, ask);
    this.#next = next;
    return next;
  }
}
