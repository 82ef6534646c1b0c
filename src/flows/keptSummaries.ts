import { type DeliverySummary, SUMMARY_WINDOW_HOURS, summarize } from '../delivery/summary.ts';
import { countDeliveries } from '../store/deliveries.ts';
import type { Sql } from '../store/sql.ts';

/** A summary of fewer deliveries is read anew for every call. */
const FEW = 10_000;
/** Postgres counts about a thousand in a millisecond; so a tenth of one connection at most goes into an account. */
const KEPT_MS_PER_DELIVERY = 0.01;
/** Accounts whose answers are kept; beyond it the oldest goes. */
const KEPT_MAX = 1_000;

interface Kept {
  readonly summary: Promise<DeliverySummary>;
  /** Infinity while it is being read. */
  untilMs: number;
}

/**
 * Summaries of deliveries. Every delivery of a day is counted, a second for a million, so who asks again and again is
 * given one answer for a while that grows with its cost; who asks while it is read waits for the same one.
 */
export class KeptSummaries {
  readonly #nowMs: () => number;
  readonly #count: typeof countDeliveries;
  readonly #kept = new Map<number, Kept>();

  /** @param nowMs a clock that is never set */
  constructor(nowMs: () => number = () => performance.now(), count = countDeliveries) {
    this.#nowMs = nowMs;
    this.#count = count;
  }

  /** `sql`: the share of this account. Rejects when Postgres cannot be asked. */
  of(sql: Sql, accountId: number): Promise<DeliverySummary> {
    const kept = this.#kept.get(accountId);
    if (kept !== undefined && this.#nowMs() < kept.untilMs) return kept.summary;
    return this.#read(sql, accountId);
  }

  #read(sql: Sql, accountId: number): Promise<DeliverySummary> {
    const summary = this.#count(sql, accountId, SUMMARY_WINDOW_HOURS).then(summarize);
    const entry: Kept = { summary, untilMs: Number.POSITIVE_INFINITY };
    this.#kept.delete(accountId);
    this.#kept.set(accountId, entry);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest);
    summary.then(
      ({ total }) => {
        if (total < FEW) this.#forget(accountId, entry);
        else entry.untilMs = this.#nowMs() + total * KEPT_MS_PER_DELIVERY;
      },
      () => this.#forget(accountId, entry), // told to those who wait for it; the next asks anew
    );
    return summary;
  }

  #forget(accountId: number, entry: Kept): void {
    if (this.#kept.get(accountId) === entry) this.#kept.delete(accountId);
  }
}
