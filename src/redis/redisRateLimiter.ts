import { HOUR_MS, MINUTE_MS } from '../lib/durations.ts';
import { invariant } from '../lib/invariant.ts';
import { LocalRateLimiter } from './localRateLimiter.ts';
import {
  type LimitRequest,
  type LimitVerdict,
  type RateLimiter,
  type RateLimiterOptions,
  UNVERIFIED,
} from './rateLimiter.ts';
import {
  RATE_LIMIT_SCRIPT,
  type RateLimitRules,
  rateLimitArguments,
  rateLimitVerdict,
} from './rateLimitScript.ts';
import type { RedisKeys } from './redisKeys.ts';
import type { RedisPort } from './redisPort.ts';

export interface RedisRateLimiterOptions extends RateLimiterOptions {
  /**
   * Resolves when memory holds everything that was committed before the call. Called after each new connection: Redis
   * may have forgotten versions that it confirmed before (restart from a snapshot, failover to a replica), so its
   * versions are not trusted until then. A rejection is reported, and the next check calls again.
   */
  readonly catchUp: () => Promise<void>;
  readonly onCatchUpFailed: (error: unknown) => void;
}

/** Requests of one run of the script, which keeps Redis busy for about half a millisecond. */
const BATCH_MAX = 128;
/** Requests that wait for an answer. Further ones are checked without Redis, as if it were lost. */
const IN_FLIGHT_MAX = 16_384;

interface Waiting {
  /** What is sent: the caller's request, or the part of it that can be checked without trusting the versions. */
  readonly request: LimitRequest;
  readonly original: LimitRequest;
  readonly nowMs: number;
  readonly resolve: (verdict: LimitVerdict) => void;
}

/**
 * The rate limiter of several processes: limits and versions in Redis, with one round trip for all calls of an event
 * loop turn. While Redis is lost, each process counts for itself and versions are 'unverified'.
 *
 * Why not rate-limiter-flexible: a limited call must not be charged to any other limit, and limits and versions must
 * take one round trip. Both need one script that reads everything before it charges anything.
 */
export class RedisRateLimiter implements RateLimiter {
  readonly #port: RedisPort;
  readonly #names: RedisKeys;
  readonly #options: RedisRateLimiterOptions;
  readonly #rules: RateLimitRules;
  readonly #fallback: LocalRateLimiter;
  #batch: Waiting[] = [];
  #inFlight = 0;
  #trustedSession = -1;
  #askedSession = -1;

  constructor(port: RedisPort, names: RedisKeys, options: RedisRateLimiterOptions) {
    const { limits, minuteMs = MINUTE_MS, hourMs = HOUR_MS } = options;
    this.#port = port;
    this.#names = names;
    this.#options = options;
    this.#fallback = new LocalRateLimiter(options);
    this.#rules = {
      ipMinute: { limit: limits.ipMinute, lengthMs: minuteMs },
      keyMinute: { limit: limits.keyMinute, lengthMs: minuteMs },
      keyHour: { limit: limits.keyHour, lengthMs: hourMs },
    };
  }

  check(original: LimitRequest, nowMs: number): LimitVerdict | Promise<LimitVerdict> {
    invariant(original.worldIds.length === original.versions.length, 'a version for each world');
    if (!this.#port.isUsable || this.#inFlight >= IN_FLIGHT_MAX) return this.#checkAlone(original, nowMs);
    const request = this.#isTrusted() ? original : withoutVersions(original);
    return new Promise((resolve) => {
      this.#inFlight++;
      // At the end of this turn every readable socket has been read: one batch for all of their calls.
      if (this.#batch.push({ request, original, nowMs, resolve }) === 1) setImmediate(() => this.#flush());
    });
  }

  #flush(): void {
    const batch = this.#batch;
    this.#batch = [];
    for (let i = 0; i < batch.length; i += BATCH_MAX) void this.#send(batch.slice(i, i + BATCH_MAX));
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    const { keys, args } = rateLimitArguments(
      batch.map(({ request }) => request),
      this.#names,
      this.#rules,
    );
    const answer = await this.#port.run(RATE_LIMIT_SCRIPT, keys, args);
    this.#inFlight -= batch.length;
    const replies = answer.ok ? (answer.value as readonly unknown[]) : null;
    for (const [i, { request, original, nowMs, resolve }] of batch.entries()) {
      if (replies === null) resolve(this.#checkAlone(original, nowMs));
      else resolve(verdictFor(original, request, rateLimitVerdict(replies[i], request)));
    }
  }

  #checkAlone(original: LimitRequest, nowMs: number): LimitVerdict {
    const request = withoutVersions(original);
    return verdictFor(original, request, this.#fallback.check(request, nowMs));
  }

  #isTrusted(): boolean {
    const session = this.#port.session;
    if (this.#askedSession !== session) {
      this.#askedSession = session;
      this.#options.catchUp().then(
        () => {
          this.#trustedSession = Math.max(this.#trustedSession, session);
        },
        (error: unknown) => {
          if (this.#askedSession === session) this.#askedSession = -1;
          this.#options.onCatchUpFailed(error);
        },
      );
    }
    return this.#trustedSession === session;
  }
}

/** The part of a request that needs no versions. While they are unknown, only the IP limit can be checked. */
function withoutVersions(request: LimitRequest): LimitRequest {
  if (request.verified || request.worldIds.length === 0) return request;
  return { ...request, keyId: null, refundIp: null, worldIds: [], versions: [] };
}

function verdictFor(original: LimitRequest, sent: LimitRequest, verdict: LimitVerdict): LimitVerdict {
  return verdict.kind === 'pass' && sent !== original ? UNVERIFIED : verdict;
}
