/** A computation that pauses after every small step, of a millisecond at most. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs all steps without a pause, and returns the result. */
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
 * Runs long computations in turns between which the process reads its sockets. All of them share one time budget per
 * turn, so fifty at once delay a request as little as one does. The keys (an account, or a task of the service itself)
 * take turns; the computations of one key run one after the other. Urgent ones, which keep something locked while they
 * run, have every second step.
 */
export class WorkTurns<Key> {
  readonly #budgetMs: number;
  readonly #tasks = new Map<Key, Task[]>();
  readonly #urgent = new Map<Key, Task[]>();
  #isUrgentNext = true;
  #isScheduled = false;

  constructor(budgetMs: number) {
    this.#budgetMs = budgetMs;
  }

  /** How many computations have not finished. */
  get size(): number {
    let size = 0;
    for (const tasks of this.#tasks.values()) size += tasks.length;
    for (const tasks of this.#urgent.values()) size += tasks.length;
    return size;
  }

  /** Resolves to what `steps` returns, or rejects with what it throws. Its first step runs in a later turn. */
  run<T>(key: Key, steps: Steps<T>, isUrgent = false): Promise<T> {
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
      const lane = isUrgent ? this.#urgent : this.#tasks;
      const tasks = lane.get(key);
      if (tasks === undefined) lane.set(key, [{ step }]);
      else tasks.push({ step });
      this.#schedule();
    });
  }

  /** Runs `work` as one step: for what cannot pause, such as JSON.parse. */
  once<T>(key: Key, work: () => T): Promise<T> {
    return this.run(key, oneStep(work));
  }

  #schedule(): void {
    if (this.#isScheduled || this.#tasks.size + this.#urgent.size === 0) return;
    this.#isScheduled = true;
    // The process reads its sockets before this runs, so every request that has arrived is answered first.
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#isScheduled = false;
    const endMs = performance.now() + this.#budgetMs;
    do {
      const lane = this.#nextLane();
      const [next] = lane;
      if (next === undefined) return;
      const [key, tasks] = next;
      lane.delete(key);
      if (tasks[0]?.step() === true) tasks.shift();
      if (tasks.length > 0) lane.set(key, tasks);
    } while (performance.now() < endMs);
    this.#schedule();
  }

  #nextLane(): Map<Key, Task[]> {
    const isUrgent = this.#urgent.size > 0 && (this.#isUrgentNext || this.#tasks.size === 0);
    this.#isUrgentNext = !isUrgent;
    return isUrgent ? this.#urgent : this.#tasks;
  }
}

// biome-ignore lint/correctness/useYield: it has no step but its last
function* oneStep<T>(work: () => T): Steps<T> {
  return work();
}
