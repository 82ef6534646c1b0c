import { WEEK_MS, weekStartMs } from '../../lib/time.ts';
import { arrayLiteral, type Query, type Tx } from '../../postgres/sql.ts';

/** What the points that are packed add to the density of their world. */
export interface DrivenCells {
  /** See weekOf. */
  readonly week: number;
  readonly cells: number;
  readonly tiles: number;
  /** See encodeCounts. */
  readonly bytes: Buffer;
}

/** The number of a week: of those since Monday, 5 January 1970 (UTC). */
export function weekOf(ms: number): number {
  return Math.floor(weekStartMs(ms) / WEEK_MS);
}

/** Notes cells for the world that the device is in. */
export async function insertDriven(tx: Query, deviceId: number, driven: DrivenCells): Promise<void> {
  await tx`
    insert into driven_cells (world_id, week, cells, tiles, bytes)
    select world_id, ${driven.week}, ${driven.cells}, ${driven.tiles}, ${driven.bytes}
    from device where id = ${deviceId}`;
}

/** The most that is counted in one transaction, after its first row: some tens of milliseconds of work. */
export const COUNTED_AT_A_TIME = { rows: 64, cells: 500_000, tiles: 1_000 };

/** Some rows of cells that wait to be counted, of one world and week. */
export interface WaitingCells {
  readonly ids: readonly number[];
  readonly week: number;
  readonly bytes: readonly Buffer[];
}

/** The next cells of a world that wait to be counted; null: fewer rows than `least` wait. */
export async function selectDriven(sql: Query, worldId: number, least: number): Promise<WaitingCells | null> {
  const { rows: most, cells, tiles } = COUNTED_AT_A_TIME;
  const rows = await sql<{ id: number; week: number; bytes: Buffer; waiting: number }[]>`
    select id, week, bytes, waiting from (
      select *, count(*) over () as waiting, sum(cells) over ordered as cells_so_far, sum(tiles) over ordered as tiles_so_far,
        row_number() over ordered as n, first_value(week) over ordered as first_week
      from (select * from driven_cells where world_id = ${worldId} order by id limit ${most}) first
      window ordered as (order by id)
    ) waiting
    where week = first_week and (n = 1 or (cells_so_far <= ${cells} and tiles_so_far <= ${tiles}))
    order by id`;
  const [first] = rows;
  if (first === undefined || first.waiting < least) return null;
  return { ids: rows.map(({ id }) => id), week: first.week, bytes: rows.map(({ bytes }) => bytes) };
}

/** Takes rows that are being counted. Returns how many of them nobody else has taken. */
export async function deleteDriven(tx: Query, ids: readonly number[]): Promise<number> {
  const { count } = await tx`delete from driven_cells where id = any(${arrayLiteral(ids)}::bigint[])`;
  return count;
}

/** Locks the week of a world against others that count, and returns how many tiles of the base zoom it has. */
export async function lockTrackWeek(tx: Query, worldId: number, week: number): Promise<number> {
  const [row] = await tx<{ tiles: number }[]>`
    insert into track_week (world_id, week) values (${worldId}, ${week})
    on conflict (world_id, week) do update set revision = nextval('track_revision') returning tiles`;
  return row?.tiles ?? 0;
}

export async function addTrackTiles(tx: Query, worldId: number, week: number, added: number): Promise<void> {
  await tx`update track_week set tiles = tiles + ${added} where world_id = ${worldId} and week = ${week}`;
}

/** Tiles of some zooms, by zoom and tile. */
export type TilesByZoom = ReadonlyMap<number, ReadonlyMap<number, Buffer>>;

/** The bytes of those of these tiles, by zoom, that the week has. */
export async function selectTilesOfWeek(
  tx: Query,
  worldId: number,
  week: number,
  tiles: ReadonlyMap<number, Iterable<number>>,
): Promise<TilesByZoom> {
  const asked = [...tiles].flatMap(([zoom, ofZoom]) => Array.from(ofZoom, (tile) => ({ zoom, tile })));
  // With a limit, each tile is looked up by the key, whatever is known of the table.
  const rows = await tx<{ zoom: number; tile: number; bytes: Buffer }[]>`
    select asked.zoom, asked.tile, t.bytes
    from unnest(${arrayLiteral(asked.map(({ zoom }) => zoom))}::integer[],
      ${arrayLiteral(asked.map(({ tile }) => tile))}::integer[]) as asked (zoom, tile)
    cross join lateral (
      select bytes from track_tile
      where world_id = ${worldId} and zoom = asked.zoom and tile = asked.tile and week = ${week} limit 1) t`;
  const found = new Map([...tiles.keys()].map((zoom) => [zoom, new Map<number, Buffer>()]));
  for (const { zoom, tile, bytes } of rows) found.get(zoom)?.set(tile, bytes);
  return found;
}

export async function writeTilesOfWeek(
  tx: Tx,
  worldId: number,
  week: number,
  tiles: TilesByZoom,
): Promise<void> {
  const all = [...tiles].flatMap(([zoom, ofZoom]) =>
    Array.from(ofZoom, ([tile, bytes]) => ({ zoom, tile, bytes })),
  );
  await tx`
    insert into track_tile as t (world_id, zoom, tile, week, bytes)
    select ${worldId}, zoom, tile, ${week}, bytes
    from unnest(${arrayLiteral(all.map(({ zoom }) => zoom))}::smallint[],
      ${arrayLiteral(all.map(({ tile }) => tile))}::integer[],
      ${all.map(({ bytes }) => bytes)}::bytea[]) as new (zoom, tile, bytes)
    on conflict (world_id, zoom, tile, week) do update set bytes = excluded.bytes`;
}

/** The latest change of what these worlds have of the weeks from `sinceWeek` on, as text; blank: they have nothing. */
export async function selectTrackRevision(
  sql: Query,
  worldIds: readonly number[],
  sinceWeek: number,
): Promise<string> {
  const [row] = await sql<{ revision: string | null }[]>`
    select max(revision)::text as revision from track_week
    where world_id = any(${arrayLiteral(worldIds)}::bigint[]) and week >= ${sinceWeek}`;
  return row?.revision ?? '';
}

/** A tile of a zoom as one world has it in one week. */
export interface TrackTile {
  readonly tile: number;
  readonly bytes: Buffer;
}

/** These tiles of a zoom: of all these worlds, and of all weeks from `sinceWeek` on. */
export async function selectTrackTiles(
  sql: Query,
  worldIds: readonly number[],
  zoom: number,
  tiles: readonly number[],
  sinceWeek: number,
): Promise<readonly TrackTile[]> {
  return sql<TrackTile[]>`
    select tile, bytes from track_tile
    where world_id = any(${arrayLiteral(worldIds)}::bigint[]) and zoom = ${zoom}
      and tile = any(${arrayLiteral(tiles)}::integer[]) and week >= ${sinceWeek}`;
}

const PRUNED_AT_A_TIME = 5_000;

/** Forgets tiles of weeks that ended before a time, some at a time. Returns how many. */
export async function pruneTracks(sql: Query, oldestMs: number): Promise<number> {
  const week = weekOf(oldestMs);
  const { count } = await sql`
    delete from track_tile where ctid = any(array(
      select ctid from track_tile where week < ${week} limit ${PRUNED_AT_A_TIME}))`;
  if (count === 0) await sql`delete from track_week where week < ${week}`;
  return count;
}
