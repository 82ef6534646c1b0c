import type { Steps, WorkTurns } from '../../lib/workTurns.ts';
import type { Sql, Tx } from '../../postgres/sql.ts';
import { byTile, decodeCounts, encodeCounts, NO_CELLS, sumOfAll, withQuarter } from './cellCounts.ts';
import { BASE_ZOOM, type CellCounts } from './cells.ts';
import {
  addTrackTiles,
  deleteDriven,
  lockTrackWeek,
  selectDriven,
  selectTilesOfWeek,
  type WaitingCells,
  writeTilesOfWeek,
} from './tracks.sql.ts';

/** Tiles of the base zoom that a world has in a week at most: at 45° they cover three quarters of a million square km. */
const TILES_MAX = 65_536;

export interface CountPorts {
  readonly sql: Sql;
  readonly turns: Pick<WorkTurns<string>, 'run'>;
  /** Lets others go first, between two transactions. */
  readonly rest: () => Promise<void>;
  /** Tiles of the base zoom that a world has in a week at most. */
  readonly tilesMax?: number;
}

/**
 * Counts the cells of a world that wait for it, while at least `least` rows of them do and until `isOver`: the fewer are
 * counted together, the more often their tiles are written. Each transaction takes some rows and writes the tiles that they
 * are in, so a kill loses and doubles nothing. Returns whether it has come to the end.
 */
export async function countDriven(
  ports: CountPorts,
  worldId: number,
  isOver: () => boolean,
  least = 1,
): Promise<boolean> {
  for (;;) {
    const waiting = await selectDriven(ports.sql, worldId, least);
    if (waiting === null) return true;
    if (isOver()) return false;
    try {
      await ports.sql.begin((tx) => countWaiting(ports, tx, worldId, waiting));
    } catch (error) {
      if (!(error instanceof CountedElsewhere)) throw error;
    }
    await ports.rest();
  }
}

/** Another pod has counted some of the same cells. What is left is selected again. */
class CountedElsewhere extends Error {
  override name = 'CountedElsewhere';
}

async function countWaiting(
  { turns, tilesMax = TILES_MAX }: CountPorts,
  tx: Tx,
  worldId: number,
  { ids, week, bytes }: WaitingCells,
): Promise<void> {
  const tilesBefore = await lockTrackWeek(tx, worldId, week);
  if ((await deleteDriven(tx, ids)) !== ids.length) throw new CountedElsewhere();
  const run = <T>(steps: Steps<T>): Promise<T> => turns.run('packing', steps);
  const driven = await run(decodedByTile(bytes));
  let changed: Tiles = new Map();
  for (const zooms of zoomsTogether(driven.keys())) {
    const stored = await selectTilesOfWeek(tx, worldId, week, zooms);
    const written = new Map<number, Map<number, Buffer>>();
    for (const [zoom, ofZoom] of stored) {
      if (zoom === BASE_ZOOM) {
        let free = tilesMax - tilesBefore;
        for (const tile of driven.keys()) if (!ofZoom.has(tile) && --free < 0) driven.delete(tile);
        changed = await run(added(driven, ofZoom));
        if (changed.size > ofZoom.size) await addTrackTiles(tx, worldId, week, changed.size - ofZoom.size);
      } else changed = await run(parentsOf(changed, ofZoom));
      written.set(zoom, await run(encoded(changed)));
    }
    await writeTilesOfWeek(tx, worldId, week, written);
  }
}

/** Tiles that are read with one statement, and written with one, where they are of more than one zoom. */
const TILES_AT_A_TIME = 1_500;

/** These tiles of the base zoom, and all that they are in, from the base zoom to 0: by zoom, as many zooms as go together. */
function zoomsTogether(base: Iterable<number>): ReadonlyMap<number, ReadonlySet<number>>[] {
  const parts: Map<number, ReadonlySet<number>>[] = [];
  let tiles = new Set(base);
  let room = 0;
  for (let zoom = BASE_ZOOM; zoom >= 0; zoom--) {
    if (tiles.size > room) {
      parts.push(new Map());
      room = TILES_AT_A_TIME;
    }
    parts.at(-1)?.set(zoom, tiles);
    room -= tiles.size;
    tiles = new Set(Array.from(tiles, (tile) => tile >>> 2));
  }
  return parts;
}

/** What each row has of each tile. */
function* decodedByTile(bytes: readonly Buffer[]): Steps<Map<number, CellCounts[]>> {
  const tiles = new Map<number, CellCounts[]>();
  for (const each of bytes) {
    for (const [tile, cells] of byTile(decodeCounts(each))) {
      const known = tiles.get(tile);
      if (known === undefined) tiles.set(tile, [cells]);
      else known.push(cells);
    }
    yield;
  }
  return tiles;
}

type Tiles = Map<number, CellCounts>;

function* added(
  driven: ReadonlyMap<number, readonly CellCounts[]>,
  stored: ReadonlyMap<number, Buffer>,
): Steps<Tiles> {
  const tiles: Tiles = new Map();
  for (const [tile, cells] of driven) {
    const before = stored.get(tile);
    tiles.set(tile, yield* sumOfAll(before === undefined ? cells : [...cells, decodeCounts(before)]));
    yield;
  }
  return tiles;
}

function* encoded(tiles: Tiles): Steps<Map<number, Buffer>> {
  const bytes = new Map<number, Buffer>();
  for (const [tile, cells] of tiles) {
    bytes.set(tile, encodeCounts(cells));
    yield;
  }
  return bytes;
}

/** The tiles of the next lower zoom with what has changed in these. */
function* parentsOf(changed: Tiles, stored: ReadonlyMap<number, Buffer>): Steps<Tiles> {
  const parents: Tiles = new Map();
  for (const [tile, cells] of changed) {
    const parent = tile >>> 2;
    const bytes = stored.get(parent);
    const before = parents.get(parent) ?? (bytes === undefined ? NO_CELLS : decodeCounts(bytes));
    parents.set(parent, withQuarter(before, tile & 3, cells));
    yield;
  }
  return parents;
}
