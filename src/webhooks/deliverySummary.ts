import type { Sql } from '../postgres/sql.ts';
import { countDeliveries, type DeliveryCounts } from './deliveries.sql.ts';

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
      () => this.#forget(accountId, entry), // those who wait get the error; the next call reads again
    );
    return summary;
  }

  #forget(accountId: number, entry: CachedSummary): void {
    if (this.#cached.get(accountId) === entry) this.#cached.delete(accountId);
  }
}

/** A summary covers this many hours before now. */
export const SUMMARY_WINDOW_HOURS = 24;

export type DeliverySummary = ReturnType<typeof summarize>;

/** What the API answers. Pending ones include the requeued; percentiles are by nearest rank. */
export function summarize({ byStatus, attempts, durations }: DeliveryCounts) {
  const { delivered = 0, failed = 0, exhausted = 0, pending = 0, requeued = 0 } = byStatus;
  const finished = delivered + exhausted;
  const ascending = durations.toSorted((a, b) => a.durationMs - b.durationMs);
  return {
    window_hours: SUMMARY_WINDOW_HOURS,
    total: finished + failed + pending + requeued,
    delivered,
    failed,
    exhausted,
    pending: pending + requeued,
    success_rate: finished === 0 ? null : delivered / finished,
    attempts,
    duration_ms: {
      p50: percentile(ascending, 50),
      p95: percentile(ascending, 95),
      p99: percentile(ascending, 99),
    },
  };
}

/** The smallest duration that at least `percent` of the deliveries did not exceed. */
function percentile(ascending: DeliveryCounts['durations'], percent: number): number | null {
  const total = ascending.reduce((sum, { count }) => sum + count, 0);
  const rank = Math.ceil((percent * total) / 100);
  let seen = 0;
  for (const { durationMs, count } of ascending) {
    seen += count;
    if (count > 0 && seen >= rank) return durationMs;
  }
  return null;
}
