/** The part of a frame of 1/60 s (not a whole number of ms) that work may use: enough for 10 000 changes a second. */
const PART_MS = 1.2;
const FRAME_MS = 17;

/** Leaves the rest of each frame to drawing: work that has used up its part waits for the next one. */
export class FramePace {
  #frameStartMs = 0;
  #workStartMs = 0;
  #usedMs = 0;

  /** Must be called when work begins, or resumes after waiting for something else. */
  begin(): void {
    this.#workStartMs = performance.now();
  }

  /** True when the running work should pause: see `wait`. */
  get isUsedUp(): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#frameStartMs >= FRAME_MS) {
      this.#frameStartMs = nowMs;
      this.#usedMs = 0;
    }
    this.#usedMs += nowMs - this.#workStartMs;
    this.#workStartMs = nowMs;
    return this.#usedMs >= PART_MS;
  }

  async wait(): Promise<void> {
    const restMs = this.#frameStartMs + FRAME_MS - performance.now();
    await new Promise((resolve) => setTimeout(resolve, restMs));
    this.begin();
  }
}
