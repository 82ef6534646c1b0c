/** Work that is done when it is woken, and from `start` on also every so often; one run at a time. */
export class RepeatedWork {
  readonly #run: (stopped: AbortSignal) => Promise<void>;
  readonly #onFailure: (error: unknown) => void;
  readonly #stopped = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | null = null;
  #isWoken = false;
  #isFailing = false;

  /**
   * @param run is to end early once `stopped`
   * @param onFailure is called with the first error of several in a row; the next run tries again
   */
  constructor(run: (stopped: AbortSignal) => Promise<void>, onFailure: (error: unknown) => void) {
    this.#run = run;
    this.#onFailure = onFailure;
  }

  start(everyMs: number): void {
    this.#timer = setInterval(() => {
      if (this.#running === null) this.wake();
    }, everyMs);
    this.wake();
  }

  /** Runs it now. If it is running, it runs once more after that: it may have looked too early. */
  wake(): void {
    this.#isWoken = true;
    if (this.#stopped.signal.aborted) return;
    this.#running ??= this.#runWhileWoken().finally(() => {
      this.#running = null;
    });
  }

  /** Begins no further run. */
  end(): void {
    this.#stopped.abort();
    clearInterval(this.#timer);
  }

  /** The same, and waits for the present run. */
  async stop(): Promise<void> {
    this.end();
    await this.#running;
  }

  async #runWhileWoken(): Promise<void> {
    const { signal } = this.#stopped;
    while (this.#isWoken && !signal.aborted) {
      this.#isWoken = false;
      try {
        await this.#run(signal);
        this.#isFailing = false;
      } catch (error) {
        if (!this.#isFailing) this.#onFailure(error);
        this.#isFailing = true;
      }
    }
  }
}
