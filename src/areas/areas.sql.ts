import type { LatLng } from '../geo/wgs84.ts';
import { invariant } from '../lib/errors.ts';
import { NumberPages } from '../lib/numberPages.ts';
import { type CopiedRow, copyRows } from '../postgres/copyRows.ts';
import { arrayLiteral, type Sql, type Tx } from '../postgres/sql.ts';
import { isUniqueViolation } from '../postgres/sqlErrors.ts';
import { assignments, insertRows } from '../postgres/sqlText.ts';
import type { AreaDefinition, AreaGeometry, AreaMeasures, AreaType, StoredArea } from './area.ts';
import { AREA_LIMITS } from './areaFields.ts';

/** The account that creates an area, and the world that it belongs to. */
export interface AreaOwner {
  readonly worldId: number;
  readonly accountId: number;
}

/** Stores a new area; undefined when its account uses the external id already. */
export async function insertArea(
  tx: Tx,
  owner: AreaOwner,
  definition: AreaDefinition,
  measures: AreaMeasures,
): Promise<StoredArea | undefined> {
  const [row] = await tx<RawArea[]>`
    insert into area ${insertRows([{ world_id: owner.worldId, account_id: owner.accountId, ...columns(definition, measures) }])}
    on conflict (account_id, external_id) do nothing
    returning *`;
  return row === undefined ? undefined : storedArea(row);
}

/**
 * Stores new areas and returns their ids, in order. Null when one of their external ids exists already: then the caller
 * must roll back.
 */
export async function insertAreas(
  tx: Tx,
  owner: AreaOwner,
  areas: readonly { definition: AreaDefinition; measures: AreaMeasures }[],
): Promise<number[] | null> {
  const ids: number[] = [];
  for (let at = 0; at < areas.length; at += INSERT_CHUNK) {
    const rows = areas.slice(at, at + INSERT_CHUNK).map(({ definition, measures }) => ({
      world_id: owner.worldId,
      account_id: owner.accountId,
      ...columns(definition, measures),
    }));
    const inserted = await tx<{ id: number }[]>`
      insert into area ${insertRows(rows)} on conflict (account_id, external_id) do nothing returning id`;
    if (inserted.length < rows.length) return null;
    ids.push(...inserted.map((row) => row.id));
  }
  return ids;
}

/** Rows of one insert. A row has at most 32 KB of vertices, so a statement has about a megabyte. */
const INSERT_CHUNK = 25;

/** Replaces an area that the caller has locked. Throws 23505 when its account uses the new external id already. */
export async function updateArea(
  tx: Tx,
  areaId: number,
  definition: AreaDefinition,
  measures: AreaMeasures,
): Promise<StoredArea> {
  const [row] = await tx<RawArea[]>`
    update area set ${assignments(columns(definition, measures))}, revision = revision + 1 where id = ${areaId} returning *`;
  if (row === undefined) throw new Error(`area ${areaId} was locked and is gone`);
  return storedArea(row);
}

export async function deleteArea(tx: Tx, worldIds: readonly number[], areaId: number): Promise<void> {
  await tx`delete from area where id = ${areaId} and world_id = any(${arrayLiteral(worldIds)}::bigint[])`;
}

/** An area of these worlds, locked for the transaction. */
export async function lockArea(
  tx: Tx,
  worldIds: readonly number[],
  areaId: number,
): Promise<StoredArea | undefined> {
  const [row] = await tx<RawArea[]>`
    select * from area where id = ${areaId} and world_id = any(${arrayLiteral(worldIds)}::bigint[]) for update`;
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

/** The areas of these worlds that an account made under an external id, by id. */
export async function selectExternalIds(
  sql: Sql,
  accountId: number,
  worldIds: readonly number[],
): Promise<readonly { id: number; externalId: string; vertices: number }[]> {
  return sql<{ id: number; externalId: string; vertices: number }[]>`
    select id, external_id as "externalId", coalesce(octet_length(points) / 16, 0) as vertices from area
    where account_id = ${accountId} and external_id is not null
      and world_id = any(${arrayLiteral(worldIds)}::bigint[])
    order by id`;
}

export async function selectAreasById(sql: Sql, ids: readonly number[]): Promise<StoredArea[]> {
  const rows = await sql<RawArea[]>`select * from area where id = any(${arrayLiteral(ids)}::bigint[])`;
  return rows.map(storedArea);
}

/** Gives all areas of all worlds to `use`, in batches: see copyRows. `vertices`: where those of each area are put. */
export async function copyAreas(
  tx: Tx,
  use: (areas: Iterable<StoredArea>) => void | Promise<void>,
  vertices: VertexMemory = vertexPages,
): Promise<void> {
  const query = tx`
    select id, world_id, account_id, name, color, type, center_lat, center_lng, radius_m, buffer_m, points,
      external_id, dwell_seconds, area_m2, perimeter_m, length_m, south, west, north, east, created_at, revision
    from area`;
  await copyRows(tx, query, (row) => areaOf(copiedArea(row), vertices), use);
}

/** Reads the columns above, in their order. */
function copiedArea(row: CopiedRow) {
  return {
    id: row.int8(),
    world_id: row.int8(),
    account_id: row.int8(),
    name: row.text(),
    color: row.internedText(),
    type: row.internedText() as AreaType,
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

type RawArea = ReturnType<typeof copiedArea>;

/** The columns of a geometry. */
export type RawGeometry = Readonly<
  Pick<RawArea, 'id' | 'type' | 'center_lat' | 'center_lng' | 'radius_m' | 'buffer_m' | 'points'>
>;

function columns(
  { name, color, geometry, externalId, dwellSeconds }: AreaDefinition,
  measures: AreaMeasures,
) {
  const points = 'points' in geometry ? geometry.points : NO_POINTS;
  return {
    name,
    color,
    type: geometry.type,
    center_lat: measures.center?.lat ?? null,
    center_lng: measures.center?.lng ?? null,
    radius_m: 'radiusM' in geometry ? geometry.radiusM : null,
    buffer_m: 'bufferM' in geometry ? geometry.bufferM : null,
    points: Buffer.from(points.buffer, points.byteOffset, points.byteLength),
    external_id: externalId,
    dwell_seconds: dwellSeconds,
    area_m2: measures.areaM2,
    perimeter_m: measures.perimeterM,
    length_m: measures.lengthM,
    south: measures.bounds.south,
    west: measures.bounds.west,
    north: measures.bounds.north,
    east: measures.bounds.east,
  };
}

const NO_POINTS = new Float64Array(0);

function storedArea(row: RawArea): StoredArea {
  return areaOf(row, vertexPages);
}

function areaOf(row: RawArea, vertices: VertexMemory): StoredArea {
  return {
    id: row.id,
    worldId: row.world_id,
    accountId: row.account_id,
    definition: {
      name: row.name,
      color: row.color,
      geometry: geometryOf(row, vertices),
      externalId: row.external_id,
      dwellSeconds: row.dwell_seconds,
    },
    measures: {
      areaM2: row.area_m2,
      perimeterM: row.perimeter_m,
      lengthM: row.length_m,
      bounds: { south: row.south, west: row.west, north: row.north, east: row.east },
      center: centerOf(row),
    },
    createdAtMs: row.created_at.getTime(),
    revision: row.revision,
  };
}

function centerOf({ center_lat: lat, center_lng: lng }: RawGeometry): LatLng | null {
  return lat === null || lng === null ? null : { lat, lng };
}

/** The geometry of an area or of a past form of it. */
export function geometryOf(row: RawGeometry, vertices: VertexMemory = vertexPages): AreaGeometry {
  const center = centerOf(row);
  switch (row.type) {
    case 'polygon':
      return { type: row.type, points: doublesOf(row.points, vertices) };
    case 'polyline':
      invariant(row.buffer_m !== null, `polyline ${row.id} is stored without a buffer`);
      return { type: row.type, points: doublesOf(row.points, vertices), bufferM: row.buffer_m };
    case 'circle':
    case 'point':
      invariant(
        center !== null && row.radius_m !== null,
        `area ${row.id} is stored without centre or radius`,
      );
      return { type: row.type, center, radiusM: row.radius_m };
  }
}

/** Gives numbers for the vertices of an area. */
type VertexMemory = Pick<NumberPages, 'take'>;

/** Memory for vertices that are valid only until the next ones are taken. */
export function passingVertices(): VertexMemory {
  let numbers = new Float64Array(2 * AREA_LIMITS.maxPoints);
  return {
    take: (length) => {
      if (length > numbers.length) numbers = new Float64Array(length);
      return numbers.subarray(0, length);
    },
  };
}

/** The same area, with a copy of its vertices that is kept. */
export function withOwnVertices(area: StoredArea): StoredArea {
  const { geometry } = area.definition;
  if (!('points' in geometry)) return area;
  const points = vertexPages.take(geometry.points.length);
  points.set(geometry.points);
  return { ...area, definition: { ...area.definition, geometry: { ...geometry, points } } };
}

/** Copies the bytes, because the driver's buffers begin at any offset. */
function doublesOf({ buffer, byteOffset, byteLength }: Uint8Array, vertices: VertexMemory): Float64Array {
  const view = new DataView(buffer, byteOffset, byteLength);
  const doubles = vertices.take(byteLength / DOUBLE_BYTES);
  for (let i = 0; i < doubles.length; i++) doubles[i] = view.getFloat64(DOUBLE_BYTES * i, true);
  return doubles;
}

const DOUBLE_BYTES = Float64Array.BYTES_PER_ELEMENT;
const vertexPages = new NumberPages();

/** True when an update failed because another area of the account has its external id. */
export function isExternalIdTaken(error: unknown): boolean {
  return isUniqueViolation(error, 'area_external_id');
}

/**
 * Locks the external ids of an account until the transaction ends: only one transaction at a time adds some. The holder
 * sees every area that has one, so it cannot lose a race for an id. And two imports of the same ids in different order
 * cannot deadlock. Must be called before any area is locked.
 */
export async function lockExternalIds(tx: Tx, accountId: number): Promise<void> {
  // The text of the lock is the same in all versions: their pods run side by side.
  await tx`select pg_advisory_xact_lock(hashtextextended(${`area codes ${accountId}`}, 0))`;
}

/** The account that made an area of these worlds. Its external id is unique among the areas of that account. */
export async function selectAreaMaker(
  tx: Tx,
  worldIds: readonly number[],
  areaId: number,
): Promise<number | undefined> {
  const [row] = await tx<{ account_id: number }[]>`
    select account_id from area where id = ${areaId} and world_id = any(${arrayLiteral(worldIds)}::bigint[])`;
  return row?.account_id;
}

/** The world of an area, and the worlds it could be moved to. */
interface AreaWorlds {
  readonly worldId: number;
  readonly accountWorldId: number;
  /** Null when its account belongs to no organization. */
  readonly organizationWorldId: number | null;
}

/** Locks an area until the transaction ends; undefined when it does not exist. */
export async function lockAreaWorlds(tx: Tx, areaId: number): Promise<AreaWorlds | undefined> {
  const [row] = await tx<AreaWorlds[]>`
    select r.world_id as "worldId", a.world_id as "accountWorldId", o.world_id as "organizationWorldId"
    from area r
    join account a on a.id = r.account_id
    left join organization o on o.id = a.organization_id
    where r.id = ${areaId} for update of r`;
  return row;
}

export async function moveArea(tx: Tx, areaId: number, worldId: number): Promise<void> {
  await tx`update area set world_id = ${worldId}, revision = revision + 1 where id = ${areaId}`;
}

export interface AreaSize {
  readonly areas: number;
  /** Vertices of polygons and polylines; circles and points have none. */
  readonly vertices: number;
}

/** What an account has and may have, counted over the areas that it made, shared ones too. */
export interface AreaQuota extends AreaSize {
  readonly maxAreas: number;
  readonly maxVertices: number;
}

/**
 * What an account has and may have. Locked until the transaction ends, so nobody else can add to it before that.
 *
 * Must be called after the locks of areas and before any write that the triggers count, even a deletion or a smaller
 * shape. Otherwise such a write could need this lock while a creation under the same external id holds it and waits for
 * the write.
 */
export async function lockAreaQuota(tx: Tx, accountId: number): Promise<AreaQuota> {
  const lock = () => tx<AreaQuota[]>`
    select u.areas, u.vertices, p.max_areas as "maxAreas", p.max_area_vertices as "maxVertices"
    from area_usage u join account a on a.id = u.account_id join plan p on p.name = a.plan
    where u.account_id = ${accountId} for update of u`;
  const [quota] = await lock();
  if (quota !== undefined) return quota;
  await tx`insert into area_usage (account_id) values (${accountId}) on conflict do nothing`;
  const [added] = await lock();
  invariant(added, 'an account that writes exists');
  return added;
}

/** Like `lockAreaQuota`, without the lock. */
export async function selectAreaQuota(sql: Sql, accountId: number): Promise<AreaQuota> {
  const [quota] = await sql<AreaQuota[]>`
    select coalesce(u.areas, 0) as areas, coalesce(u.vertices, 0) as vertices, p.max_areas as "maxAreas",
      p.max_area_vertices as "maxVertices"
    from account a join plan p on p.name = a.plan left join area_usage u on u.account_id = a.id
    where a.id = ${accountId}`;
  invariant(quota, 'an account that asks exists');
  return quota;
}
