import { createHash } from 'node:crypto';
import type { TileMark } from '../living/livingFleet.memory.ts';

/** ETags that are kept: of an account, as many as a hundred viewers with different parts of the map have tiles. */
const ACCOUNT_MAX = 2_048;
/** Of all accounts: some twenty megabytes. */
const ALL_MAX = 65_536;
/** Longer names are kept as digests. */
const NAME_MAX = 64;

interface KeptTile {
  readonly etag: string;
  readonly stamps: readonly number[];
  readonly untilMs: number;
}

/** The ETags of the tiles that were made last, so that a tile that has not changed since need not be made again. */
export class KeptTiles {
  readonly #accountMax: number;
  readonly #allMax: number;
  /** The account that was used last is the last one, and so are its tiles. */
  readonly #accounts = new Map<number, Map<string, KeptTile>>();
  #size = 0;

  constructor(accountMax = ACCOUNT_MAX, allMax = ALL_MAX) {
    this.#accountMax = accountMax;
    this.#allMax = allMax;
  }

  /** How many ETags are kept. */
  get size(): number {
    return this.#size;
  }

  /** The ETag of a tile, if nothing has changed since it was made; else null. `name` is unique for an account. */
  etag(accountId: number, name: string, { stamps, nowMs }: TileMark): string | null {
    const kept = this.#accounts.get(accountId)?.get(shortName(name));
    const isSame =
      kept !== undefined && nowMs <= kept.untilMs && kept.stamps.every((stamp, n) => stamp === stamps[n]);
    return isSame ? kept.etag : null;
  }

  put(accountId: number, name: string, kept: KeptTile): void {
    const key = shortName(name);
    const tiles = this.#accounts.get(accountId) ?? new Map<string, KeptTile>();
    this.#accounts.delete(accountId);
    this.#accounts.set(accountId, tiles);
    this.#size -= tiles.delete(key) ? 1 : 0;
    tiles.set(key, kept);
    this.#size++;
    const [oldest] = tiles.keys();
    if (tiles.size > this.#accountMax && oldest !== undefined) {
      tiles.delete(oldest);
      this.#size--;
    }
    const [idle] = this.#accounts;
    if (this.#size <= this.#allMax || idle === undefined) return;
    this.#accounts.delete(idle[0]);
    this.#size -= idle[1].size;
  }
}

function shortName(name: string): string {
  return name.length <= NAME_MAX ? name : createHash('sha256').update(name).digest('base64url');
}
