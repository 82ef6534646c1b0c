import { writeProbe } from '../changelog/pods.sql.ts';
import { DeadlineExceeded, withDeadline } from '../lib/time.ts';
import type { Sql } from '../postgres/sql.ts';
import { type Unavailability, unavailability } from '../postgres/sqlErrors.ts';

/**
 * Waiting is counted in ticks of this process. Time in which the process itself did not run (it was stopped, or busy
 * with something else) is one tick, so it does not count as a missing reply.
 */
const TICK_MS = 250;
const UNRESPONSIVE_TICKS = 8;
/** After this the query is given up, so that the next one can use another connection. */
const GIVE_UP_TICKS = 40;

/** Knows whether Postgres replies, from the queries that are awaited through it. */
export class ReplyMonitor {
  #isUnresponsive = false;

  /** True after two seconds without a reply, until there is one. Meanwhile it makes no sense to wait for Postgres. */
  get isUnresponsive(): boolean {
    return this.#isUnresponsive;
  }

  /** Awaits the reply to a query, for ten seconds at most; then rejects with DeadlineExceeded. */
  readonly awaitReply = <T>(reply: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      let ticks = 0;
      let isOver = false;
      const ticking = setInterval(() => {
        ticks++;
        // The reply may wait in a socket: sockets are read once before this tick counts.
        setImmediate(check);
      }, TICK_MS);
      const end = (): void => {
        clearInterval(ticking);
        isOver = true;
      };
      const check = (): void => {
        if (isOver || ticks < UNRESPONSIVE_TICKS) return;
        this.#isUnresponsive = true;
        if (ticks < GIVE_UP_TICKS) return;
        end();
        reject(new DeadlineExceeded('Postgres did not answer'));
      };
      const noteReply = (): void => {
        // A reply to a query that was given up says nothing about the present one.
        if (!isOver) this.#isUnresponsive = false;
        end();
      };
      reply.finally(noteReply).then(resolve, reject);
    });
}

/** A write that takes longer counts as not taken. */
const ANSWER_MS = 2_000;
/** For this long one answer is given to everybody who asks. */
const KEPT_MS = 1_000;
/** For this long it is told to those who do not wait for another: balancers ask more often. */
const TOLD_MS = 30_000;

/** Tries whether Postgres takes writes, when somebody asks and at most once a second. */
export class WriteTrial {
  readonly #sql: Sql;
  readonly #podId: string;
  /** The write that is tried; another begins only when it has ended. */
  #running: { readonly sinceMs: number; readonly ended: Promise<Unavailability | null> } | null = null;
  #last: { readonly at: number; readonly trouble: Unavailability | null } | null = null;

  constructor(sql: Sql, podId: string) {
    this.#sql = sql;
    this.#podId = podId;
  }

  /** Why writes are not taken, within two seconds; null when they are. */
  async trouble(): Promise<Unavailability | null> {
    if (this.#last !== null && performance.now() - this.#last.at < KEPT_MS) return this.#last.trouble;
    this.#running ??= { sinceMs: performance.now(), ended: this.#try() };
    return withDeadline(this.#running.ended, ANSWER_MS, 'a write').catch(troubleOf);
  }

  /** Why the last write was not taken, at once. Another is tried for the next call; only `trouble` shows its defects. */
  lastTrouble(): Unavailability | null {
    this.trouble().catch(() => undefined);
    const nowMs = performance.now();
    if (this.#running !== null && nowMs - this.#running.sinceMs > ANSWER_MS) return 'no_answer';
    return this.#last !== null && nowMs - this.#last.at < TOLD_MS ? this.#last.trouble : null;
  }

  async #try(): Promise<Unavailability | null> {
    try {
      const trouble = await writeProbe(this.#sql, this.#podId).then(() => null, troubleOf);
      this.#last = { at: performance.now(), trouble };
      return trouble;
    } finally {
      this.#running = null;
    }
  }
}

function troubleOf(error: unknown): Unavailability {
  const trouble = unavailability(error);
  if (trouble === null) throw error;
  return trouble;
}
