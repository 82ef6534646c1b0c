/** Work that runs every `everyMs` and when it is woken, one run at a time. */
export class RepeatedWork {
  readonly #everyMs: number;
  readonly #run: (isStopping: () => boolean) => Promise<void>;
  readonly #onFailure: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | null = null;
  #isWoken = false;
  #isStopping = false;
  #isFailing = false;

  /**
   * @param run ends early once `isStopping`
   * @param onFailure is called with the first error of several in a row; after each the next run tries again
   */
  constructor(
    everyMs: number,
    run: (isStopping: () => boolean) => Promise<void>,
    onFailure: (error: unknown) => void,
  ) {
    this.#everyMs = everyMs;
    this.#run = run;
    this.#onFailure = onFailure;
  }

  start(): void {
    this.#timer = setInterval(() => {
      if (this.#running === null) this.wake();
    }, this.#everyMs);
    this.wake();
  }

  /** Runs it now. If it is running, it runs once more after that: it may have looked too early. */
  wake(): void {
    this.#isWoken = true;
    if (this.#isStopping) return;
    this.#running ??= this.#runWhileWoken().finally(() => {
      this.#running = null;
    });
  }

  /** Begins no further run. */
  end(): void {
    this.#isStopping = true;
    clearInterval(this.#timer);
  }

  /** The same, and waits for the present run. */
  async stop(): Promise<void> {
    this.end();
    await this.#running;
  }

  async #runWhileWoken(): Promise<void> {
    while (this.#isWoken && !this.#isStopping) {
      this.#isWoken = false;
      try {
        await this.#run(() => this.#isStopping);
        this.#isFailing = false;
      } catch (error) {
        if (!this.#isFailing) this.#onFailure(error);
        this.#isFailing = true;
      }
    }
  }
}
