import { MINUTE_MS } from '../lib/time.ts';
import type { PointsSeen } from './cursors.ts';

/** A row, read from the newest backwards. */
export interface WalkedRow {
  /** Of the transaction that stored it. */
  readonly xid: number;
  /** NaN: it was not sent by a device. */
  readonly receivedAtMs: number;
  /** 1: it came late, 0: in time; NaN: it was not sent by a device. */
  readonly late: number;
}

/** Longer than any transaction of points stays open. */
const TRANSACTION_MAX_MS = 10 * MINUTE_MS;

/**
 * Walks over the rows of one device from the newest backwards and says which of them one snapshot sees and another does not.
 *
 * A device stores points in time in the order of their times, each transaction after the one before has ended. So behind the
 * newest one that `seen` sees there is none that it does not see. Where `seen` lacks the newest transactions, there may be
 * one: it got its id while the transaction of that row was open, so it began at most so much earlier as a transaction may last.
 *
 * Late points have no such order. They are left out here.
 */
export class PointWalk {
  readonly #seen: PointsSeen;
  readonly #upTo: PointsSeen;
  /** Points received before this time were seen. */
  #untilMs: number;

  /** `fromMs`: what was received earlier was seen. */
  constructor(seen: PointsSeen, upTo: PointsSeen, fromMs: number) {
    this.#seen = seen;
    this.#upTo = upTo;
    this.#untilMs = fromMs;
  }

  /** Whether the next row is wanted; `end`: neither it is, nor any behind it. */
  next({ xid, receivedAtMs, late }: WalkedRow): boolean | 'end' {
    if (late !== 0 || Number.isNaN(receivedAtMs)) return false;
    if (receivedAtMs < this.#untilMs) return 'end';
    if (this.#seen.snapshot.sees(xid)) {
      if (this.#seen.isWhole) return 'end';
      this.#untilMs = Math.max(this.#untilMs, receivedAtMs - TRANSACTION_MAX_MS);
      return false;
    }
    return this.#upTo.snapshot.sees(xid);
  }
}
