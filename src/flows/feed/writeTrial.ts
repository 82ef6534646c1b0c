import { withDeadline } from '../../base/deadline.ts';
import { writeProbe } from '../../store/feed/pods.ts';
import type { Sql } from '../../store/sql/sql.ts';
import { type Unavailability, unavailability } from '../../store/sql/sqlErrors.ts';

/** A write that takes longer counts as not taken. */
const ANSWER_MS = 2_000;
/** For this long one answer is given to everybody who asks. */
const KEPT_MS = 1_000;

/** Tries whether Postgres takes writes, when somebody asks and at most once a second. */
export class WriteTrial {
  readonly #sql: Sql;
  readonly #podId: string;
  /** The write that is tried; another begins only when it has ended. */
  #running: Promise<Unavailability | null> | null = null;
  #last: { readonly at: number; readonly trouble: Unavailability | null } | null = null;

  constructor(sql: Sql, podId: string) {
    this.#sql = sql;
    this.#podId = podId;
  }

  /** Why writes are not taken, within two seconds; null when they are. */
  async trouble(): Promise<Unavailability | null> {
    if (this.#last !== null && performance.now() - this.#last.at < KEPT_MS) return this.#last.trouble;
    this.#running ??= this.#try();
    return withDeadline(this.#running, ANSWER_MS, 'a write').catch(troubleOf);
  }

  async #try(): Promise<Unavailability | null> {
    const trouble = await writeProbe(this.#sql, this.#podId).then(() => null, troubleOf);
    this.#last = { at: performance.now(), trouble };
    this.#running = null;
    return trouble;
  }
}

function troubleOf(error: unknown): Unavailability {
  const trouble = unavailability(error);
  if (trouble === null) throw error;
  return trouble;
}
