import { invariant } from '../../base/invariant.ts';
import { eventKey, type RecordedEvents } from '../../engine/backtest/areaReplay.ts';
import type { Direction } from '../devices/fleetEvents.ts';
import { CopiedRow } from '../sql/copiedRow.ts';
import type { Sql, Tx } from '../sql/sql.ts';
import { arrayLiteral, integers } from '../sql/sqlText.ts';

/** A device and the time from which its points are read. */
export interface DevicePart {
  readonly deviceId: number;
  readonly imei: string;
  readonly fromMs: number;
}

/** Where a device was last before a time. */
export interface LastPoint {
  readonly deviceId: number;
  readonly recordedAtMs: number;
  readonly lat: number;
  readonly lng: number;
}

/** The newest point of each device before a time and not before another one; devices without such a point are left out. */
export async function selectLastPoints(
  sql: Tx,
  deviceIds: readonly number[],
  beforeMs: number,
  oldestMs: number,
): Promise<LastPoint[]> {
  if (deviceIds.length === 0 || oldestMs >= beforeMs) return [];
  const rows = await sql<{ id: number; recorded_at: Date; latitude: number; longitude: number }[]>`
    select d.id, p.recorded_at, p.latitude, p.longitude
    from unnest(${arrayLiteral(deviceIds)}::bigint[]) d (id)
    cross join lateral (
      select recorded_at, latitude, longitude from position
      where device_id = d.id and recorded_at < ${new Date(beforeMs)} and recorded_at >= ${new Date(oldestMs)}
      order by recorded_at desc limit 1) p`;
  return rows.map((row) => ({
    deviceId: row.id,
    recordedAtMs: row.recorded_at.getTime(),
    lat: row.latitude,
    lng: row.longitude,
  }));
}

/**
 * For each of these points the time of the newest one of its device that is at least `lookBackMs` older; where there is
 * none, the time so far back. No point before `oldestMs` is looked at.
 */
export async function selectStarts(
  sql: Sql,
  points: readonly LastPoint[],
  lookBackMs: number,
  oldestMs: number,
): Promise<Map<number, number>> {
  const starts = new Map(points.map(({ deviceId, recordedAtMs }) => [deviceId, recordedAtMs - lookBackMs]));
  if (points.length === 0 || lookBackMs === 0) return starts;
  const newestMs = Math.max(...starts.values());
  const rows = await sql<{ id: number; recorded_at: Date }[]>`
    select d.id, p.recorded_at
    from unnest(${arrayLiteral([...starts.keys()])}::bigint[], ${arrayLiteral([...starts.values()])}::float8[]) d (id, until)
    cross join lateral (
      select recorded_at from position
      where device_id = d.id and recorded_at <= to_timestamp(d.until / 1000)
        and recorded_at between ${new Date(oldestMs)} and ${new Date(newestMs)}
      order by recorded_at desc limit 1) p`;
  for (const row of rows) starts.set(row.id, row.recorded_at.getTime());
  for (const [deviceId, startMs] of starts) starts.set(deviceId, Math.max(startMs, oldestMs));
  return starts;
}

/** How many points a part has, as far as they were counted. */
export interface CountedPoints {
  /** The number of the part, from 0. */
  readonly part: number;
  readonly count: number;
  readonly lastMs: number;
}

/** Counts the points of these parts up to `toMs`, in their order, until there are `max`. Parts without points are left out. */
export async function countPoints(
  sql: Sql,
  parts: readonly DevicePart[],
  toMs: number,
  max: number,
): Promise<CountedPoints[]> {
  if (parts.length === 0) return [];
  const rows = await sql<{ n: number; count: number; last: Date }[]>`
    select n, count(*) as count, max(recorded_at) as last from (
      select d.n, p.recorded_at
      from unnest(
        ${arrayLiteral(parts.map((part) => part.deviceId))}::bigint[],
        ${arrayLiteral(parts.map((part) => part.fromMs))}::float8[]) with ordinality d (id, since, n)
      cross join lateral (
        select recorded_at from position
        where device_id = d.id and recorded_at >= to_timestamp(d.since / 1000)
          and recorded_at between ${new Date(earliestOf(parts))} and ${new Date(toMs)}
        order by recorded_at) p
      limit ${max}) c
    group by n order by n`;
  return rows.map(({ n, count, last }) => ({ part: n - 1, count, lastMs: last.getTime() }));
}

/** Half a megabyte, and some tens of milliseconds of a connection. */
export const REPLAY_PAGE_POINTS = 16_384;

/** Points of several devices, column by column: by device in the order asked for, then by time. Used again and again. */
export class ReplayPage {
  count = 0;
  /** The number of the part that each point belongs to, from 0. */
  readonly parts = new Int32Array(REPLAY_PAGE_POINTS);
  readonly recordedAtMs = new Float64Array(REPLAY_PAGE_POINTS);
  readonly lats = new Float64Array(REPLAY_PAGE_POINTS);
  readonly lngs = new Float64Array(REPLAY_PAGE_POINTS);

  /** True when there may be more points of these parts. */
  get isFull(): boolean {
    return this.count === REPLAY_PAGE_POINTS;
  }
}

/** Fills `page` with the first points of these parts up to `toMs`. */
export async function readReplayPage(
  sql: Sql | Tx,
  parts: readonly DevicePart[],
  toMs: number,
  page: ReplayPage,
): Promise<void> {
  const row = new CopiedRow();
  page.count = 0;
  // A subquery with an order is never joined in another way than device by device, so the order of the whole is known.
  const query = sql`
    select d.n, p.recorded_at, p.latitude, p.longitude
    from unnest(
      '{${integers(parts.map((part) => part.deviceId))}}'::bigint[],
      '{${integers(parts.map((part) => part.fromMs))}}'::float8[]) with ordinality d (id, since, n)
    cross join lateral (
      select recorded_at, latitude, longitude from position
      where device_id = d.id and recorded_at >= to_timestamp(d.since / 1000)
        and recorded_at between to_timestamp(${integers([earliestOf(parts)])} / 1000::float8)
          and to_timestamp(${integers([toMs])} / 1000::float8)
      order by recorded_at) p
    limit ${integers([REPLAY_PAGE_POINTS])}`;
  await sql.copy(query, (bytes) => {
    row.feed(bytes);
    while (row.next()) putPoint(page, row);
  });
}

function putPoint(page: ReplayPage, row: CopiedRow): void {
  const n = page.count++;
  const part = row.int8() - 1;
  const recordedAtMs = row.timestampMs();
  if (n > 0) {
    const isNext =
      part === page.parts[n - 1] ? recordedAtMs > page.recordedAtMs[n - 1]! : part > page.parts[n - 1]!;
    invariant(isNext, 'points are read in the order of their devices and times');
  }
  page.parts[n] = part;
  page.recordedAtMs[n] = recordedAtMs;
  page.lats[n] = row.float8();
  page.lngs[n] = row.float8();
}

function earliestOf(parts: readonly DevicePart[]): number {
  return parts.reduce((earliestMs, { fromMs }) => Math.min(earliestMs, fromMs), Number.MAX_SAFE_INTEGER);
}

/** A device and a time, both ends included. */
export interface DeviceSpan {
  readonly imei: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The recorded events of an area that may be read in these worlds, for each of the spans. */
export async function selectRecorded(
  tx: Tx,
  worldIds: readonly number[],
  areaId: number,
  spans: readonly DeviceSpan[],
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
        and area_id = ${areaId} and occurred_at >= to_timestamp(d.since / 1000)
        and occurred_at <= to_timestamp(d.until / 1000)
      offset 0) e`;
  for (const row of rows) recorded[row.n - 1]?.add(eventKey(row.direction, row.occurred_at.getTime()));
  return recorded;
}
