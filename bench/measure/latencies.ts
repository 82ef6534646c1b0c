import { build, decodeFromCompressedBase64, encodeIntoCompressedBase64 } from 'hdr-histogram-js';

const NS_PER_MS = 1e6;
const LARGEST_NS = 1e11;
const BITS = 64;

/** Durations up to 100 s in an HDR histogram of nanoseconds: any number of them in constant room, each right within 1 %. */
export class Latencies {
  readonly #histogram = build({
    highestTrackableValue: LARGEST_NS,
    numberOfSignificantValueDigits: 2,
    bitBucketSize: BITS,
  });

  /** `encoded`: those that another one has counted. */
  constructor(encoded?: string) {
    if (encoded !== undefined) this.merge(encoded);
  }

  static of(durationsMs: readonly number[]): Latencies {
    const latencies = new Latencies();
    for (const ms of durationsMs) latencies.add(ms);
    return latencies;
  }

  add(ms: number): void {
    this.#histogram.recordValue(Math.min(LARGEST_NS, Math.max(0, Math.ceil(ms * NS_PER_MS))));
  }

  merge(encoded: string): void {
    this.#histogram.add(decodeFromCompressedBase64(encoded, BITS));
  }

  /** All of them in the compressed form that HdrHistogram has in every language, as base64. */
  encoded(): string {
    return encodeIntoCompressedBase64(this.#histogram);
  }

  /** The duration in ms that `share` (0 to 1) of all did not exceed; NaN when there were none. */
  percentile(share: number): number {
    if (this.#histogram.totalCount === 0) return Number.NaN;
    return this.#histogram.getValueAtPercentile(100 * share) / NS_PER_MS;
  }

  percentiles(): { p50Ms: number; p99Ms: number; p999Ms: number } {
    const [p50Ms, p99Ms, p999Ms] = [this.percentile(0.5), this.percentile(0.99), this.percentile(0.999)];
    return { p50Ms, p99Ms, p999Ms };
  }
}

/** The middle value, or the mean of the two in the middle. NaN without values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
