import { invariant } from '../base/invariant.ts';
import { ADMISSION, type AdmissionRules, admissionArguments, admissionVerdict } from './admissionScript.ts';
import {
  type Gate,
  type GateOptions,
  type GateRequest,
  type GateVerdict,
  HOUR_MS,
  MINUTE_MS,
  UNVERIFIED,
} from './gate.ts';
import { LocalGate } from './localGate.ts';
import type { RedisKeys } from './redisKeys.ts';
import type { RedisPort } from './redisPort.ts';

export interface RedisGateOptions extends GateOptions {
  /**
   * Resolves when memory holds everything that was committed before the call. Asked after each new connection: a
   * Redis that came back may have forgotten the versions it confirmed (restart from a snapshot, failover to a
   * replica), so until then it cannot vouch for them. A rejection is reported, and the next call asks again.
   */
  readonly catchUp: () => Promise<void>;
  readonly onCatchUpFailed: (error: unknown) => void;
}

/** Requests sent in one run of the script: Redis does nothing else for about half a millisecond. */
const BATCH_MAX = 128;
/** Requests waiting for an answer; those beyond go without Redis, as if it were lost. */
const IN_FLIGHT_MAX = 16_384;

interface Waiting {
  /** What is sent: the caller's request, or the part of it that can be judged without trusting the versions. */
  readonly request: GateRequest;
  readonly original: GateRequest;
  readonly nowMs: number;
  readonly resolve: (verdict: GateVerdict) => void;
}

/**
 * The gate of several processes: limits and versions in Redis, one round trip for all calls of an event loop turn.
 * While Redis is lost, limits hold per process and versions are 'unverified'.
 *
 * Not rate-limiter-flexible: a refused call must cost nothing of the other limits, and limits and versions must be
 * one round trip; both take one script that reads everything before it charges anything.
 */
export class RedisGate implements Gate {
  readonly #port: RedisPort;
  readonly #names: RedisKeys;
  readonly #options: RedisGateOptions;
  readonly #rules: AdmissionRules;
  readonly #fallback: LocalGate;
  #batch: Waiting[] = [];
  #inFlight = 0;
  #trustedSession = -1;
  #askedSession = -1;

  constructor(port: RedisPort, names: RedisKeys, options: RedisGateOptions) {
    const { limits, minuteMs = MINUTE_MS, hourMs = HOUR_MS } = options;
    this.#port = port;
    this.#names = names;
    this.#options = options;
    this.#fallback = new LocalGate(options);
    this.#rules = {
      ipMinute: { limit: limits.ipMinute, lengthMs: minuteMs },
      keyMinute: { limit: limits.keyMinute, lengthMs: minuteMs },
      keyHour: { limit: limits.keyHour, lengthMs: hourMs },
    };
  }

  admit(original: GateRequest, nowMs: number): GateVerdict | Promise<GateVerdict> {
    invariant(original.worldIds.length === original.versions.length, 'a version for each world');
    if (!this.#port.isUsable || this.#inFlight >= IN_FLIGHT_MAX) return this.#admitAlone(original, nowMs);
    const request = this.#isTrusted() ? original : withoutVersions(original);
    return new Promise((resolve) => {
      this.#inFlight++;
      // At the end of this turn every socket that had something to say has been read: one batch for all of them.
      if (this.#batch.push({ request, original, nowMs, resolve }) === 1) setImmediate(() => this.#flush());
    });
  }

  #flush(): void {
    const batch = this.#batch;
    this.#batch = [];
    for (let i = 0; i < batch.length; i += BATCH_MAX) void this.#send(batch.slice(i, i + BATCH_MAX));
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    const { keys, args } = admissionArguments(
      batch.map(({ request }) => request),
      this.#names,
      this.#rules,
    );
    const answer = await this.#port.run(ADMISSION, keys, args);
    this.#inFlight -= batch.length;
    const replies = answer.ok ? (answer.value as readonly unknown[]) : null;
    for (const [i, { request, original, nowMs, resolve }] of batch.entries()) {
      if (replies === null) resolve(this.#admitAlone(original, nowMs));
      else resolve(verdictFor(original, request, admissionVerdict(replies[i], request)));
    }
  }

  #admitAlone(original: GateRequest, nowMs: number): GateVerdict {
    const request = withoutVersions(original);
    return verdictFor(original, request, this.#fallback.admit(request, nowMs));
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

/** The part of a request that needs no versions: while they are unknown, only the IP limit can be judged. */
function withoutVersions(request: GateRequest): GateRequest {
  if (request.verified || request.worldIds.length === 0) return request;
  return { ...request, keyId: null, refundIp: null, worldIds: [], versions: [] };
}

function verdictFor(original: GateRequest, judged: GateRequest, verdict: GateVerdict): GateVerdict {
  return verdict.kind === 'pass' && judged !== original ? UNVERIFIED : verdict;
}
