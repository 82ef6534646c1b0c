/** A computation that stops after every small step, of a millisecond at most, and is resumed for the next. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** What `steps` returns, done without a pause. */
export function inOneGo<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

interface Task {
  /** Runs the next step; true when it was the last. Never throws. */
  step(): boolean;
}

/**
 * One budget of work for each turn of the event loop, shared by all long computations of the process: fifty of them at
 * once hold up a request for as long as one does. Turns go round the keys (an account, or a task of the service
 * itself); the computations of one key run one after the other.
 */
export class WorkTurns<Key> {
  readonly #budgetMs: number;
  readonly #tasks = new Map<Key, Task[]>();
  #isScheduled = false;

  constructor(budgetMs: number) {
    this.#budgetMs = budgetMs;
  }

  /** How many computations are not done yet. */
  get size(): number {
    let size = 0;
    for (const tasks of this.#tasks.values()) size += tasks.length;
    return size;
  }

  /** What `steps` returns, or a rejection with what it throws. Its first step runs in a later turn. */
  run<T>(key: Key, steps: Steps<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const step = (): boolean => {
        try {
          const result = steps.next();
          if (result.done === true) resolve(result.value);
          return result.done === true;
        } catch (error) {
          reject(error);
          return true;
        }
      };
      const tasks = this.#tasks.get(key);
      if (tasks === undefined) this.#tasks.set(key, [{ step }]);
      else tasks.push({ step });
      this.#schedule();
    });
  }

  /** What `work` returns, which is one step: for what cannot be stopped half way, such as JSON.parse. */
  once<T>(key: Key, work: () => T): Promise<T> {
    return this.run(key, oneStep(work));
  }

  #schedule(): void {
    if (this.#isScheduled || this.#tasks.size === 0) return;
    this.#isScheduled = true;
    // Sockets are read between two of these, so every request that is there is answered first.
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#isScheduled = false;
    const endMs = performance.now() + this.#budgetMs;
    do {
      const [next] = this.#tasks;
      if (next === undefined) return;
      const [key, tasks] = next;
      this.#tasks.delete(key);
      if (tasks[0]?.step() === true) tasks.shift();
      if (tasks.length > 0) this.#tasks.set(key, tasks);
    } while (performance.now() < endMs);
    this.#schedule();
  }
}

// biome-ignore lint/correctness/useYield: it has no step but its last
function* oneStep<T>(work: () => T): Steps<T> {
  return work();
}
