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
  readonly #onWork: (key: Key, workedMs: number) => void;
  readonly #tasks = new Map<Key, Task[]>();
  readonly #urgent = new Map<Key, Task[]>();
  #isUrgentNext = true;
  #isScheduled = false;

  /** `onWork` is told of each step, and of what AtOnce measures. */
  constructor(budgetMs: number, onWork: (key: Key, workedMs: number) => void = () => undefined) {
    this.#budgetMs = budgetMs;
    this.#onWork = onWork;
  }

  /** How many computations have not finished. */
  get size(): number {
    return this.sizes(() => 'all').get('all') ?? 0;
  }

  /** The number of unfinished computations by the kind of their keys. */
  sizes(kindOf: (key: Key) => string): Map<string, number> {
    const sizes = new Map<string, number>();
    for (const lane of [this.#tasks, this.#urgent]) {
      for (const [key, tasks] of lane) {
        const kind = kindOf(key);
        sizes.set(kind, (sizes.get(kind) ?? 0) + tasks.length);
      }
    }
    return sizes;
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

  /** Work for `key` that did not wait for a turn. */
  note(key: Key, workedMs: number): void {
    this.#onWork(key, workedMs);
  }

  #schedule(): void {
    if (this.#isScheduled || this.#tasks.size + this.#urgent.size === 0) return;
    this.#isScheduled = true;
    // The process reads its sockets before this runs, so every request that has arrived is answered first.
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#isScheduled = false;
    let fromMs = performance.now();
    const endMs = fromMs + this.#budgetMs;
    do {
      const lane = this.#nextLane();
      const [next] = lane;
      if (next === undefined) return;
      const [key, tasks] = next;
      lane.delete(key);
      // Behind the others, and before the step, which may add work of the same key.
      lane.set(key, tasks);
      if (tasks[0]?.step() === true) tasks.shift();
      if (tasks.length === 0) lane.delete(key);
      const nowMs = performance.now();
      this.#onWork(key, nowMs - fromMs);
      fromMs = nowMs;
    } while (fromMs < endMs);
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

/** How long a computation runs at once. Most end before, and waiting for a turn would cost more than they do. */
const AT_ONCE_MS = 2;

/** Runs a computation: at once if it is short, else in turns with all other long computations of the pod. */
export async function inTurns<T, Key>(
  turns: Pick<WorkTurns<Key>, 'run'>,
  key: Key,
  steps: Steps<T>,
  isUrgent = false,
): Promise<T> {
  const endMs = performance.now() + AT_ONCE_MS;
  do {
    const step = steps.next();
    if (step.done === true) return step.value;
  } while (performance.now() < endMs);
  return turns.run(key, steps, isUrgent);
}

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

/** Less is quick: it is not counted. */
const SLOW_MS = 0.25;
/** How long the slow answers to one account may take at once. */
const SHARE_MS = 4;
const WINDOW_MS = 100;

/**
 * Runs work without waiting for a turn, since it is nearly always quick. Some of it may still take milliseconds, and a
 * caller may ask hundreds of times at the same moment. So the work of an account with slow answers takes turns with all
 * other work until the window ends.
 */
export class AtOnce<Key> {
  readonly #turns: WorkTurns<Key>;
  /** Time spent on slow answers in this window, by account. */
  readonly #slowMs = new Map<Key, number>();
  #windowFromMs = 0;

  constructor(turns: WorkTurns<Key>) {
    this.#turns = turns;
  }

  /** What `work` returns; a promise of it where the account has used up its share. */
  run<T>(key: Key, work: () => T): T | Promise<T> {
    const fromMs = performance.now();
    if (fromMs - this.#windowFromMs > WINDOW_MS) {
      this.#windowFromMs = fromMs;
      this.#slowMs.clear();
    }
    const slowMs = this.#slowMs.get(key) ?? 0;
    if (slowMs >= SHARE_MS) return this.#turns.once(key, work);
    const result = work();
    const workedMs = workedSince(fromMs);
    if (workedMs < SLOW_MS) return result;
    this.#slowMs.set(key, slowMs + workedMs);
    this.#turns.note(key, workedMs);
    return result;
  }
}

/** A call takes more processor time than any call may. Less of the same kind would be answered. */
export class TooMuchWork extends Error {
  override name = 'TooMuchWork';
}

/** Nobody waits for the result any more. */
export class Abandoned extends Error {
  override name = 'Abandoned';
}

/** The processor time of one call, however many computations it is made of and however long they wait for their turns. */
export class ProcessorBudget {
  readonly #limitMs: number;
  readonly #isOver: () => boolean;
  #spentMs = 0;

  /** `isOver` is asked after each step: true when nobody waits any more. It may throw. */
  constructor(limitMs: number, isOver: () => boolean) {
    this.#limitMs = limitMs;
    this.#isOver = isOver;
  }

  /**
   * The same steps. Instead of going on it throws TooMuchWork, Abandoned, or what `isOver` throws; then the steps are
   * ended, so that what they have begun is undone.
   */
  *spend<T>(steps: Steps<T>): Steps<T> {
    try {
      for (;;) {
        const fromMs = performance.now();
        const step = steps.next();
        this.#spentMs += workedSince(fromMs);
        if (step.done === true) return step.value;
        if (this.#spentMs > this.#limitMs) throw new TooMuchWork('the call takes too much processor time');
        if (this.#isOver()) throw new Abandoned('nobody waits for the result');
        yield;
      }
    } finally {
      steps.return(undefined as T);
    }
  }
}
