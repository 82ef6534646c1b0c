import { Overloaded } from './fairSemaphore.ts';
import { invariant } from './invariant.ts';

export interface ByteLimits {
  /** Bytes that may be reserved at a time, by all keys together. */
  readonly bytes: number;
  /** The same for one key; also the most that one reservation may ask for. */
  readonly bytesPerKey: number;
  /** Reservations of one key that may wait. */
  readonly waitingPerKey: number;
}

interface Waiting {
  readonly bytes: number;
  readonly resume: () => void;
}

interface Share {
  held: number;
  readonly waiting: Waiting[];
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
  readonly #shares = new Map<Key, Share>();
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
      const waiting: Waiting = {
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
      const share = this.#shares.get(key) as Share;
      const [next] = share.waiting as [Waiting];
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

  #giveBack(key: Key, share: Share, bytes: number): void {
    share.held -= bytes;
    this.#held -= bytes;
    this.#forgetIdle(key, share);
    this.#grant();
  }

  #forgetIdle(key: Key, share: Share): void {
    if (share.waiting.length > 0) return;
    this.#turns.delete(key);
    if (share.held === 0) this.#shares.delete(key);
  }
}
