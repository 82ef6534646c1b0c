import type { DeliveryStatus } from './delivery/transition.ts';

/** A summary covers this many hours before now. */
export const SUMMARY_WINDOW_HOURS = 24;

/** Deliveries of these hours, as counted by the store. */
export interface DeliveryCounts {
  /** A status without deliveries may be missing. */
  readonly byStatus: Readonly<Partial<Record<DeliveryStatus, number>>>;
  /** The attempts of all these deliveries together. */
  readonly attempts: number;
  /** How many deliveries took how long in their last attempt, in any order. */
  readonly durations: readonly { readonly durationMs: number; readonly count: number }[];
}

export interface DeliverySummary {
  readonly total: number;
  readonly delivered: number;
  readonly failed: number;
  readonly exhausted: number;
  /** With the requeued ones. */
  readonly pending: number;
  /** delivered / (delivered + exhausted), 0 to 1; null when there is neither. */
  readonly successRate: number | null;
  readonly attempts: number;
  /** Nearest-rank percentiles; null when nothing was sent. */
  readonly durationMs: {
    readonly p50: number | null;
    readonly p95: number | null;
    readonly p99: number | null;
  };
}

export function summarize({ byStatus, attempts, durations }: DeliveryCounts): DeliverySummary {
  const { delivered = 0, failed = 0, exhausted = 0, pending = 0, requeued = 0 } = byStatus;
  const finished = delivered + exhausted;
  const ascending = durations.toSorted((a, b) => a.durationMs - b.durationMs);
  return {
    total: finished + failed + pending + requeued,
    delivered,
    failed,
    exhausted,
    pending: pending + requeued,
    successRate: finished === 0 ? null : delivered / finished,
    attempts,
    durationMs: {
      p50: percentile(ascending, 50),
      p95: percentile(ascending, 95),
      p99: percentile(ascending, 99),
    },
  };
}

/** The smallest duration that at least `percent` of the deliveries did not exceed. */
export function percentile(ascending: DeliveryCounts['durations'], percent: number): number | null {
  const total = ascending.reduce((sum, { count }) => sum + count, 0);
  const rank = Math.ceil((percent * total) / 100);
  let seen = 0;
  for (const { durationMs, count } of ascending) {
    seen += count;
    if (count > 0 && seen >= rank) return durationMs;
  }
  return null;
}
