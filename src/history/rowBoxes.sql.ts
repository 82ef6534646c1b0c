import type { IndexBox } from '../geo/measure.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../lib/time.ts';
import { arrayLiteral, type Sql } from '../postgres/sql.ts';
import type { PointRange, TimeWindow } from './packedPoints.sql.ts';

/** The time of one box, as in box_old_points. */
const BOX_MS = 2 * HOUR_MS;
/** Points that are younger have no box yet. box_old_points takes all that come when they are older than ten minutes. */
const YOUNG_MS = 12 * MINUTE_MS;
/** How much time one pass makes boxes of at most. */
const PASS_MS = HOUR_MS;
/** Between two passes. */
const PAUSE_SECONDS = 300;
/** By then points are packed. box_old_points makes boxes for four days. */
const OF_USE_DAYS = 3;
const KEPT_DAYS = 5;

/** Locked together for some milliseconds. */
const DEVICES_AT_A_TIME = 100;
/** After each piece of work it rests for this many times as long. */
const REST = 1;

/**
 * Makes boxes of the points that are rows, every few minutes, so that a search for the devices at a place reads few rows. A
 * pass that is cut off begins again: boxes only grow.
 */
export async function boxRows(
  sql: Sql,
  rest: (ms: number) => Promise<unknown>,
  isStopping: () => boolean,
): Promise<void> {
  const window = await takeBoxing(sql);
  if (window === null) return;
  let afterDeviceId: number | null = 0;
  while (!isStopping()) {
    const startMs = performance.now();
    afterDeviceId = await boxDevices(sql, afterDeviceId, DEVICES_AT_A_TIME, window);
    if (afterDeviceId === null) return endBoxing(sql, window);
    await rest(REST * (performance.now() - startMs));
  }
}

/** From when to when every row has a box, by the time of its recording: the end is not included. Null: never. */
export async function selectBoxedTime(sql: Sql): Promise<TimeWindow | null> {
  const [row] = await sql<{ since: Date; until: Date }[]>`
    select greatest(since, now() - make_interval(days => ${OF_USE_DAYS})) as since, until
    from row_boxing where until is not null`;
  return row === undefined ? null : { fromMs: row.since.getTime(), toMs: row.until.getTime() };
}

/**
 * The times in which these devices may have rows in a box of the earth, within a window that has boxes, by device, then by
 * time.
 */
export async function selectBoxedWindows(
  sql: Sql,
  deviceIds: readonly number[],
  { minX, minY, maxX, maxY }: IndexBox,
  { fromMs, toMs }: TimeWindow,
): Promise<PointRange[]> {
  const rows = await sql<{ device_id: number; begins_at: Date }[]>`
    select device_id, begins_at from row_box
    where device_id = any(${arrayLiteral(deviceIds)}::bigint[])
      and begins_at > ${new Date(fromMs - BOX_MS)} and begins_at <= ${new Date(toMs)}
      and north >= ${minY} and south <= ${maxY} and east >= ${minX} and west <= ${maxX}
    order by device_id, begins_at`;
  return rows.map(({ device_id: deviceId, begins_at }) => ({
    deviceId,
    fromMs: Math.max(fromMs, begins_at.getTime()),
    toMs: Math.min(toMs, begins_at.getTime() + BOX_MS - 1),
  }));
}

/** What the next pass makes boxes of, by the clock of Postgres; the end is not included. Null: it is not due yet. */
async function takeBoxing(sql: Sql): Promise<TimeWindow | null> {
  const [row] = await sql<{ until: Date | null; now: Date }[]>`
    update row_boxing set due_at = clock_timestamp() + make_interval(secs => ${PAUSE_SECONDS})
    where due_at <= clock_timestamp() returning until, clock_timestamp() as now`;
  if (row === undefined) return null;
  const nowMs = row.now.getTime();
  const fromMs = row.until?.getTime() ?? Number.NEGATIVE_INFINITY;
  if (fromMs < nowMs - OF_USE_DAYS * DAY_MS) {
    const startAt = new Date(nowMs - YOUNG_MS);
    await sql`update row_boxing set since = ${startAt}, until = ${startAt}`;
    return null;
  }
  const toMs = Math.min(nowMs - YOUNG_MS, fromMs + PASS_MS);
  return toMs > fromMs ? { fromMs, toMs } : null;
}

/**
 * Makes boxes of the rows of the next devices by id. Returns the last of them; null after the last device. Each device is
 * locked against new points, so what the boxes do not hold comes later, and box_old_points gets it.
 */
async function boxDevices(
  sql: Sql,
  afterDeviceId: number,
  limit: number,
  { fromMs, toMs }: TimeWindow,
): Promise<number | null> {
  return sql.begin(async (tx) => {
    const locked = await tx<{ device_id: number }[]>`
      select device_id from device_state where device_id > ${afterDeviceId}
      order by device_id limit ${limit} for key share`;
    const deviceIds = locked.map((row) => row.device_id);
    await tx`
      insert into row_box as b (device_id, begins_at, south, west, north, east)
      select device_id, date_bin('2 hours', recorded_at, timestamptz '2000-01-01 00:00:00+00') as begins_at,
        min(latitude), min(longitude), max(latitude), max(longitude)
      from position where device_id = any(${arrayLiteral(deviceIds)}::bigint[])
        and recorded_at >= ${new Date(fromMs)} and recorded_at < ${new Date(toMs)}
      group by 1, 2 order by 1, 2
      on conflict (device_id, begins_at) do update set south = least(b.south, excluded.south),
        west = least(b.west, excluded.west), north = greatest(b.north, excluded.north),
        east = greatest(b.east, excluded.east)
      where excluded.south < b.south or excluded.west < b.west or excluded.north > b.north or excluded.east > b.east`;
    return deviceIds.at(-1) ?? null;
  });
}

/** All devices have boxes of this time. Another pod may have been faster; then nothing changes. */
async function endBoxing(sql: Sql, { fromMs, toMs }: TimeWindow): Promise<void> {
  await sql`update row_boxing set until = ${new Date(toMs)} where until = ${new Date(fromMs)}`;
  await sql`delete from row_box where begins_at < now() - make_interval(days => ${KEPT_DAYS})`;
}
