import { EVENT_TYPES, type EventType } from '../../engine/eventTypes.ts';
import type { LatLng } from '../../geometry/latLng.ts';
import type { Sql, Tx } from '../sql/sql.ts';
import { arrayLiteral, type SqlText, shapeName, unionAll } from '../sql/sqlText.ts';

/** An event about to be stored, in the world that may read it. `data` is as on the wire. */
export interface NewFleetEvent {
  readonly worldId: number;
  readonly deviceId: number;
  readonly imei: string;
  readonly type: EventType;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly occurredAtMs: number;
  /** Of geofence events. */
  readonly area?: { readonly id: number; readonly direction: Direction };
}

const DIRECTIONS = ['entry', 'exit'] as const;

export type Direction = (typeof DIRECTIONS)[number];

export interface FleetEvent {
  readonly id: number;
  readonly type: EventType;
  readonly message: string;
  readonly imei: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly read: boolean;
  readonly occurredAtMs: number;
}

/** Stores events and returns their ids, which rise in the order given. */
export async function insertFleetEvents(tx: Tx, events: readonly NewFleetEvent[]): Promise<number[]> {
  if (events.length === 0) return [];
  const rows = await tx<{ id: number }[]>`
    insert into fleet_event
      (world_id, device_id, device_imei, type, message, data, occurred_at, area_id, direction)
    select world_id, device_id, imei, type, message, data::jsonb, to_timestamp(occurred / 1000), area, direction
    from unnest(
      ${arrayLiteral(events.map((e) => e.worldId))}::bigint[], ${arrayLiteral(events.map((e) => e.deviceId))}::bigint[],
      ${events.map((e) => e.imei)}::text[], ${events.map((e) => e.type)}::text[],
      ${events.map((e) => e.message)}::text[], ${events.map((e) => JSON.stringify(e.data))}::text[],
      ${arrayLiteral(events.map((e) => e.occurredAtMs))}::float8[],
      ${arrayLiteral(events.map((e) => e.area?.id ?? null))}::bigint[],
      ${events.map((e) => e.area?.direction ?? null)}::text[]
    ) with ordinality as e (world_id, device_id, imei, type, message, data, occurred, area, direction, n)
    order by n returning id`;
  return rows.map((row) => row.id);
}

/** The page of a list. */
interface Page {
  readonly limit: number;
  readonly offset: number;
}

export interface EventFilter {
  readonly type: EventType | null;
  /** Geofence events of one direction only. */
  readonly direction: Direction | null;
  readonly imei: string | null;
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

/**
 * Events of the given worlds, newest first (equal times: higher id first). Costs index walks of limit + offset keys: each
 * walk reads one index at one value of all its leading columns, and the walks are merged.
 */
export async function selectFleetEvents(
  sql: Sql,
  worldIds: readonly number[],
  filter: EventFilter,
  page: Page,
): Promise<FleetEvent[]> {
  const walks = worldIds.flatMap((worldId) => {
    const inWorld = sql`
      world_id = ${worldId}
      ${filter.direction === null ? sql`` : sql`and direction = ${filter.direction}`}
      ${during(sql, filter)}`;
    if (filter.imei === null) {
      // A direction has an index of its own, without the type.
      const isTyped = filter.type !== null && filter.direction === null;
      return [sql`${inWorld} ${isTyped ? sql`and type = ${filter.type}` : sql``}`];
    }
    const types = filter.type === null ? EVENT_TYPES : [filter.type];
    return types.map((type) => sql`${inWorld} and device_imei = ${filter.imei} and type = ${type}`);
  });
  const rows = await sql<
    {
      id: number;
      type: EventType;
      message: string;
      device_imei: string;
      data: Record<string, unknown>;
      read: boolean;
      occurred_at: Date;
    }[]
  >`
    select e.id, e.type, e.message, e.device_imei, e.data, e.read, e.occurred_at
    from (${newest(sql, walks, page)}) k join fleet_event e using (id)
    order by e.occurred_at desc, e.id desc`.named(shapeName(`fleet_events_${worldIds.length}`, filter));
  return rows.map((row) => ({
    id: row.id,
    type: row.type,
    message: row.message,
    imei: row.device_imei,
    data: row.data,
    read: row.read,
    occurredAtMs: row.occurred_at.getTime(),
  }));
}

/** A geofence event as the list of its area shows it. */
export interface AreaEvent {
  readonly id: number;
  readonly areaId: number;
  readonly imei: string;
  readonly direction: Direction;
  readonly position: LatLng;
  readonly occurredAtMs: number;
}

export interface AreaEventFilter {
  readonly direction: Direction | null;
  readonly imei: string | null;
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

/**
 * Entries and exits of one area that may be read in the given worlds, newest first. The same cost; for one device, the
 * cost of walking its geofence events.
 */
export async function selectAreaEvents(
  sql: Sql,
  worldIds: readonly number[],
  areaId: number,
  filter: AreaEventFilter,
  page: Page,
): Promise<AreaEvent[]> {
  const directions = filter.direction === null ? DIRECTIONS : [filter.direction];
  const walks = worldIds.flatMap((worldId) => {
    const inWorld = sql`area_id = ${areaId} and world_id = ${worldId} ${during(sql, filter)}`;
    if (filter.imei === null)
      return directions.map((direction) => sql`${inWorld} and direction = ${direction}`);
    const narrowed = filter.direction === null ? sql`` : sql`and direction = ${filter.direction}`;
    return [sql`${inWorld} and device_imei = ${filter.imei} and type = 'geofence' ${narrowed}`];
  });
  const rows = await sql<
    { id: number; device_imei: string; direction: Direction; position: LatLng; occurred_at: Date }[]
  >`
    select e.id, e.device_imei, e.direction, e.data->'position' as position, e.occurred_at
    from (${newest(sql, walks, page)}) k join fleet_event e using (id)
    order by e.occurred_at desc, e.id desc`.named(shapeName(`area_events_${worldIds.length}`, filter));
  return rows.map((row) => ({
    id: row.id,
    areaId,
    imei: row.device_imei,
    direction: row.direction,
    position: row.position,
    occurredAtMs: row.occurred_at.getTime(),
  }));
}

const during = (sql: Sql, { fromMs, toMs }: { fromMs: number | null; toMs: number | null }) => sql`
  ${fromMs === null ? sql`` : sql`and occurred_at >= ${new Date(fromMs)}`}
  ${toMs === null ? sql`` : sql`and occurred_at <= ${new Date(toMs)}`}`;

/** The ids of a page of all that any of the conditions selects. Reads only ids until the page is found. */
const newest = (sql: Sql, walks: readonly SqlText[], { limit, offset }: Page) => sql`
  select id from (${unionAll(
    walks.map(
      (condition) => sql`(
        select id, occurred_at from fleet_event where ${condition}
        order by occurred_at desc, id desc limit ${limit + offset})`,
    ),
  )}) w order by occurred_at desc, id desc limit ${limit} offset ${offset}`;
