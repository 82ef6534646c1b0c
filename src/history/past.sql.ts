import type { AreaGeometry } from '../areas/area.ts';
import { geometryOf, type RawGeometry } from '../areas/areas.sql.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import { arrayLiteral } from '../postgres/sqlText.ts';

const PRUNE_CHUNK = 5_000;

/**
 * Deletes a chunk of what areas, devices and memberships were like up to `beforeMs`, when no stored point can be as old;
 * returns how many rows.
 */
export async function prunePast(sql: Sql, beforeMs: number): Promise<number> {
  const before = new Date(beforeMs);
  const revisions = await sql`
    delete from area_revision where (area_id, revision) in (
      select area_id, revision from area_revision where valid_to < ${before} order by valid_to limit ${PRUNE_CHUNK})`;
  const moves = await sql`
    delete from device_move where id in (
      select id from device_move where until < ${before} order by until limit ${PRUNE_CHUNK})`;
  const memberships = await sql`
    delete from membership_end where id in (
      select id from membership_end where until < ${before} order by until limit ${PRUNE_CHUNK})`;
  return revisions.count + moves.count + memberships.count;
}

/** Accounts of one call, and revisions that are deleted of each. */
const ACCOUNTS_AT_A_TIME = 20;
const REVISIONS_AT_A_TIME = 2_000;

/**
 * Deletes the oldest past shapes of accounts that have more vertices of them than their plan gives for present shapes.
 * Returns how many: when there are more, the rest is for the next call.
 */
export async function trimPastShapes(sql: Sql): Promise<number> {
  const accounts = await sql<{ id: number; excess: number }[]>`
    select u.account_id as id, u.past_vertices - p.max_area_vertices as excess
    from area_usage u join account a on a.id = u.account_id join plan p on p.name = a.plan
    where u.past_vertices > p.max_area_vertices order by random() limit ${ACCOUNTS_AT_A_TIME}`;
  let trimmed = 0;
  for (const { id, excess } of accounts) {
    const { count } = await sql`
      with oldest as (
        select r.area_id, r.revision, r.valid_to, octet_length(r.points) / 16 as vertices
        from area a join area_revision r on r.area_id = a.id
        where a.account_id = ${id} and r.valid_to is not null
        order by r.valid_to, r.area_id, r.revision limit ${REVISIONS_AT_A_TIME}
      ), counted as (
        select area_id, revision,
          sum(vertices) over (order by valid_to, area_id, revision) - vertices as before
        from oldest
      )
      delete from area_revision where (area_id, revision) in (
        select area_id, revision from counted where before < ${excess})`;
    trimmed += count;
  }
  return trimmed;
}

/** A past or present form of an area. */
export interface AreaRevision {
  readonly sinceMs: number;
  readonly worldId: number;
  readonly dwellSeconds: number;
  readonly geometry: AreaGeometry;
  /** Number of the form, from 0: equal where only dwell or world differ from the revision before. */
  readonly form: number;
}

/** What was so until a time. */
interface Ended<Value> {
  readonly value: Value;
  readonly untilMs: number;
}

/** The past of an area and a device, of which `watchPeriodsOf` in explain makes periods. */
export interface StoredPast {
  readonly createdAtMs: number;
  readonly revisions: readonly AreaRevision[];
  /** The last until Infinity. */
  readonly deviceWorlds: readonly Ended<number>[];
  /** By the world of each account to which the area or the device belonged. */
  readonly organizations: ReadonlyMap<number, readonly Ended<number | null>[]>;
}

interface RawRevision extends Omit<RawGeometry, 'id'> {
  valid_from: Date;
  world_id: number;
  dwell_seconds: number;
  created_at: Date;
  is_new_form: boolean;
}

/** The past of an area and a device; null when one of them does not exist any more. */
export async function selectPast(tx: Tx, areaId: number, deviceId: number): Promise<StoredPast | null> {
  const rows = await tx<RawRevision[]>`
    select r.*, a.created_at, (r.type, r.center_lat, r.center_lng, r.radius_m, r.buffer_m, r.points)
        is distinct from lag((r.type, r.center_lat, r.center_lng, r.radius_m, r.buffer_m, r.points)) over (order by r.revision)
        as is_new_form
    from area_revision r join area a on a.id = r.area_id where r.area_id = ${areaId} order by r.revision`;
  const worlds = await tx<{ world_id: number; until: Date | null }[]>`
    select world_id, until from device_move where device_id = ${deviceId}
    union all select world_id, null from device where id = ${deviceId}
    order by until nulls last`;
  const [first] = rows;
  if (first === undefined || worlds.at(-1)?.until !== null) return null;
  const deviceWorlds = worlds.map(({ world_id, until }) => ended(world_id, until));
  let form = -1;
  const revisions = rows.map((row): AreaRevision => {
    if (row.is_new_form) form++;
    return {
      sinceMs: row.valid_from.getTime(),
      worldId: row.world_id,
      dwellSeconds: row.dwell_seconds,
      geometry: geometryOf({ ...row, id: areaId }),
      form,
    };
  });
  const worldIds = new Set([
    ...revisions.map(({ worldId }) => worldId),
    ...deviceWorlds.map(({ value }) => value),
  ]);
  const organizations = await selectOrganizations(tx, [...worldIds]);
  return { createdAtMs: first.created_at.getTime(), revisions, deviceWorlds, organizations };
}

/** The worlds of the organizations that the accounts of these worlds belonged to. Other worlds are left out. */
async function selectOrganizations(
  tx: Tx,
  worldIds: readonly number[],
): Promise<Map<number, Ended<number | null>[]>> {
  const rows = await tx<{ world_id: number; organization: number | null; until: Date | null }[]>`
    select a.world_id, m.organization_world_id as organization, m.until
    from account a join membership_end m on m.account_id = a.id
    where a.world_id = any(${arrayLiteral(worldIds)}::bigint[])
    union all
    select a.world_id, o.world_id, null from account a left join organization o on o.id = a.organization_id
    where a.world_id = any(${arrayLiteral(worldIds)}::bigint[])
    order by until nulls last`;
  const organizations = new Map<number, Ended<number | null>[]>();
  for (const { world_id: worldId, organization, until } of rows) {
    const list = organizations.get(worldId) ?? [];
    organizations.set(worldId, list);
    list.push(ended(organization, until));
  }
  return organizations;
}

function ended<Value>(value: Value, until: Date | null): Ended<Value> {
  return { value, untilMs: until?.getTime() ?? Number.POSITIVE_INFINITY };
}
