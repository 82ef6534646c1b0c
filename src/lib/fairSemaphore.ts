import { DeadlineExceeded, withDeadline } from './time.ts';

/** Too much work waits already, of this key or of all keys. */
export class Overloaded extends Error {
  override name = 'Overloaded';
}

export interface FairLimits {
  /** Pieces of work that run side by side, of all keys together. */
  readonly running: number;
  /** The same for one key. */
  readonly runningPerKey: number;
  /** Pieces of work that wait, of all keys together. */
  readonly waiting: number;
  /** The same for one key. */
  readonly waitingPerKey: number;
}

interface Share {
  running: number;
  readonly waiting: Waiter[];
}

interface Waiter {
  readonly resume: () => void;
  readonly reject: (error: Overloaded) => void;
}

/**
 * A semaphore that is fair by key (an account, an address). A permit that becomes free goes to the next key in turn, not
 * to the key with the most work. No key runs more than its share. When the queue is full, a key with little work
 * displaces the newest work of the key with the most.
 */
export class FairSemaphore<Key> {
  readonly #limits: FairLimits;
  readonly #shares = new Map<Key, Share>();
  /** The keys that wait and may run another piece of work, in the order of their turns. */
  readonly #turns = new Set<Key>();
  #running = 0;
  #waiting = 0;

  constructor(limits: FairLimits) {
    this.#limits = limits;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Pieces of work of this key that run or wait. */
  countOf(key: Key): number {
    const share = this.#shares.get(key);
    return share === undefined ? 0 : share.running + share.waiting.length;
  }

  /** Runs `work`. Rejects with Overloaded, without beginning it, when too much work waits, now or later. */
  async run<T>(key: Key, work: () => Promise<T>): Promise<T> {
    await this.acquire(key);
    try {
      return await work();
    } finally {
      this.release(key);
    }
  }

  /** Takes a permit, which `release` gives back. Rejects with Overloaded. */
  acquire(key: Key): Promise<void> {
    const share = this.#shares.get(key) ?? { running: 0, waiting: [] };
    this.#shares.set(key, share);
    if (this.#mayRun(share)) {
      this.#start(share);
      return Promise.resolve();
    }
    if (share.waiting.length >= this.#limits.waitingPerKey || !this.#makeRoom(share)) {
      this.#forgetIdle(key, share);
      return Promise.reject(new Overloaded('too much waits already'));
    }
    this.#waiting++;
    if (share.running < this.#limits.runningPerKey) this.#turns.add(key);
    return new Promise((resume, reject) => share.waiting.push({ resume, reject }));
  }

  /** The same, and Overloaded when the permit has not come within `limitMs`. One that comes later goes back. */
  async acquireWithin(key: Key, limitMs: number): Promise<void> {
    const acquired = this.acquire(key);
    try {
      await withDeadline(acquired, limitMs, 'what came before');
    } catch (error) {
      if (!(error instanceof DeadlineExceeded)) throw error;
      void acquired.then(
        () => this.release(key),
        () => undefined,
      );
      throw new Overloaded('the turn did not come in time');
    }
  }

  release(key: Key): void {
    const share = this.#shares.get(key);
    if (share === undefined) return;
    share.running--;
    this.#running--;
    if (share.waiting.length > 0) this.#turns.add(key);
    this.#forgetIdle(key, share);
    this.#startNext();
  }

  #mayRun(share: Share): boolean {
    return this.#running < this.#limits.running && share.running < this.#limits.runningPerKey;
  }

  #start(share: Share): void {
    share.running++;
    this.#running++;
  }

  /** True when one more may wait for `share`. May reject work of a key that waits with more. */
  #makeRoom(share: Share): boolean {
    if (this.#waiting < this.#limits.waiting) return true;
    let longest = share;
    for (const other of this.#shares.values()) {
      if (other.waiting.length > longest.waiting.length) longest = other;
    }
    if (longest.waiting.length <= share.waiting.length + 1) return false;
    longest.waiting.pop()?.reject(new Overloaded('keys with less work wait'));
    this.#waiting--;
    return true;
  }

  /** A key that still waits afterwards goes to the end of the turns. */
  #startNext(): void {
    for (const key of this.#turns) {
      if (this.#running >= this.#limits.running) return;
      const share = this.#shares.get(key) as Share;
      this.#turns.delete(key);
      this.#start(share);
      this.#waiting--;
      const { resume } = share.waiting.shift() as Waiter;
      if (share.waiting.length > 0 && share.running < this.#limits.runningPerKey) this.#turns.add(key);
      resume();
    }
  }

  #forgetIdle(key: Key, share: Share): void {
    if (share.running === 0 && share.waiting.length === 0) this.#shares.delete(key);
  }
}

/** Runs work of the same key one after the other, work of different keys side by side. */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<unknown>>();

  /** The result of `work`, which starts when all earlier work of `key` has settled, with or without an error. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const own = before.then(work, work);
    const tail = own.then(
      () => undefined,
      () => undefined,
    );
    this.#tails.set(key, tail);
    void tail.then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    });
    return own;
  }
}
