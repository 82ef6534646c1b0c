import { withDeadline } from '../lib/deadline.ts';
import type { Sql } from '../postgres/sql.ts';
import { type Unavailability, unavailability } from '../postgres/sqlErrors.ts';
import { writeProbe } from './pods.sql.ts';

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

  /** What the last write came to, at once. Another is tried for who asks next; its defects show where it is waited for. */
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
