import type { Bounds } from '../geo/measure.ts';
import { DAY_MS, HOUR_MS } from '../lib/time.ts';
import { CopiedRow } from '../postgres/copyRows.ts';
import type { Query, Sql, Tx } from '../postgres/sql.ts';
import { instant, integers, RawSql } from '../postgres/sqlText.ts';
import type { PackedBlob } from './codec/packedBlob.ts';
import { COLUMN_NAMES, type PointColumns, sliceColumns } from './codec/pointColumns.ts';
import type { PackedRow, PackedSpan, SelectedPacked } from './packedPoints.sql.ts';
import { PACKED_LIST, packedRowOf } from './packedPoints.sql.ts';
import { positionColumns } from './points.sql.ts';

/** A device and the time of its oldest point that is stored as a row; null: it has none in the time asked for. */
interface UnpackedDevice {
  readonly deviceId: number;
  readonly imei: string;
  readonly firstMs: number | null;
}

/** How far a pass has come in one world. */
export interface WorldPlace {
  readonly worldId: number;
  /** All devices up to this one are done. */
  readonly afterImei: string;
  /** Points of the next device before this time are done. */
  readonly fromMs: number;
}

/** The worlds that have devices. */
export async function selectWorldsOfDevices(sql: Query): Promise<number[]> {
  const rows = await sql<{ world_id: number }[]>`
    select world_id from device_usage where devices > 0 order by world_id`;
  return rows.map((row) => row.world_id);
}

/** The next devices of a world by IMEI, with their oldest rows before `beforeMs`; of the first, from `fromMs` on. */
export async function selectUnpackedDevices(
  sql: Query,
  { worldId, afterImei, fromMs }: WorldPlace,
  beforeMs: number,
  limit: number,
): Promise<UnpackedDevice[]> {
  const rows = await sql<{ id: number; imei: string; first: Date | null }[]>`
    select d.id, d.imei, (
      select recorded_at from position
      where device_id = d.id and recorded_at < ${instant(beforeMs)}
        and recorded_at >= case when n = 1 then ${instant(fromMs)} else '-infinity'::timestamptz end
      order by recorded_at limit 1) as first
    from (
      select id, imei, row_number() over (order by imei) as n from device
      where world_id = ${worldId} and imei > ${afterImei} order by imei limit ${limit}
    ) d order by d.imei`;
  return rows.map(({ id, imei, first }) => ({ deviceId: id, imei, firstMs: first?.getTime() ?? null }));
}

/** The devices of a sample, and the days of each. */
const SAMPLED_DEVICES = 30;
const SAMPLED_DAYS = 60;
/** A day with fewer rows has only late points. */
const DAY_ROWS = 10;

/**
 * How many days before `beforeMs` have rows that are not packed, up to 60: the mean of some devices that stand together
 * anywhere in the table. One index probe for each device and day.
 */
export async function selectUnpackedDays(
  sql: Query,
  beforeMs: number,
  receivedBeforeMs: number | null,
): Promise<number> {
  const [row] = await sql<{ days: number }[]>`
    with sampled as materialized (
      select device_id as id from device_state
      where device_id >= (select floor(random() * max(device_id)) from device_state) and recorded_at is not null
      order by device_id limit ${SAMPLED_DEVICES}
    )
    select coalesce((
        select count(*) from sampled cross join generate_series(1, ${SAMPLED_DAYS}::int) as day
        where exists (
          select from position
          where device_id = sampled.id and recorded_at < ${instant(beforeMs)} and ${receivedBefore(receivedBeforeMs)}
            and recorded_at >= ${instant(beforeMs - SAMPLED_DAYS * DAY_MS)}
            and recorded_at >= ${instant(beforeMs)} - make_interval(hours => 24 * day)
            and recorded_at < ${instant(beforeMs)} - make_interval(hours => 24 * (day - 1))
          offset ${DAY_ROWS - 1} limit 1)
      )::float8 / nullif((select count(*) from sampled), 0), 0) as days`;
  return row?.days ?? 0;
}

/** The time of the first point of a device that is stored as a row, from `fromMs` on and before `beforeMs`. */
export async function selectNextRowMs(
  sql: Query,
  deviceId: number,
  fromMs: number,
  beforeMs: number,
): Promise<number | null> {
  const [row] = await sql<{ recorded_at: Date }[]>`
    select recorded_at from position
    where device_id = ${deviceId} and recorded_at >= ${instant(fromMs)} and recorded_at < ${instant(beforeMs)}
    order by recorded_at limit 1`;
  return row?.recorded_at.getTime() ?? null;
}

/**
 * Rows that are read and deleted at a time: what waits for this pod or a processor of Postgres waits for half a
 * millisecond.
 */
const READ_AT_A_TIME = 400;
const DELETED_AT_A_TIME = 200;

/** Only rows that came before this time, or for which it is not known when they came; null: all. */
const receivedBefore = (ms: number | null) =>
  new RawSql(ms === null ? 'true' : `coalesce(received_at, '-infinity') < ${instant(ms).text}`);

/** Lets others go first, between two parts of a work. */
type Rest = () => Promise<void>;

/** The first points of a device that are stored as rows, from `fromMs` on and before `beforeMs`, and came before a time. */
export async function selectRows(
  sql: Sql,
  deviceId: number,
  fromMs: number,
  beforeMs: number,
  receivedBeforeMs: number | null,
  limit: number,
  rest: Rest,
): Promise<PointColumns> {
  const { list, rowsUpTo } = positionColumns(COLUMN_NAMES);
  const rows = rowsUpTo(limit);
  for (let hasMore = true; hasMore; ) {
    const atOnce = Math.min(READ_AT_A_TIME, limit - rows.count);
    const nextMs = rows.count === 0 ? fromMs : rows.lastMs + 1;
    const query = sql`
      select ${list} from position
      where device_id = ${integers([deviceId])} and recorded_at >= ${instant(nextMs)} and recorded_at < ${instant(beforeMs)}
        and ${receivedBefore(receivedBeforeMs)}
      order by recorded_at limit ${integers([atOnce])}`;
    const before = rows.count;
    const row = new CopiedRow();
    await sql.copy(query, (bytes) => {
      row.feed(bytes);
      while (row.next()) rows.read(row, row.timestampMs());
    });
    hasMore = rows.count - before === atOnce && rows.count < limit;
    if (hasMore) await rest();
  }
  return sliceColumns(rows.points, 0, rows.count);
}

/** The packed rows of a device that begin in a period, in order, without their points. `toMs` is not included. */
export async function selectPackedSpans(
  sql: Query,
  deviceId: number,
  fromMs: number,
  toMs: number,
): Promise<PackedSpan[]> {
  const rows = await sql<{ first_at: Date; last_at: Date; count: number }[]>`
    select first_at, last_at, count from packed_points
    where device_id = ${deviceId} and first_at >= ${new Date(fromMs)} and first_at < ${new Date(toMs)}
    order by first_at`;
  return rows.map(({ first_at, last_at, count }) => ({
    deviceId,
    firstMs: first_at.getTime(),
    lastMs: last_at.getTime(),
    count,
  }));
}

/** The row of packed points that begins at this time, if it is there. */
export async function selectPackedRow(
  sql: Query,
  deviceId: number,
  firstMs: number,
): Promise<PackedRow | null> {
  const [row] = await sql<SelectedPacked[]>`
    select ${PACKED_LIST} from packed_points where device_id = ${deviceId} and first_at = ${new Date(firstMs)}`;
  return row === undefined ? null : packedRowOf(deviceId, row);
}

/**
 * Puts packed points in the place of rows: all of a device from the first to the last of them that came before a time; null:
 * all, where nobody follows its points. `replaced` was packed before, and its points are in `packed` as well. False: the
 * device, its rows or what was packed are not the same any more, or somebody follows them now, and the transaction must be
 * rolled back. The device is locked as for new points, so none of them can be a repeat of what moves, and who begins to
 * follow them later begins behind these.
 */
export async function replaceRows(
  tx: Tx,
  deviceId: number,
  rows: PointColumns,
  receivedBeforeMs: number | null,
  replaced: PackedRow | null,
  packed: readonly (readonly [PointColumns, PackedBlob])[],
  rest: Rest,
): Promise<boolean> {
  const locked = await tx`select from device_state where device_id = ${deviceId} for update`;
  if (locked.count === 0) return false;
  if (receivedBeforeMs === null && (await isFollowed(tx, deviceId))) return false;
  let deleted = 0;
  for (let n = 0; n < rows.count; n += DELETED_AT_A_TIME) {
    const lastMs = rows.recordedAtMs[Math.min(n + DELETED_AT_A_TIME, rows.count) - 1] as number;
    const { count } = await tx`
      delete from position where device_id = ${integers([deviceId])}
        and recorded_at >= ${instant(rows.recordedAtMs[n] as number)} and recorded_at < ${instant(lastMs + 1)}
        and ${receivedBefore(receivedBeforeMs)}`;
    deleted += count;
    await rest();
  }
  if (deleted !== rows.count) return false;
  if (replaced !== null) {
    const { count } = await tx`
      delete from packed_points where device_id = ${deviceId} and first_at = ${new Date(replaced.firstMs)}
        and checksum = ${replaced.checksum} and count = ${replaced.count}`;
    if (count !== 1) return false;
  }
  for (const [{ count, recordedAtMs, lats, lngs }, { checksum, codec, bytes }] of packed) {
    const { south, west, north, east } = pointBounds(lats, lngs);
    const firstAt = new Date(recordedAtMs[0] as number);
    const lastAt = new Date(recordedAtMs[count - 1] as number);
    await tx`
      insert into packed_points
        (device_id, first_at, last_at, south, west, north, east, count, checksum, codec, points)
      values (${deviceId}, ${firstAt}, ${lastAt}, ${south}, ${west}, ${north}, ${east}, ${count}, ${checksum},
        ${codec}, ${bytes})`;
  }
  return true;
}

/** How long points stay rows after they came, in worlds whose points somebody follows: longer than a cursor lives. */
export const FOLLOWED_MS = 44 * HOUR_MS;

async function isFollowed(tx: Tx, deviceId: number): Promise<boolean> {
  const found = await tx`
    select from device d join followed_world f on f.world_id = d.world_id
    where d.id = ${deviceId} and f.until > clock_timestamp()`;
  return found.count > 0;
}

/** The worlds in which somebody follows all points with a cursor. */
export async function selectFollowedWorlds(sql: Query): Promise<ReadonlySet<number>> {
  const rows = await sql<{ world_id: number }[]>`
    select world_id from followed_world where until > clock_timestamp()`;
  return new Set(rows.map((row) => row.world_id));
}

/** The narrowest bounds of these positions, of which there is at least one. */
export function pointBounds(lats: Float64Array, lngs: Float64Array): Bounds {
  let south = 90;
  let north = -90;
  let [west, east] = [180, -180];
  // The same with the antimeridian in the middle: the lowest of the eastern half, the highest of the western one.
  let [easternWest, westernEast] = [180, -180];
  for (let n = 0; n < lats.length; n++) {
    const lat = lats[n] as number;
    const lng = lngs[n] as number;
    south = Math.min(south, lat);
    north = Math.max(north, lat);
    west = Math.min(west, lng);
    east = Math.max(east, lng);
    if (lng >= 0) easternWest = Math.min(easternWest, lng);
    else westernEast = Math.max(westernEast, lng);
  }
  const crosses = west < 0 && east >= 0 && westernEast + 360 - easternWest < east - west;
  return crosses ? { south, west: easternWest, north, east: westernEast } : { south, west, north, east };
}

/** A pod that packs renews its lease with every batch of devices. */
const LEASE_SECONDS = 120;

/**
 * Takes the lease of packing, or renews it. False: another pod packs, or there is nothing to do yet; neither counts when
 * `isUrgent`. The lease saves work; what is packed is right without it.
 */
export async function takePackingLease(sql: Sql, holder: string, isUrgent: boolean): Promise<boolean> {
  const { count } = await sql`
    update packing set holder = ${holder}, leased_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
    where ${isUrgent}
      or ((holder = ${holder} or leased_until < clock_timestamp()) and pass_due_at <= clock_timestamp())`;
  return count > 0;
}

/** Renews the lease. False: another pod has taken over. */
export async function keepPackingLease(sql: Sql, holder: string): Promise<boolean> {
  const { count } = await sql`
    update packing set leased_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
    where holder = ${holder}`;
  return count > 0;
}

/** Ends a pass over all devices. The next begins after a time. */
export async function endPackingPass(sql: Sql, holder: string, pauseSeconds: number): Promise<void> {
  await sql`
    update packing set holder = null, leased_until = '-infinity',
      pass_due_at = clock_timestamp() + make_interval(secs => ${pauseSeconds})
    where holder = ${holder}`;
}

/** Forgets which points came late, some of those that no cursor may ask for. Their rows stay. Returns how many. */
export async function pruneLatePoints(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from late_point where ctid = any(array(
      select ctid from late_point where stored_at < clock_timestamp() - ${FOLLOWED_MS} * interval '1 millisecond'
      limit ${LATE_POINTS_AT_A_TIME}))`;
  return count;
}

/** One statement for all would run into its time limit where a customer sends millions. */
const LATE_POINTS_AT_A_TIME = 20_000;
