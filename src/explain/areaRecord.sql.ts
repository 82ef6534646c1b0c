import { geometryOf, type RawGeometry } from '../areas/areas.sql.ts';
import { type Shape, toShape } from '../areas/shape.ts';
import { isProducedSince } from '../events/eventPartitions.sql.ts';
import type { Direction } from '../events/fleetEvent.ts';
import { arrayLiteral, type Sql, type Tx } from '../postgres/sql.ts';
import { eventKey, type RecordedEvents } from './backtest/areaReplay.ts';
import type { Past, PastShape, Until } from './watchPeriods.ts';

/** The past of an area and a device; null when one of them no longer exists. */
export async function selectPast(
  tx: Tx,
  areaId: number,
  deviceId: number,
): Promise<(Past & { readonly worldIds: readonly number[] }) | null> {
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
  let shape = shapeOf(first, areaId);
  const revisions = rows.map((row) => {
    if (row.is_new_form) shape = shapeOf(row, areaId);
    const { valid_from, world_id: worldId, dwell_seconds: dwellSeconds } = row;
    return { sinceMs: valid_from.getTime(), worldId, dwellSeconds, shape };
  });
  const deviceWorlds = worlds.map(({ world_id, until }) => ended(world_id, until));
  const worldIds = [...new Set([...rows, ...worlds].map(({ world_id }) => world_id))];
  const organizations = await selectOrganizations(tx, worldIds);
  return { createdAtMs: first.created_at.getTime(), revisions, deviceWorlds, organizations, worldIds };
}

interface RawRevision extends Omit<RawGeometry, 'id'> {
  valid_from: Date;
  world_id: number;
  dwell_seconds: number;
  created_at: Date;
  is_new_form: boolean;
}

function shapeOf(row: RawRevision, areaId: number): PastShape {
  let shape: Shape | null = null;
  return {
    compiled: () => {
      shape ??= toShape(geometryOf({ ...row, id: areaId }));
      return shape;
    },
  };
}

/** The worlds of the organizations that the accounts of these worlds belonged to. Other worlds are left out. */
async function selectOrganizations(
  tx: Tx,
  worldIds: readonly number[],
): Promise<Map<number, Until<number | null>[]>> {
  const rows = await tx<{ world_id: number; organization: number | null; until: Date | null }[]>`
    select a.world_id, m.organization_world_id as organization, m.until
    from account a join membership_end m on m.account_id = a.id
    where a.world_id = any(${arrayLiteral(worldIds)}::bigint[])
    union all
    select a.world_id, o.world_id, null from account a left join organization o on o.id = a.organization_id
    where a.world_id = any(${arrayLiteral(worldIds)}::bigint[])
    order by until nulls last`;
  const byWorld = [...Map.groupBy(rows, (row) => row.world_id)];
  return new Map(byWorld.map(([id, own]) => [id, own.map((row) => ended(row.organization, row.until))]));
}

function ended<Value>(value: Value, until: Date | null): Until<Value> {
  return { value, untilMs: until?.getTime() ?? Number.POSITIVE_INFINITY };
}

/** A geofence event of an area and a device as it was recorded. */
export interface RecordedCrossing {
  readonly id: number;
  /** The world that may read it. */
  readonly worldId: number;
  readonly direction: Direction;
  readonly occurredAtMs: number;
  /** The first inside point of its stay. */
  readonly enteredAtMs: number;
}

interface RawCrossing {
  id: number;
  world_id: number;
  direction: Direction;
  occurred_at: Date;
  entered_at: string;
}

/** Whose events are read: those of a device and an area, in all worlds in which they may be. */
export interface CrossingSource {
  readonly areaId: number;
  readonly deviceId: number;
  readonly imei: string;
  readonly worldIds: readonly number[];
}

/** The events between two times, both included, oldest first. */
export async function selectCrossings(
  tx: Tx,
  source: CrossingSource,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<RecordedCrossing[]> {
  const rows = await tx<RawCrossing[]>`
    select ${columns(tx)} from fleet_event
    where ${isOf(tx, source)} and ${isProducedSince(tx, fromMs)} and occurred_at between ${new Date(fromMs)} and ${new Date(toMs)}
    order by occurred_at, id`;
  return rows.map(crossingOf);
}

/** The newest event before a time. */
export async function selectLastCrossing(
  tx: Tx,
  source: CrossingSource,
  beforeMs: number,
): Promise<RecordedCrossing | undefined> {
  const [row] = await tx<RawCrossing[]>`
    select ${columns(tx)} from fleet_event
    where ${isOf(tx, source)} and occurred_at < ${new Date(beforeMs)}
    order by occurred_at desc, id desc limit 1`;
  return row === undefined ? undefined : crossingOf(row);
}

const columns = (tx: Sql | Tx) => tx`id, world_id, direction, occurred_at, data->>'enteredAt' as entered_at`;

const isOf = (tx: Sql | Tx, { areaId, deviceId, imei, worldIds }: CrossingSource) => tx`
  device_imei = ${imei} and world_id = any(${arrayLiteral(worldIds)}::bigint[]) and type = 'geofence'
  and area_id = ${areaId} and device_id = ${deviceId}`;

function crossingOf(row: RawCrossing): RecordedCrossing {
  return {
    id: row.id,
    worldId: row.world_id,
    direction: row.direction,
    occurredAtMs: row.occurred_at.getTime(),
    enteredAtMs: Date.parse(row.entered_at),
  };
}

/** Whether the shape, the minimum stay or the owner of an area has ever been changed; its name and color do not count. */
export async function selectHasPastForms(sql: Sql, areaId: number): Promise<boolean> {
  const rows = await sql`select from area_revision where area_id = ${areaId} and revision > 1 limit 1`;
  return rows.length > 0;
}

/** The recorded events of an area that may be read in these worlds, for each of the spans, whose ends are included. */
export async function selectRecorded(
  tx: Tx,
  worldIds: readonly number[],
  areaId: number,
  spans: readonly { readonly imei: string; readonly fromMs: number; readonly toMs: number }[],
): Promise<RecordedEvents[]> {
  const recorded = spans.map(() => new Set<number>());
  if (spans.length === 0) return recorded;
  const rows = await tx<{ n: number; direction: Direction; occurred_at: Date }[]>`
    select d.n, e.direction, e.occurred_at
    from unnest(
      ${arrayLiteral(spans.map((span) => span.imei))}::text[],
      ${arrayLiteral(spans.map((span) => span.fromMs))}::float8[],
      ${arrayLiteral(spans.map((span) => span.toMs))}::float8[]) with ordinality d (imei, since, until, n)
    cross join lateral (
      select direction, occurred_at from fleet_event
      where device_imei = d.imei and world_id = any(${arrayLiteral(worldIds)}::bigint[]) and type = 'geofence'
        and area_id = ${areaId} and ${isProducedSince(tx, Math.min(...spans.map(({ fromMs }) => fromMs)))}
        and occurred_at >= to_timestamp(d.since / 1000)
        and occurred_at <= to_timestamp(d.until / 1000)
      offset 0) e`;
  for (const row of rows) recorded[row.n - 1]?.add(eventKey(row.direction, row.occurred_at.getTime()));
  return recorded;
}
