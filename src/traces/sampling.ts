import type { RemoteParent } from './traceparent.ts';

/** Which calls are recorded: the samplers of OpenTelemetry by the names that `OTEL_TRACES_SAMPLER` has for them. */
export interface SamplingRule {
  /** The share of those that begin a trace. */
  readonly ratio: number;
  /** The flag of the caller's trace decides whether its spans are recorded. */
  readonly isParentBased: boolean;
}

export const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** `ratio` is for the samplers that take one. */
export function samplingRule(sampler: (typeof SAMPLERS)[number], ratio: number): SamplingRule {
  const isParentBased = sampler.startsWith('parentbased_');
  if (sampler.endsWith('always_on')) return { ratio: 1, isParentBased };
  return { ratio: sampler.endsWith('always_off') ? 0 : ratio, isParentBased };
}

/**
 * How much of the end of a trace id is used, which is random (W3C Trace Context, level 2): as much as a number holds
 * exactly.
 */
const RANDOM_HEX_CHARS = 13;

/** True when a span of somebody else's trace is recorded. */
export function isSampled({ ratio, isParentBased }: SamplingRule, parent: RemoteParent): boolean {
  if (isParentBased) return parent.isSampled;
  return Number.parseInt(parent.traceId.slice(-RANDOM_HEX_CHARS), 16) < ratio * 16 ** RANDOM_HEX_CHARS;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

export interface TokenLimits {
  readonly perSecond: number;
  readonly burst: number;
  /** Keys that are remembered. Beyond that, all are forgotten and start again. */
  readonly keysMax: number;
}

/** Lets each key do something so often. */
export class TokenBuckets {
  readonly #limits: TokenLimits;
  readonly #buckets = new Map<string | number, Bucket>();

  constructor(limits: TokenLimits) {
    this.#limits = limits;
  }

  /** True when the key had a token left, which it then has no more. `nowMs` never falls. */
  take(key: string | number, nowMs: number): boolean {
    const { perSecond, burst, keysMax } = this.#limits;
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      if (this.#buckets.size >= keysMax) this.#buckets.clear();
      bucket = { tokens: burst, atMs: nowMs };
      this.#buckets.set(key, bucket);
    }
    bucket.tokens = Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) * perSecond) / 1_000);
    bucket.atMs = nowMs;
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }
}
