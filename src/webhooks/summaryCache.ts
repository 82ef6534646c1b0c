import type { Sql } from '../postgres/sql.ts';
import { countDeliveries } from './deliveries.sql.ts';
import { type DeliverySummary, SUMMARY_WINDOW_HOURS, summarize } from './summary.ts';

/** A summary of fewer deliveries than this is not cached. */
const UNCACHED_MAX = 10_000;
/** Postgres counts about a thousand in a millisecond, so summaries of one account take at most a tenth of a connection. */
const CACHED_MS_PER_DELIVERY = 0.01;
/** Summaries in the cache. Beyond this the oldest is dropped. */
const CACHED_MAX = 1_000;

interface CachedSummary {
  readonly summary: Promise<DeliverySummary>;
  /** Infinity while it is being read. */
  untilMs: number;
}

/**
 * Summaries of deliveries. Counting a million deliveries takes a second, so an answer is cached for a time that grows
 * with its cost. Calls during the count share its result.
 */
export class SummaryCache {
  readonly #nowMs: () => number;
  readonly #count: typeof countDeliveries;
  readonly #cached = new Map<number, CachedSummary>();

  /** @param nowMs a clock that is never set */
  constructor(nowMs: () => number = () => performance.now(), count = countDeliveries) {
    this.#nowMs = nowMs;
    this.#count = count;
  }

  /** `sql`: the share of this account. Rejects when Postgres cannot be asked. */
  of(sql: Sql, accountId: number): Promise<DeliverySummary> {
    const cached = this.#cached.get(accountId);
    if (cached !== undefined && this.#nowMs() < cached.untilMs) return cached.summary;
    return this.#read(sql, accountId);
  }

  #read(sql: Sql, accountId: number): Promise<DeliverySummary> {
    const summary = this.#count(sql, accountId, SUMMARY_WINDOW_HOURS).then(summarize);
    const entry: CachedSummary = { summary, untilMs: Number.POSITIVE_INFINITY };
    this.#cached.delete(accountId);
    this.#cached.set(accountId, entry);
    const [oldest] = this.#cached.keys();
    if (this.#cached.size > CACHED_MAX && oldest !== undefined) this.#cached.delete(oldest);
    summary.then(
      ({ total }) => {
        if (total < UNCACHED_MAX) this.#forget(accountId, entry);
        else entry.untilMs = this.#nowMs() + total * CACHED_MS_PER_DELIVERY;
      },
      () => this.#forget(accountId, entry), // those who wait get the error; the next call reads anew
    );
    return summary;
  }

  #forget(accountId: number, entry: CachedSummary): void {
    if (this.#cached.get(accountId) === entry) this.#cached.delete(accountId);
  }
}
