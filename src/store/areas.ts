import type { AreaDefinition, AreaGeometry, AreaType } from '../areas/area.ts';
import type { AreaFigures } from '../areas/areaFigures.ts';
import type { StoredArea } from '../areas/storedArea.ts';
import { invariant } from '../base/invariant.ts';
import { numbers } from '../base/numbers.ts';
import type { LatLng } from '../geometry/latLng.ts';
import type { CopiedRow } from './copiedRow.ts';
import { copyRows } from './copyRows.ts';
import { isTaken, type Sql, type Tx } from './sql.ts';
import { assignments, insertRows } from './sqlText.ts';
import { list } from './tracks.ts';

interface RawArea {
  id: number;
  world_id: number;
  account_id: number;
  name: string;
  color: string;
  type: AreaType;
  center_lat: number | null;
  center_lng: number | null;
  radius_m: number | null;
  buffer_m: number | null;
  points: Uint8Array;
  external_id: string | null;
  dwell_seconds: number;
  area_m2: number | null;
  perimeter_m: number | null;
  length_m: number | null;
  south: number;
  west: number;
  north: number;
  east: number;
  created_at: Date;
  revision: number;
}

/** Who makes an area, and where it belongs. */
export interface AreaOwner {
  readonly worldId: number;
  readonly accountId: number;
}

/** Stores a new area; undefined when its account uses the external id already. */
export async function insertArea(
  tx: Tx,
  owner: AreaOwner,
  definition: AreaDefinition,
  figures: AreaFigures,
): Promise<StoredArea | undefined> {
  const [row] = await tx<RawArea[]>`
    insert into area ${insertRows([{ world_id: owner.worldId, account_id: owner.accountId, ...columns(definition, figures) }])}
    on conflict (account_id, external_id) do nothing
    returning *`;
  return row === undefined ? undefined : storedArea(row);
}

/**
 * Stores new areas and returns their ids, in order; null when one of their codes exists already (the caller then
 * undoes its transaction).
 */
export async function insertAreas(
  tx: Tx,
  owner: AreaOwner,
  areas: readonly { definition: AreaDefinition; figures: AreaFigures }[],
): Promise<number[] | null> {
  const ids: number[] = [];
  for (let at = 0; at < areas.length; at += INSERT_CHUNK) {
    const rows = areas.slice(at, at + INSERT_CHUNK).map(({ definition, figures }) => ({
      world_id: owner.worldId,
      account_id: owner.accountId,
      ...columns(definition, figures),
    }));
    const inserted = await tx<{ id: number }[]>`
      insert into area ${insertRows(rows)} on conflict (account_id, external_id) do nothing returning id`;
    if (inserted.length < rows.length) return null;
    ids.push(...inserted.map((row) => row.id));
  }
  return ids;
}

/** Rows of one insert: 32 KB of vertices each at most, so a statement stays near a megabyte. */
const INSERT_CHUNK = 25;

/** Replaces an area that the caller has locked. Throws 23505 when its account uses the new external id already. */
export async function updateArea(
  tx: Tx,
  areaId: number,
  definition: AreaDefinition,
  figures: AreaFigures,
): Promise<StoredArea> {
  const [row] = await tx<RawArea[]>`
    update area set ${assignments(columns(definition, figures))}, revision = revision + 1 where id = ${areaId} returning *`;
  if (row === undefined) throw new Error(`area ${areaId} was locked and is gone`);
  return storedArea(row);
}

/** Deletes an area of these worlds and returns its world; undefined when there is none. */
export async function deleteArea(
  tx: Tx,
  worldIds: readonly number[],
  areaId: number,
): Promise<number | undefined> {
  const [row] = await tx<{ world_id: number }[]>`
    delete from area where id = ${areaId} and world_id = any(${list(worldIds)}::bigint[]) returning world_id`;
  return row?.world_id;
}

/** An area of these worlds, locked for the transaction. */
export async function lockArea(
  tx: Tx,
  worldIds: readonly number[],
  areaId: number,
): Promise<StoredArea | undefined> {
  const [row] = await tx<RawArea[]>`
    select * from area where id = ${areaId} and world_id = any(${list(worldIds)}::bigint[]) for update`;
  return row === undefined ? undefined : storedArea(row);
}

/** The areas that an account made under these external ids, locked in ascending order. */
export async function lockAreasByExternalId(
  tx: Tx,
  accountId: number,
  externalIds: readonly string[],
): Promise<StoredArea[]> {
  const rows = await tx<RawArea[]>`
    select * from area where account_id = ${accountId} and external_id = any(${[...externalIds]}::text[])
    order by id for update`;
  return rows.map(storedArea);
}

/** Like `lockAreasByExternalId`, without the lock. */
export async function selectAreasByExternalId(
  sql: Sql,
  accountId: number,
  externalIds: readonly string[],
): Promise<StoredArea[]> {
  const rows = await sql<RawArea[]>`
    select * from area where account_id = ${accountId} and external_id = any(${[...externalIds]}::text[])`;
  return rows.map(storedArea);
}

export async function selectAreasById(sql: Sql, ids: readonly number[]): Promise<StoredArea[]> {
  const rows = await sql<RawArea[]>`select * from area where id = any(${list(ids)}::bigint[])`;
  return rows.map(storedArea);
}

/** All areas of all worlds, some at a time. */
export async function copyAreas(
  tx: Tx,
  use: (areas: readonly StoredArea[]) => void | Promise<void>,
): Promise<void> {
  const query = tx`
    select id, world_id, account_id, name, color, type, center_lat, center_lng, radius_m, buffer_m, points,
      external_id, dwell_seconds, area_m2, perimeter_m, length_m, south, west, north, east, created_at, revision
    from area`;
  await copyRows(tx, query, (row) => storedArea(copiedArea(row)), use);
}

/** Reads the columns above, in their order. */
function copiedArea(row: CopiedRow): RawArea {
  return {
    id: row.int8(),
    world_id: row.int8(),
    account_id: row.int8(),
    name: row.text(),
    color: row.word(),
    type: row.word() as AreaType,
    center_lat: row.float8OrNull(),
    center_lng: row.float8OrNull(),
    radius_m: row.float8OrNull(),
    buffer_m: row.float8OrNull(),
    points: row.bytes(),
    external_id: row.textOrNull(),
    dwell_seconds: row.int4(),
    area_m2: row.float8OrNull(),
    perimeter_m: row.float8OrNull(),
    length_m: row.float8OrNull(),
    south: row.float8(),
    west: row.float8(),
    north: row.float8(),
    east: row.float8(),
    created_at: new Date(row.timestampMs()),
    revision: row.int8(),
  };
}

function columns({ name, color, geometry, externalId, dwellSeconds }: AreaDefinition, figures: AreaFigures) {
  const points = 'points' in geometry ? geometry.points : NO_POINTS;
  return {
    name,
    color,
    type: geometry.type,
    center_lat: figures.center?.lat ?? null,
    center_lng: figures.center?.lng ?? null,
    radius_m: 'radiusM' in geometry ? geometry.radiusM : null,
    buffer_m: 'bufferM' in geometry ? geometry.bufferM : null,
    points: Buffer.from(points.buffer, points.byteOffset, points.byteLength),
    external_id: externalId,
    dwell_seconds: dwellSeconds,
    area_m2: figures.areaM2,
    perimeter_m: figures.perimeterM,
    length_m: figures.lengthM,
    south: figures.bounds.south,
    west: figures.bounds.west,
    north: figures.bounds.north,
    east: figures.bounds.east,
  };
}

const NO_POINTS = new Float64Array(0);

function storedArea(row: RawArea): StoredArea {
  const center =
    row.center_lat === null || row.center_lng === null ? null : { lat: row.center_lat, lng: row.center_lng };
  return {
    id: row.id,
    worldId: row.world_id,
    accountId: row.account_id,
    definition: {
      name: row.name,
      color: row.color,
      geometry: geometryOf(row, center),
      externalId: row.external_id,
      dwellSeconds: row.dwell_seconds,
    },
    figures: {
      areaM2: row.area_m2,
      perimeterM: row.perimeter_m,
      lengthM: row.length_m,
      bounds: { south: row.south, west: row.west, north: row.north, east: row.east },
      center,
    },
    createdAtMs: row.created_at.getTime(),
    revision: row.revision,
  };
}

function geometryOf(row: RawArea, center: LatLng | null): AreaGeometry {
  switch (row.type) {
    case 'polygon':
      return { type: row.type, points: doublesOf(row.points) };
    case 'polyline':
      invariant(row.buffer_m !== null, `track ${row.id} is stored without a margin`);
      return { type: row.type, points: doublesOf(row.points), bufferM: row.buffer_m };
    case 'circle':
    case 'point':
      invariant(
        center !== null && row.radius_m !== null,
        `area ${row.id} is stored without centre or radius`,
      );
      return { type: row.type, center, radiusM: row.radius_m };
  }
}

/** A copy: the driver's buffers are slices of larger ones at any offset. */
function doublesOf({ buffer, byteOffset, byteLength }: Uint8Array): Float64Array {
  const view = new DataView(buffer, byteOffset, byteLength);
  const doubles = numbers(byteLength / DOUBLE_BYTES);
  for (let i = 0; i < doubles.length; i++) doubles[i] = view.getFloat64(DOUBLE_BYTES * i, true);
  return doubles;
}

const DOUBLE_BYTES = Float64Array.BYTES_PER_ELEMENT;

/** True for the failure of an update whose external id another area of its account has. */
export function isExternalIdTaken(error: unknown): boolean {
  return isTaken(error, 'area_external_id');
}
