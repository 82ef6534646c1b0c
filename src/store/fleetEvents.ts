import type { EventType } from '../engine/eventTypes.ts';
import type { LatLng } from '../geometry/latLng.ts';
import type { Sql, Tx } from './sql.ts';
import { list } from './tracks.ts';

/** An event about to be stored, in the world that may read it. `data` is its wire form. */
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

export type Direction = 'entry' | 'exit';

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
      ${list(events.map((e) => e.worldId))}::bigint[], ${list(events.map((e) => e.deviceId))}::bigint[],
      ${events.map((e) => e.imei)}::text[], ${events.map((e) => e.type)}::text[],
      ${events.map((e) => e.message)}::text[], ${events.map((e) => JSON.stringify(e.data))}::text[],
      ${list(events.map((e) => e.occurredAtMs))}::float8[],
      ${list(events.map((e) => e.area?.id ?? null))}::bigint[],
      ${events.map((e) => e.area?.direction ?? null)}::text[]
    ) with ordinality as e (world_id, device_id, imei, type, message, data, occurred, area, direction, n)
    order by n returning id`;
  return rows.map((row) => row.id);
}

export interface EventFilter {
  readonly type: EventType | null;
  /** Geofence events of one direction only. */
  readonly direction: Direction | null;
  readonly imei: string | null;
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

/** Events of the given worlds, newest first (equal times: higher id first). Each world is read by its own index. */
export async function selectFleetEvents(
  sql: Sql,
  worldIds: readonly number[],
  filter: EventFilter,
  page: { limit: number; offset: number },
): Promise<FleetEvent[]> {
  const reach = page.limit + page.offset;
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
    select e.* from unnest(${list(worldIds)}::bigint[]) as w (id)
    cross join lateral (
      select id, type, message, device_imei, data, read, occurred_at from fleet_event
      where world_id = w.id
        ${filter.type === null ? sql`` : sql`and type = ${filter.type}`}
        ${filter.direction === null ? sql`` : sql`and direction = ${filter.direction}`}
        ${filter.imei === null ? sql`` : sql`and device_imei = ${filter.imei}`}
        ${filter.fromMs === null ? sql`` : sql`and occurred_at >= ${new Date(filter.fromMs)}`}
        ${filter.toMs === null ? sql`` : sql`and occurred_at <= ${new Date(filter.toMs)}`}
      order by occurred_at desc, id desc limit ${reach}) e
    order by e.occurred_at desc, e.id desc limit ${page.limit} offset ${page.offset}`;
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

/** Entries and exits of one area that may be read in the given worlds, newest first. */
export async function selectAreaEvents(
  sql: Sql,
  worldIds: readonly number[],
  areaId: number,
  filter: AreaEventFilter,
  page: { limit: number; offset: number },
): Promise<AreaEvent[]> {
  const rows = await sql<
    { id: number; device_imei: string; direction: Direction; position: LatLng; occurred_at: Date }[]
  >`
    select id, device_imei, direction, data->'position' as position, occurred_at from fleet_event
    where area_id = ${areaId} and world_id = any(${list(worldIds)}::bigint[])
      ${filter.direction === null ? sql`` : sql`and direction = ${filter.direction}`}
      ${filter.imei === null ? sql`` : sql`and device_imei = ${filter.imei}`}
      ${filter.fromMs === null ? sql`` : sql`and occurred_at >= ${new Date(filter.fromMs)}`}
      ${filter.toMs === null ? sql`` : sql`and occurred_at <= ${new Date(filter.toMs)}`}
    order by occurred_at desc, id desc limit ${page.limit} offset ${page.offset}`;
  return rows.map((row) => ({
    id: row.id,
    areaId,
    imei: row.device_imei,
    direction: row.direction,
    position: row.position,
    occurredAtMs: row.occurred_at.getTime(),
  }));
}
