/** Lets so many pieces of work run side by side, so many more wait for their turn, and turns the rest away. */
export class Turnstile {
  readonly #parallel: number;
  readonly #maxWaiting: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(parallel: number, maxWaiting: number) {
    this.#parallel = parallel;
    this.#maxWaiting = maxWaiting;
  }

  /** What `work` resolves to, when its turn has come; null, without it being begun, when too many wait already. */
  async run<T>(work: () => Promise<T>): Promise<T | null> {
    if (this.#running >= this.#parallel) {
      if (this.#waiting.length >= this.#maxWaiting) return null;
      // Whoever ends hands its place on, so that nobody slips in between.
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#running++;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
