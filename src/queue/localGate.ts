import { FixedWindows } from './fixedWindows.ts';
import {
  type Gate,
  type GateOptions,
  type GateRequest,
  type GateVerdict,
  HOUR_MS,
  LIMITED,
  MINUTE_MS,
  PASS,
} from './gate.ts';

/** Windows kept per limit: about 8 MB when full. With twice as many, the table grows in steps of 5 ms. */
const MAX_TRACKED = 50_000;

/**
 * The gate of a single process: answers at once and allocates nothing for a caller it knows. Versions are never
 * stale here, because only this process writes.
 */
export class LocalGate implements Gate {
  readonly #ipMinute: FixedWindows<string>;
  readonly #keyMinute: FixedWindows<number>;
  readonly #keyHour: FixedWindows<number>;

  constructor({ limits, minuteMs = MINUTE_MS, hourMs = HOUR_MS }: GateOptions) {
    this.#ipMinute = new FixedWindows(limits.ipMinute, minuteMs, MAX_TRACKED);
    this.#keyMinute = new FixedWindows(limits.keyMinute, minuteMs, MAX_TRACKED);
    this.#keyHour = new FixedWindows(limits.keyHour, hourMs, MAX_TRACKED);
  }

  admit({ ip, keyId, refundIp }: GateRequest, nowMs: number): GateVerdict {
    if (ip !== null && this.#ipMinute.isFull(ip, nowMs)) return LIMITED.ip_minute;
    if (keyId !== null) {
      const refusal = this.#refusalOf(keyId, nowMs);
      if (refusal !== null) {
        if (refundIp !== null) this.#ipMinute.refund(refundIp, nowMs);
        return refusal;
      }
      this.#keyMinute.charge(keyId, nowMs);
      this.#keyHour.charge(keyId, nowMs);
    }
    if (ip !== null) this.#ipMinute.charge(ip, nowMs);
    return PASS;
  }

  #refusalOf(keyId: number, nowMs: number): GateVerdict | null {
    if (this.#keyMinute.isFull(keyId, nowMs)) return LIMITED.key_minute;
    if (this.#keyHour.isFull(keyId, nowMs)) return LIMITED.key_hour;
    return null;
  }
}
