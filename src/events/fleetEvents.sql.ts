import type { Worlds } from '../access/credentials.ts';
import type { LatLng } from '../geo/wgs84.ts';
import { arrayLiteral, type Sql } from '../postgres/sql.ts';
import { integers, type SqlText, shapeName, unionAll } from '../postgres/sqlText.ts';
import type { EventCuts } from './eventPartitions.sql.ts';
import { DIRECTIONS, type Direction, EVENT_TYPES, type EventType } from './fleetEvent.ts';

/** An event as it is listed, under the names of the API and of the table. `data` has the keys of v3. */
export interface FleetEvent {
  readonly id: number;
  readonly type: EventType;
  readonly message: string;
  readonly device_imei: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly read: boolean;
  readonly occurred_at: Date;
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
  worldIds: Worlds,
  filter: EventFilter,
  page: Page,
  cuts: EventCuts,
): Promise<readonly FleetEvent[]> {
  const walks = worldIds.flatMap((worldId) => {
    const inWorld = sql`
      world_id = ${worldId} ${ofSeenDevices(sql, worldIds)}
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
  const columns = sql`id, type, message, device_imei, data, read, occurred_at`;
  return selectNewest(
    sql,
    cuts,
    columns,
    walks,
    page,
    shapeName(`fleet_events_${worldsShape(worldIds)}`, filter),
  );
}

/** A geofence event as the list of its area shows it. */
export interface AreaEvent {
  readonly id: number;
  readonly area_id: number;
  /** Its IMEI. */
  readonly device: string;
  readonly event: Direction;
  readonly position: LatLng;
  readonly timestamp: Date;
}

/**
 * Entries and exits of one area that may be read in the given worlds, newest first. The same cost; for one device, the
 * cost of walking its geofence events.
 */
export async function selectAreaEvents(
  sql: Sql,
  worldIds: Worlds,
  areaId: number,
  filter: Omit<EventFilter, 'type'>,
  page: Page,
  cuts: EventCuts,
): Promise<readonly AreaEvent[]> {
  const directions = filter.direction === null ? DIRECTIONS : [filter.direction];
  const walks = worldIds.flatMap((worldId) => {
    const inWorld = sql`
      area_id = ${areaId} and world_id = ${worldId} ${ofSeenDevices(sql, worldIds)} ${during(sql, filter)}`;
    if (filter.imei === null)
      return directions.map((direction) => sql`${inWorld} and direction = ${direction}`);
    const narrowed = filter.direction === null ? sql`` : sql`and direction = ${filter.direction}`;
    return [sql`${inWorld} and device_imei = ${filter.imei} and type = 'geofence' ${narrowed}`];
  });
  const columns = sql`
    id, area_id, device_imei as device, direction as event, data->'position' as position, occurred_at as timestamp`;
  return selectNewest(
    sql,
    cuts,
    columns,
    walks,
    page,
    shapeName(`area_events_${worldsShape(worldIds)}`, filter),
  );
}

/** A condition on events: for callers who are limited to groups, only those of devices that they see now. */
export function ofSeenDevices(sql: Sql, worlds: Worlds): SqlText {
  if (worlds.groups === undefined) return sql``;
  return sql`and exists (
    select from device d where d.imei = device_imei and d.world_id = any(${arrayLiteral(worlds)}::bigint[])
      and d.groups && ${[...worlds.groups.names]}::text[])`;
}

/** Names the statement for callers of such worlds: how many there are, and whether they are limited. */
export function worldsShape({ length, groups }: Worlds): string {
  return groups === undefined ? String(length) : `${length}_limited`;
}

/**
 * The second limit as a pair, in the order of every index: of two plain limits that it does not know Postgres assumes that
 * they select one event in 200, and takes any index for so few.
 */
const during = (sql: Sql, { fromMs, toMs }: { fromMs: number | null; toMs: number | null }) => sql`
  ${fromMs === null ? sql`` : sql`and occurred_at >= ${new Date(fromMs)}`}
  ${toMs === null ? sql`` : sql`and (occurred_at, id) <= (${new Date(toMs)}, ${Number.MAX_SAFE_INTEGER})`}`;

/** Query plans are kept for pages that end within these numbers of events. */
const REACHES = [50, 100, 200];

/**
 * A page of all events that any of the conditions selects: reads only ids until the page is found. Each condition is
 * walked in every partition, and the walks are merged. Planning this takes longer than running it, so the plans of near
 * pages are kept. Postgres keeps a plan only for constant limits, so there are three of them, and the rows read beyond
 * the page are dropped here.
 */
async function selectNewest<Row extends object>(
  sql: Sql,
  cuts: EventCuts,
  columns: SqlText,
  walks: readonly SqlText[],
  { limit, offset }: Page,
  name: string,
): Promise<readonly Row[]> {
  const near = REACHES.find((rows) => limit + offset <= rows);
  const reach = integers([near ?? limit + offset]);
  const merged = unionAll(
    walks.flatMap((condition) =>
      cuts.ranges(sql).map(
        (range) => sql`(
        select id, occurred_at from fleet_event where ${condition} and ${range}
        order by occurred_at desc, id desc limit ${reach})`,
      ),
    ),
  );
  const ofPage = near === undefined ? sql`limit ${limit} offset ${offset}` : sql`limit ${reach}`;
  const page = sql<Row[]>`
    select ${columns}
    from (select id from (${merged}) w order by occurred_at desc, id desc ${ofPage}) k join fleet_event using (id)
    order by occurred_at desc, id desc`;
  if (near === undefined) return page;
  return (await page.named(`${name}_${near}_${cuts.name}`)).slice(offset, offset + limit);
}
