import type { Steps } from './workTurns.ts';

/** How long a step lasts before others have their turn. */
const STEP_MS = 0.25;
/** A step that seems to last longer was interrupted: another program had the processor. */
const LONGEST_STEP_MS = 4;
/** Pieces of work between two looks at the clock, while they are short. A look costs as much as a short piece. */
const PIECES_PER_LOOK = 4;

/**
 * Ends the steps of a computation by the clock, however long its pieces of work take. A loop asks after every piece that
 * may take long: `if (pace.isDue()) yield* pace.pause()`.
 */
export class Pace {
  #stepFromMs = performance.now();
  #lookedAtMs = this.#stepFromMs;
  #untilLook = 1;
  #workedMs = 0;

  /** Must be called when the computation resumes after anything other than its own pauses. */
  begin(): void {
    this.#stepFromMs = performance.now();
    this.#lookedAtMs = this.#stepFromMs;
    this.#untilLook = 1;
  }

  /** True when the step has lasted long enough. */
  isDue(): boolean {
    if (--this.#untilLook > 0) return false;
    const nowMs = performance.now();
    const areShort = (nowMs - this.#lookedAtMs) * PIECES_PER_LOOK < STEP_MS;
    this.#untilLook = areShort ? PIECES_PER_LOOK : 1;
    this.#lookedAtMs = nowMs;
    return nowMs - this.#stepFromMs >= STEP_MS;
  }

  /** Lets others have their turn. */
  *pause(): Steps<void> {
    this.#workedMs += workedSince(this.#stepFromMs);
    yield;
    this.begin();
  }

  /** How long the computation has worked, without its pauses. */
  get workedMs(): number {
    return this.#workedMs + workedSince(this.#stepFromMs);
  }
}

/** How long a step that began at `fromMs`, by performance.now(), has worked. */
export function workedSince(fromMs: number): number {
  return Math.min(performance.now() - fromMs, LONGEST_STEP_MS);
}
