/** Buckets are this much wider than the one before, so a percentile is right within that. */
const GROWTH = 1.01;
const SMALLEST_MS = 0.0001;
const LARGEST_MS = 100_000;
const BUCKETS = Math.ceil(Math.log(LARGEST_MS / SMALLEST_MS) / Math.log(GROWTH)) + 1;

/** Durations counted in buckets: any number of them in constant room. Counts can be sent and merged. */
export class Latencies {
  readonly counts: number[];
  #total = 0;

  constructor(counts: readonly number[] = []) {
    this.counts = Array.from({ length: BUCKETS }, (_, bucket) => counts[bucket] ?? 0);
    for (const count of this.counts) this.#total += count;
  }

  static of(durationsMs: readonly number[]): Latencies {
    const latencies = new Latencies();
    for (const ms of durationsMs) latencies.add(ms);
    return latencies;
  }

  add(ms: number): void {
    const bucket = ms <= SMALLEST_MS ? 0 : Math.ceil(Math.log(ms / SMALLEST_MS) / Math.log(GROWTH));
    const index = Math.min(bucket, BUCKETS - 1);
    this.counts[index] = (this.counts[index] as number) + 1;
    this.#total++;
  }

  merge(counts: readonly number[]): void {
    counts.forEach((count, bucket) => {
      this.counts[bucket] = (this.counts[bucket] as number) + count;
      this.#total += count;
    });
  }

  /** The duration in ms that `share` (0 to 1) of all did not exceed; NaN when there were none. */
  percentile(share: number): number {
    if (this.#total === 0) return Number.NaN;
    let left = Math.max(1, Math.ceil(share * this.#total));
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      left -= this.counts[bucket] as number;
      if (left <= 0) return SMALLEST_MS * GROWTH ** bucket;
    }
    return LARGEST_MS;
  }

  percentiles(): { p50Ms: number; p975Ms: number; p99Ms: number } {
    const [p50Ms, p975Ms, p99Ms] = [this.percentile(0.5), this.percentile(0.975), this.percentile(0.99)];
    return { p50Ms, p975Ms, p99Ms };
  }
}

/** The middle value, or the mean of the two in the middle. NaN without values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
