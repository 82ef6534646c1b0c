import type { Pace } from '../lib/pace.ts';

/** How much processor time the evaluation of a batch may take, in milliseconds. */
export interface EvaluationTimes {
  /** Of one device, and of all devices of one world: so much, and so much more for each of their points. */
  readonly baseMs: number;
  readonly perPointMs: number;
  /** Of all devices. */
  readonly ofBatchMs: number;
  /** True when others have waited for the batch for long enough, however little of it was done. */
  isOverdue(): boolean;
}

export const UNLIMITED: EvaluationTimes = {
  baseMs: Number.POSITIVE_INFINITY,
  perPointMs: 0,
  ofBatchMs: Number.POSITIVE_INFINITY,
  isOverdue: () => false,
};

/** What the devices of a world have used. */
interface Share {
  workedMs: number;
  points: number;
}

/** Divides the time of a batch among worlds and devices, so that none of them uses up what the others need. */
export class EvaluationTime {
  readonly #pace: Pace;
  readonly #times: EvaluationTimes;
  readonly #byWorld = new Map<number, Share>();
  #beganMs = 0;
  #deviceLimitMs = 0;

  constructor(pace: Pace, times: EvaluationTimes) {
    this.#pace = pace;
    this.#times = times;
  }

  /** Whether no further device of the world is to be evaluated. */
  isUsedUp(worldId: number): boolean {
    const { ofBatchMs } = this.#times;
    if (this.#pace.workedMs > ofBatchMs || this.#times.isOverdue()) return true;
    const share = this.#byWorld.get(worldId);
    return share !== undefined && share.workedMs > this.#limitMs(share.points);
  }

  /** A device with so many points is evaluated from here on. */
  begin(points: number): void {
    this.#beganMs = this.#pace.workedMs;
    this.#deviceLimitMs = this.#limitMs(points);
  }

  /** Whether the device has used more than it may. True for a moment is true from then on. */
  isSpent(): boolean {
    return this.#pace.workedMs - this.#beganMs > this.#deviceLimitMs || this.#times.isOverdue();
  }

  end(worldId: number, points: number): void {
    const share = this.#byWorld.get(worldId) ?? { workedMs: 0, points: 0 };
    share.workedMs += this.#pace.workedMs - this.#beganMs;
    share.points += points;
    this.#byWorld.set(worldId, share);
  }

  #limitMs(points: number): number {
    return this.#times.baseMs + this.#times.perPointMs * points;
  }
}
