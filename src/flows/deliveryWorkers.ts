import { Overloaded } from '../base/fairSemaphore.ts';
import { type DeliverySchedule, OUTBOX_LANE } from '../queue/deliverySchedule.ts';
import { countWaiting, selectDueLanes } from '../store/dueLanes.ts';
import { isUnavailable } from '../store/sql.ts';
import { selectWebhookAccounts } from '../store/webhooks.ts';
import { deliverLane, type LanePorts } from './deliverLane.ts';
import type { LanePlaces } from './lanePlaces.ts';

/** Endpoints that this pod takes from the schedule at a time, less those it has; and what it takes in any case, to find
 * those of other accounts behind the many of one. */
const LANES_MAX = 256;
const TAKE_MIN = 16;
/** How often the schedule is asked when nobody wakes us, and told again what Postgres knows. */
const POLL_MS = 100;
const SWEEP_MS = 5_000;
/** Waiting endpoints of which a sweep tells; the next one goes on behind them. */
const SWEEP_LANES = 1_000;
/** A turn that failed, or for which there was no room, is tried again after this. */
const FAILED_RETRY_MS = 1_000;
/** A backlog is counted up to this, and spoken of in the log when it is larger than that. */
const BACKLOG_MAX = 10_000;
const LONG_BACKLOG = 1_000;
/** The accounts of so many endpoints are remembered. */
const ACCOUNTS_MAX = 100_000;

export interface DeliveryPorts extends Omit<LanePorts, 'isStopping' | 'hasPlace'> {
  readonly places: LanePlaces;
  readonly schedule: DeliverySchedule;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  readonly onSweep: (backlog: { waiting: number; oldestDueMs: number }, durationMs: number) => void;
  /** Told that deliveries wait in the outbox to be made. */
  readonly onOutboxFilled: () => void;
}

/** An endpoint that this pod has taken from the schedule. */
interface Turn {
  /** Whether something woke it since the lane was last looked at. */
  isWoken: boolean;
  ended: Promise<void>;
}

/** The lanes of this pod: takes endpoints that are due from the schedule and gives each a turn, many side by side. */
export class DeliveryWorkers {
  readonly #ports: DeliveryPorts;
  readonly #turns = new Map<number, Turn>();
  /** By endpoint; it never changes. */
  readonly #accounts = new Map<number, number>();
  #isTaking = false;
  #isPoked = false;
  #timers: NodeJS.Timeout[] = [];
  #sweeping: Promise<void> | null = null;
  #sweptTo = 0;
  /** Of the endpoints swept so far, in this round of sweeps. */
  #oldestDueMs = 0;
  #isStopping = false;
  #failing = false;

  constructor(ports: DeliveryPorts) {
    this.#ports = ports;
  }

  start(): void {
    this.#sweepOnce();
    this.#timers = [setInterval(() => this.poke(), POLL_MS), setInterval(() => this.#sweepOnce(), SWEEP_MS)];
  }

  /** Begins no further attempt, leaves to others what waits for a place, and waits for attempts in flight: ten seconds at most. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const timer of this.#timers) clearInterval(timer);
    await this.#ports.schedule.addAll(
      [...this.#turns.keys()].map((webhookId) => ({ webhookId, dueInMs: 0 })),
    );
    await Promise.all([this.#sweeping, ...[...this.#turns.values()].map(({ ended }) => ended)]);
  }

  /** Looks for endpoints that are due; and once more, if it is looking already: it may have looked too early. */
  poke(): void {
    if (this.#isStopping) return;
    this.#isPoked = true;
    if (this.#isTaking) return;
    this.#isTaking = true;
    void this.#takeWhilePoked().finally(() => {
      this.#isTaking = false;
    });
  }

  async #takeWhilePoked(): Promise<void> {
    while (this.#isPoked && !this.#isStopping) {
      this.#isPoked = false;
      await this.#take();
    }
  }

  /** Never rejects. */
  async #take(): Promise<void> {
    const { schedule, places, log, onOutboxFilled } = this.#ports;
    const taken = await schedule.take(Math.max(TAKE_MIN, LANES_MAX - places.size));
    if (taken.includes(OUTBOX_LANE)) onOutboxFilled();
    const fresh = taken.filter((webhookId) => {
      if (webhookId === OUTBOX_LANE) return false;
      const turn = this.#turns.get(webhookId);
      if (turn !== undefined) turn.isWoken = true;
      return turn === undefined;
    });
    try {
      await this.#learnAccounts(fresh);
    } catch (error) {
      log.warn(
        isUnavailable(error) ? {} : { err: error },
        'the accounts of endpoints cannot be read; trying again',
      );
      return schedule.addAll(fresh.map((webhookId) => ({ webhookId, dueInMs: FAILED_RETRY_MS })));
    }
    // This pod begins no more: whoever looks next may have it.
    if (this.#isStopping) return schedule.addAll(fresh.map((webhookId) => ({ webhookId, dueInMs: 0 })));
    for (const webhookId of fresh) {
      const accountId = this.#accounts.get(webhookId);
      if (accountId === undefined) continue; // gone, and so is what waited there
      const turn: Turn = { isWoken: false, ended: Promise.resolve() };
      this.#turns.set(webhookId, turn);
      turn.ended = this.#run(webhookId, accountId, turn);
    }
  }

  async #learnAccounts(webhookIds: readonly number[]): Promise<void> {
    if (this.#accounts.size > ACCOUNTS_MAX) this.#accounts.clear();
    const unknown = webhookIds.filter((webhookId) => !this.#accounts.has(webhookId));
    if (unknown.length === 0) return;
    const known = await selectWebhookAccounts(this.#ports.sql, unknown);
    for (const { webhookId, accountId } of known) this.#accounts.set(webhookId, accountId);
  }

  /** Never rejects: what fails is tried again, by whoever takes it from the schedule. */
  async #run(webhookId: number, accountId: number, turn: Turn): Promise<void> {
    const { schedule, log } = this.#ports;
    let againInMs: number | null = FAILED_RETRY_MS;
    try {
      againInMs = await this.#runInPlace(webhookId, accountId, turn);
      if (turn.isWoken) againInMs = 0;
    } catch (error) {
      if (!(error instanceof Overloaded)) {
        const fields = isUnavailable(error) ? {} : { err: error };
        log.warn({ webhook_id: webhookId, ...fields }, 'a turn of deliveries failed; trying again');
      }
    }
    this.#turns.delete(webhookId);
    if (againInMs !== null) await schedule.add(webhookId, againInMs);
    if (againInMs === 0) this.poke();
  }

  async #runInPlace(webhookId: number, accountId: number, turn: Turn): Promise<number | null> {
    const { places, desk, send } = this.#ports;
    const place = await places.enter(webhookId, accountId);
    // Whatever woke it before a look at the lane is seen by that look.
    const looking = <T>(look: () => Promise<T>): Promise<T> => {
      turn.isWoken = false;
      return look();
    };
    try {
      return await deliverLane(
        {
          ...this.#ports,
          desk: {
            open: (id) => looking(() => desk.open(id)),
            advance: (move) => looking(() => desk.advance(move)),
          },
          send: (request) => place.attempt(() => send(request)),
          hasPlace: () => place.isHeld,
          isStopping: () => this.#isStopping,
        },
        webhookId,
      );
    } finally {
      place.leave();
    }
  }

  /** A sweep that Postgres keeps waiting is not joined by others. */
  #sweepOnce(): void {
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = null;
    });
  }

  async #sweep(): Promise<void> {
    const { sql, schedule, log, onSweep } = this.#ports;
    const startedAtMs = performance.now();
    try {
      const { lanes, nextAfterId, oldestDueMs } = await selectDueLanes(sql, this.#sweptTo, SWEEP_LANES);
      await schedule.addAll(lanes);
      this.#oldestDueMs = Math.max(this.#sweptTo === 0 ? 0 : this.#oldestDueMs, oldestDueMs);
      this.#sweptTo = nextAfterId;
      const backlog = { waiting: await countWaiting(sql, BACKLOG_MAX), oldestDueMs: this.#oldestDueMs };
      onSweep(backlog, performance.now() - startedAtMs);
      if (backlog.waiting > LONG_BACKLOG) log.info(backlog, 'deliveries waiting');
      this.#failing = false;
    } catch (error) {
      if (!this.#failing)
        log.warn(isUnavailable(error) ? {} : { err: error }, 'the delivery schedule cannot be rebuilt');
      this.#failing = true;
    }
    this.poke();
  }
}
