import type { KeyState } from '../access/keyState.ts';

/** Open streams of one key on one pod, and of all keys of an account. */
export const STREAMS_PER_KEY = 10;
const STREAMS_PER_ACCOUNT = 5_000;

/** Whose streams are open, by key and account. */
export class StreamCounts {
  readonly #ofKey = new Map<number, number>();
  readonly #ofAccount = new Map<number, number>();

  hasRoom({ id, accountId }: Pick<KeyState, 'id' | 'accountId'>): boolean {
    const ofKey = this.#ofKey.get(id) ?? 0;
    return ofKey < STREAMS_PER_KEY && (this.#ofAccount.get(accountId) ?? 0) < STREAMS_PER_ACCOUNT;
  }

  add({ id, accountId }: Pick<KeyState, 'id' | 'accountId'>): void {
    changeCount(this.#ofKey, id, 1);
    changeCount(this.#ofAccount, accountId, 1);
  }

  remove({ keyId, accountId }: { readonly keyId: number; readonly accountId: number }): void {
    changeCount(this.#ofKey, keyId, -1);
    changeCount(this.#ofAccount, accountId, -1);
  }
}

/** Counts up or down; what has come to nothing is forgotten. */
export function changeCount(counts: Map<number, number>, id: number, by: 1 | -1): void {
  const count = (counts.get(id) ?? 0) + by;
  if (count > 0) counts.set(id, count);
  else counts.delete(id);
}
