import type { Handover } from '../http/answer.ts';
import type { WorkTurns } from '../lib/workTurns.ts';

/** Of the answers of one account that their readers have not taken: beyond it no further page is made for it. */
export const UNREAD_MAX_BYTES = 64 * 1024 * 1024;

/** Bytes that several answers consist of. They are counted once, until `release` and the end of each handover. */
export interface HeldBytes {
  handover(): Handover;
  release(): void;
}

/**
 * Counts the bytes of answers that connections have not taken, by account. Whoever asks for large pages and does not read
 * them would otherwise fill the memory of all.
 */
export class UnreadAnswers {
  readonly #turns: Pick<WorkTurns<string>, 'once'>;
  readonly #maxBytes: number;
  readonly #bytes = new Map<number, number>();
  readonly #listeners = new Set<(accountId: number) => void>();

  constructor(turns: Pick<WorkTurns<string>, 'once'>, maxBytes = UNREAD_MAX_BYTES) {
    this.#turns = turns;
    this.#maxBytes = maxBytes;
  }

  bytesOf(accountId: number): number {
    return this.#bytes.get(accountId) ?? 0;
  }

  /** Whether another page may be made for the account: it may go beyond the limit by that one. */
  hasRoom(accountId: number): boolean {
    return this.bytesOf(accountId) < this.#maxBytes;
  }

  /** Calls `listener` with an account that has room again. */
  onRoom(listener: (accountId: number) => void): void {
    this.#listeners.add(listener);
  }

  hold(accountId: number, bytes: number): HeldBytes {
    this.#bytes.set(accountId, this.bytesOf(accountId) + bytes);
    let shares = 0;
    const share = (): (() => void) => {
      let isHeld = true;
      shares++;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        if (--shares === 0) this.#free(accountId, bytes);
      };
    };
    return {
      handover: () => ({
        inTurn: (write) => void this.#turns.once(`answers of ${accountId}`, write),
        done: share(),
      }),
      release: share(),
    };
  }

  #free(accountId: number, bytes: number): void {
    const hadRoom = this.hasRoom(accountId);
    const left = this.bytesOf(accountId) - bytes;
    if (left > 0) this.#bytes.set(accountId, left);
    else this.#bytes.delete(accountId);
    if (hadRoom || !this.hasRoom(accountId)) return;
    for (const listener of this.#listeners) listener(accountId);
  }
}
