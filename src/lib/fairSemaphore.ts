import { invariant } from './errors.ts';
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

interface ByteLimits {
  /** Bytes that may be reserved at a time, by all keys together. */
  readonly bytes: number;
  /** The same for one key; also the most that one reservation may ask for. */
  readonly bytesPerKey: number;
  /** Reservations of one key that may wait. */
  readonly waitingPerKey: number;
}

interface WaitingBytes {
  readonly bytes: number;
  readonly resume: () => void;
}

interface ByteShare {
  held: number;
  readonly waiting: WaitingBytes[];
}

/** Bytes that are reserved until they are given back. */
export class Reservation {
  #bytes: number;
  readonly #giveBack: (bytes: number) => void;

  constructor(bytes: number, giveBack: (bytes: number) => void) {
    this.#bytes = bytes;
    this.#giveBack = giveBack;
  }

  /** Gives back all but `bytes`: that many turned out to be enough. */
  keep(bytes: number): void {
    const surplus = this.#bytes - bytes;
    if (surplus <= 0) return;
    this.#bytes = bytes;
    this.#giveBack(surplus);
  }

  /** Gives all of it back. A second call does nothing. */
  release(): void {
    this.keep(0);
  }
}

/**
 * A limit on the bytes held at a time, fair by key (an account, an address). Free bytes go to the next key in turn, and
 * no key has more than its share. A reservation gets all its bytes at once. None holds a part while it waits for the
 * rest, so two can never wait for each other.
 */
export class ByteBudget<Key> {
  readonly #limits: ByteLimits;
  readonly #shares = new Map<Key, ByteShare>();
  /** The keys that wait, in the order of their turns. */
  readonly #turns = new Set<Key>();
  #held = 0;

  constructor(limits: ByteLimits) {
    this.#limits = limits;
  }

  /** Of all keys together. */
  get heldBytes(): number {
    return this.#held;
  }

  get waiting(): number {
    let waiting = 0;
    for (const key of this.#turns) waiting += this.#shares.get(key)?.waiting.length ?? 0;
    return waiting;
  }

  /**
   * Reserves this many bytes as soon as they are free. Rejects with Overloaded when too many reservations of this key
   * wait already, and with the signal's reason when the signal aborts first.
   */
  reserve(key: Key, bytes: number, signal: AbortSignal): Promise<Reservation> {
    invariant(bytes <= this.#limits.bytesPerKey, 'more than the share of a key can never be reserved');
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    const share = this.#shares.get(key) ?? { held: 0, waiting: [] };
    if (share.waiting.length >= this.#limits.waitingPerKey)
      return Promise.reject(new Overloaded('too much waits already'));
    this.#shares.set(key, share);
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        share.waiting.splice(share.waiting.indexOf(waiting), 1);
        this.#forgetIdle(key, share);
        reject(signal.reason as Error);
        this.#grant(); // others may have waited behind this one
      };
      const waiting: WaitingBytes = {
        bytes,
        resume: () => {
          signal.removeEventListener('abort', giveUp);
          resolve(new Reservation(bytes, (given) => this.#giveBack(key, share, given)));
        },
      };
      signal.addEventListener('abort', giveUp, { once: true });
      share.waiting.push(waiting);
      this.#turns.add(key);
      this.#grant();
    });
  }

  /**
   * Grants reservations in turn. If one does not fit into the free bytes of all keys, the others wait behind it:
   * otherwise small ones could take the bytes every time. If it does not fit into the share of its own key, the others
   * go on.
   */
  #grant(): void {
    for (const key of this.#turns) {
      const share = this.#shares.get(key) as ByteShare;
      const [next] = share.waiting as [WaitingBytes];
      if (share.held + next.bytes > this.#limits.bytesPerKey) continue;
      if (this.#held + next.bytes > this.#limits.bytes) return;
      share.waiting.shift();
      share.held += next.bytes;
      this.#held += next.bytes;
      this.#turns.delete(key);
      if (share.waiting.length > 0) this.#turns.add(key); // at the end, where this loop comes again
      next.resume();
    }
  }

  #giveBack(key: Key, share: ByteShare, bytes: number): void {
    share.held -= bytes;
    this.#held -= bytes;
    this.#forgetIdle(key, share);
    this.#grant();
  }

  #forgetIdle(key: Key, share: ByteShare): void {
    if (share.waiting.length > 0) return;
    this.#turns.delete(key);
    if (share.held === 0) this.#shares.delete(key);
  }
}
