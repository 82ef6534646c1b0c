/** Calls within this time of the last action become one more action. */
const QUIET_MS = 20;

/** Acts at once on the first call. All calls within the next 20 ms become one action at the end of that time. */
export class Throttle {
  readonly #act: () => void;
  #timer: NodeJS.Timeout | null = null;
  #isCalledAgain = false;
  #isClosed = false;

  constructor(act: () => void) {
    this.#act = act;
  }

  call(): void {
    if (this.#isClosed) return;
    if (this.#timer !== null) {
      this.#isCalledAgain = true;
      return;
    }
    this.#isCalledAgain = false;
    this.#timer = setTimeout(() => this.#endQuiet(), QUIET_MS);
    this.#act();
  }

  /** No action follows, not even for calls that were made already. */
  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #endQuiet(): void {
    this.#timer = null;
    if (this.#isCalledAgain) this.call();
  }
}
