import { createHash } from 'node:crypto';
import type { KeyState } from '../../access/credentials.ts';
import type { Tile } from '../../geo/vectorTile.ts';
import type { BulkCalls } from '../../http/bulkCalls.ts';
import { invariant } from '../../lib/errors.ts';
import { DAY_MS } from '../../lib/time.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { Sql } from '../../postgres/sql.ts';
import type { CellCounts } from './cells.ts';
import type { RecentTracks } from './recentTracks.ts';
import { selectTrackRevision, selectTrackTiles, type TrackTile, weekOf } from './tracks.sql.ts';
import { levelsOf, type TrackView, trackPicture, trackVectors, viewOf } from './trackTile.ts';

export type TrackFormat = 'mvt' | 'png';

/** A release that draws tracks in another way raises it. */
const DRAWING = 1;
/** Tiles that are kept, of all accounts together. */
const KEPT_MAX_BYTES = 2 ** 25;
/** What a kept tile takes beside its bytes. */
const ENTRY_BYTES = 400;
/** A plan that retains less is not shown points that are not packed. */
const RECENT_DAYS = 4;

/** A tile; null: nothing was driven there. */
export interface MadeTile {
  readonly bytes: Buffer | null;
  readonly etag: string;
}

interface KeptTile extends MadeTile {
  /** What it was made of. */
  readonly version: string;
}

interface TrackTilePorts {
  readonly reads: (accountId: number) => Sql;
  readonly recent: RecentTracks;
  readonly bulkCalls: BulkCalls;
}

/** Makes tiles of where the vehicles of a caller have driven, and keeps them until something changes. */
export class TrackTiles {
  readonly #ports: TrackTilePorts;
  readonly #kept = new KeptTracks(KEPT_MAX_BYTES);

  constructor(ports: TrackTilePorts) {
    this.#ports = ports;
  }

  /** Rejects with Overloaded and OutOfTime, and as the reads of the account do. */
  async tile(
    { accountId, worldIds, historyDays }: Pick<KeyState, 'accountId' | 'worldIds' | 'historyDays'>,
    tile: Tile,
    format: TrackFormat,
    nowMs: number,
  ): Promise<MadeTile> {
    const { reads, recent, bulkCalls } = this.#ports;
    const sql = reads(accountId);
    // A week that the plan retains a part of only is not shown: forgotten points must not be seen by what they have drawn.
    const sinceWeek = weekOf(nowMs - historyDays * DAY_MS - 1) + 1;
    const shown = historyDays < RECENT_DAYS ? [] : worldIds;
    const cells = await Promise.all(shown.map((worldId) => recent.of(accountId, worldId, nowMs)));
    const revision = await selectTrackRevision(sql, worldIds, sinceWeek);
    const version = [sinceWeek, revision, ...cells.map((each) => each.version)].join();
    const name = [format, tile.z, tile.x, tile.y, ...worldIds].join();
    const kept = this.#kept.get(accountId, name);
    if (kept?.version === version) return kept;
    const view = viewOf(tile);
    const stored = await selectTrackTiles(sql, worldIds, view.zoom, view.tiles, sinceWeek);
    const bytes = await bulkCalls.run(accountId, () => drawn(view, stored, cells, format));
    const made = { bytes, etag: etagOf(bytes), version };
    this.#kept.put(accountId, name, made);
    return made;
  }
}

/**
 * The tiles that were used last, up to a size of all accounts together. Beyond it the account with the most gives up the one
 * that it has not used for longest: so who keeps no more than an equal share loses nothing to the others.
 */
export class KeptTracks {
  readonly #maxBytes: number;
  readonly #accounts = new Map<number, AccountTiles>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Of all tiles, with what a tile takes beside its own. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `name` is unique for an account. */
  get(accountId: number, name: string): KeptTile | undefined {
    const tiles = this.#accounts.get(accountId)?.tiles;
    const kept = tiles?.get(name);
    if (kept === undefined) return undefined;
    tiles?.delete(name);
    tiles?.set(name, kept);
    return kept;
  }

  put(accountId: number, name: string, kept: KeptTile): void {
    const account = this.#accounts.get(accountId) ?? { tiles: new Map(), bytes: 0 };
    this.#accounts.set(accountId, account);
    this.#forget(account, name);
    account.tiles.set(name, kept);
    this.#count(account, sizeOf(kept));
    while (this.#bytes > this.#maxBytes) {
      const [accountId, heaviest] = this.#heaviest;
      const [oldest] = heaviest.tiles.keys();
      if (oldest !== undefined) this.#forget(heaviest, oldest);
      if (heaviest.tiles.size === 0) this.#accounts.delete(accountId);
    }
  }

  /** A look at each account, of which there are fewer than tiles. */
  get #heaviest(): [number, AccountTiles] {
    let found: [number, AccountTiles] | null = null;
    for (const each of this.#accounts) if (found === null || each[1].bytes > found[1].bytes) found = each;
    invariant(found !== null, 'what is kept is of an account');
    return found;
  }

  #forget(account: AccountTiles, name: string): void {
    const kept = account.tiles.get(name);
    if (kept === undefined) return;
    account.tiles.delete(name);
    this.#count(account, -sizeOf(kept));
  }

  #count(account: AccountTiles, bytes: number): void {
    account.bytes += bytes;
    this.#bytes += bytes;
  }
}

/** `tiles`: the one that was used last stands last. */
interface AccountTiles {
  readonly tiles: Map<string, KeptTile>;
  bytes: number;
}

const sizeOf = ({ bytes }: MadeTile): number => ENTRY_BYTES + (bytes?.length ?? 0);

function* drawn(
  view: TrackView,
  stored: readonly TrackTile[],
  recent: readonly CellCounts[],
  format: TrackFormat,
): Steps<Buffer | null> {
  const levels = yield* levelsOf(view, stored, recent);
  return yield* format === 'mvt' ? trackVectors(view, levels) : trackPicture(view, levels);
}

/** By what is in the tile, so a tile that has not changed keeps it. Weak: a proxy may compress the tile. */
function etagOf(bytes: Buffer | null): string {
  const digest = bytes === null ? '0' : createHash('sha256').update(bytes).digest('base64url').slice(0, 16);
  return `W/"${DRAWING}-${digest}"`;
}
