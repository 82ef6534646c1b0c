import { Overloaded } from './fairSemaphore.ts';
import { invariant } from './invariant.ts';

export interface ByteLimits {
  /** Bytes that may be held at a time, of all keys together. */
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

/** Bytes that are kept free for their holder, until they are given back. */
export class Reservation {
  #bytes: number;
  readonly #giveBack: (bytes: number) => void;

  constructor(bytes: number, giveBack: (bytes: number) => void) {
    this.#bytes = bytes;
    this.#giveBack = giveBack;
  }

  /** Gives back what is beyond `bytes`: so many turned out to be enough. */
  keep(bytes: number): void {
    const surplus = this.#bytes - bytes;
    if (surplus <= 0) return;
    this.#bytes = bytes;
    this.#giveBack(surplus);
  }

  /** Gives all of it back; again does nothing. */
  release(): void {
    this.keep(0);
  }
}

/**
 * A bound on the bytes that are held at a time, fair by key (an account, an address): room that becomes free goes to
 * the next key in turn, and a key never has more than its share. A reservation gets all that it asks for at once, so
 * none holds a part while it waits for the rest, which would let two of them wait for each other.
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
   * Room for so many bytes, as soon as there is. Rejects with Overloaded when too many of this key wait already, and
   * with the signal's reason when that is given before the room is there.
   */
  reserve(key: Key, bytes: number, signal: AbortSignal): Promise<Reservation> {
    invariant(bytes <= this.#limits.bytesPerKey, 'more than a share is never there');
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
        this.#grant(); // what it kept from the others in turn
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
   * In turn: what does not fit into the room of all of them is waited for, lest small ones take it for ever; what does
   * not fit into the share of its own key holds up nobody else.
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
