import { decodeStays, encodeStays, type Stay } from '../devices/stays/packedStays.ts';
import { invariant } from '../lib/errors.ts';
import { arrayLiteral, type Sql, type Tx } from '../postgres/sql.ts';
import { RawSql, type SqlText } from '../postgres/sqlText.ts';
import { type DeviceState, decodeRepeats, encodeRepeats } from './deviceEvents.ts';
import type { Fix, RefusedStays } from './fix.ts';

/** What the next fix of a device is evaluated against, and the world that owns the device now. */
export interface LockedState {
  readonly worldId: number;
  readonly state: DeviceState;
  readonly stays: readonly Stay[];
  /** Of the state before the next message. */
  readonly revision: number;
  /** When the device moved last, by the server's clock. */
  readonly movedAtMs: number;
  /** For the points that it has stored lately (see commitFixes.ts), by the clock of Postgres. */
  readonly owedMs: number;
}

/**
 * Locks the states of these devices until the transaction ends, and returns them. The lock serializes the fixes of one
 * device across pods. It never waits: a device that another transaction has locked is `lockedElsewhere`, so no device
 * delays another, even if a pod stalls with a lock. A device that is in neither does not exist. `lock` locks some devices.
 */
export async function lockDeviceStates(
  tx: Tx,
  deviceIds: readonly number[],
  lock: typeof lockStates = lockStates,
): Promise<{
  readonly locked: ReadonlyMap<number, LockedState>;
  readonly lockedElsewhere: ReadonlySet<number>;
}> {
  const locked = new Map<number, LockedState>();
  for (const slice of rowSlices(deviceIds)) await lock(tx, slice, locked);
  const missing = deviceIds.filter((id) => !locked.has(id));
  if (missing.length === 0) return { locked, lockedElsewhere: NOBODY };
  const elsewhere = await tx<{ device_id: number }[]>`
    select device_id from device_state where device_id = any(${arrayLiteral(missing)}::bigint[])`;
  return { locked, lockedElsewhere: new Set(elsewhere.map((row) => row.device_id)) };
}

/** Locks the states of some devices and puts those into `locked` that no other transaction has locked. */
async function lockStates(
  tx: Tx,
  deviceIds: readonly number[],
  locked: Map<number, LockedState>,
): Promise<void> {
  const rows = await tx<
    {
      device_id: number;
      world_id: number;
      recorded_at: Date | null;
      latitude: number | null;
      longitude: number | null;
      altitude_m: number | null;
      speed_kmh: number | null;
      heading: number | null;
      satellites: number | null;
      odometer_km: number | null;
      ignition: boolean | null;
      alarms: string[];
      rfid: string | null;
      repeats: string | null;
      slow_since: Date | null;
      parked_at: Date | null;
      stays: string;
      revision: number;
      moved_at: Date | null;
      owed: number;
    }[]
  >`${lockQuery(tx, tx`${arrayLiteral(deviceIds)}`)}`;
  for (const row of rows) {
    locked.set(row.device_id, {
      worldId: row.world_id,
      state: {
        recordedAtMs: row.recorded_at?.getTime() ?? null,
        lat: row.latitude ?? 0,
        lng: row.longitude ?? 0,
        altitudeM: row.altitude_m ?? 0,
        speedKmh: row.speed_kmh ?? 0,
        heading: row.heading ?? 0,
        satellites: row.satellites ?? 0,
        odometerKm: row.odometer_km,
        ignition: row.ignition,
        alarms: row.alarms,
        rfid: row.rfid,
        repeats: decodeRepeats(row.repeats),
        slowSinceMs: row.slow_since?.getTime() ?? null,
        parkedAtMs: row.parked_at?.getTime() ?? null,
      },
      stays: decodeStays(row.stays),
      revision: row.revision,
      movedAtMs: row.moved_at?.getTime() ?? 0,
      owedMs: row.owed,
    });
  }
}

/** `ids`: an array literal. manyPoints.sql.ts reads the columns in this order. */
export const lockQuery = (tx: Tx, ids: SqlText) => tx`
  select s.device_id, d.world_id, s.recorded_at, s.latitude, s.longitude, s.altitude_m, s.speed_kmh, s.heading,
    s.satellites, s.odometer_km, s.ignition, s.alarms, s.rfid, s.repeats, s.slow_since, s.parked_at, s.stays, s.revision,
    s.moved_at, coalesce(greatest(0, date_part('epoch', s.rate_until - now()) * 1000), 0) as owed
  from device_state s join device d on d.id = s.device_id
  where s.device_id = any(${ids}::bigint[]) for update of s skip locked`;

const NOBODY: ReadonlySet<number> = new Set();

/** Their values are written as text at once, which takes a millisecond or two. */
const ROWS_PER_STATEMENT = 2_000;

/** The rows of a large transaction, as many at a time as one statement carries. */
export function* rowSlices<Row>(rows: readonly Row[]): Generator<readonly Row[], void, undefined> {
  if (rows.length <= ROWS_PER_STATEMENT) {
    if (rows.length > 0) yield rows;
    return;
  }
  for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT)
    yield rows.slice(from, from + ROWS_PER_STATEMENT);
}

/** Those of these devices that are locked at this moment: not those that are gone. */
export async function selectLocked(sql: Sql, deviceIds: readonly number[]): Promise<ReadonlySet<number>> {
  const ids = sql`${arrayLiteral(deviceIds)}::bigint[]`;
  const rows = await sql<{ device_id: number }[]>`
    with free as materialized (
      select device_id from device_state where device_id = any(${ids}) for key share skip locked
    )
    select device_id from device_state
    where device_id = any(${ids}) and device_id not in (select device_id from free)`;
  return new Set(rows.map((row) => row.device_id));
}

/** A point as it is stored: parsed, its device known, its speed decided. */
export type StoredFix = Omit<Fix, 'imei' | 'sentAtMs' | 'speedKmh' | 'ignition' | 'alarms' | 'rfid'> & {
  readonly deviceId: number;
  readonly speedKmh: number;
};

/**
 * Stores points that are newer than every stored point of their device, so no duplicates are possible. For many of them
 * see manyPoints.sql.ts.
 */
export async function insertNewPositions(tx: Tx, fixes: readonly StoredFix[]): Promise<void> {
  for (const slice of rowSlices(fixes)) await insertStatement(tx, slice, false);
}

export const POSITION_COLUMNS = new RawSql(
  'device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites, odometer_km, received_at, late',
);

/** All points of a transaction are received at its beginning: a change that was committed before holds for them. */
export const insertStatement = (tx: Tx, fixes: readonly StoredFix[], late: boolean) => tx`
  insert into position (${POSITION_COLUMNS})
  select f.*, date_trunc('milliseconds', now()), ${late}::boolean
  from unnest(
    ${binaryArray('int8', fixes, (fix) => fix.deviceId)}::bigint[],
    ${binaryArray('timestamptz', fixes, (fix) => fix.recordedAtMs)}::timestamptz[],
    ${binaryArray('float8', fixes, (fix) => fix.lat)}::float8[], ${binaryArray('float8', fixes, (fix) => fix.lng)}::float8[],
    ${binaryArray('float8', fixes, (fix) => fix.altitudeM)}::float8[],
    ${binaryArray('float8', fixes, (fix) => fix.speedKmh)}::float8[],
    ${binaryArray('float8', fixes, (fix) => fix.heading)}::float8[],
    ${binaryArray('int4', fixes, (fix) => fix.satellites)}::int[],
    ${binaryArray('float8', fixes, (fix) => fix.odometerKm)}::float8[]) as f`;

/** The types of elements that binaryArray writes, with their ids in Postgres and their lengths. */
const ELEMENTS = {
  int8: { oid: 20, bytes: 8 },
  int4: { oid: 23, bytes: 4 },
  bool: { oid: 16, bytes: 1 },
  float8: { oid: 701, bytes: 8 },
  timestamptz: { oid: 1184, bytes: 8 },
} as const;
const TWO_32 = 2 ** 32;
/** Postgres counts microseconds from 2000-01-01 UTC. */
const POSTGRES_EPOCH_MS = Date.UTC(2000, 0, 1);

/**
 * A value of each item as an array of Postgres in its binary form, which is read and written faster than text. Times are
 * in ms. There is at least one item.
 */
export function binaryArray<T>(
  type: keyof typeof ELEMENTS,
  items: readonly T[],
  read: (item: T) => number | boolean | null,
): Buffer {
  const { oid, bytes } = ELEMENTS[type];
  const array = Buffer.allocUnsafeSlow(20 + items.length * (4 + bytes));
  const view = new DataView(array.buffer);
  // One dimension, whether there are nulls, the type, the length, and the index of the first element.
  for (const [n, value] of [1, 1, oid, items.length, 1].entries()) view.setInt32(4 * n, value);
  let at = 20;
  for (const item of items) {
    const value = read(item);
    view.setInt32(at, value === null ? -1 : bytes);
    at += 4;
    if (value === null) continue;
    if (type === 'float8') view.setFloat64(at, Number(value));
    else if (type === 'int4') view.setInt32(at, Number(value));
    else if (type === 'bool') view.setInt8(at, Number(value));
    else {
      const whole = type === 'int8' ? Number(value) : (Number(value) - POSTGRES_EPOCH_MS) * 1_000;
      view.setInt32(at, Math.floor(whole / TWO_32));
      view.setUint32(at + 4, whole);
    }
    at += bytes;
  }
  return array.subarray(0, at);
}

/**
 * Writes the states of devices with a new position, those stays that changed, and what they owe now. `movedAtMs` is the
 * server's time.
 */
export async function updateDeviceStates(
  tx: Tx,
  states: ReadonlyMap<number, DeviceState>,
  stays: ReadonlyMap<number, readonly Stay[]>,
  owedMs: ReadonlyMap<number, number>,
  movedAtMs: number,
): Promise<void> {
  for (const slice of rowSlices([...states])) await updateSlice(tx, slice, stays, owedMs, movedAtMs);
}

async function updateSlice(
  tx: Tx,
  states: readonly (readonly [deviceId: number, state: DeviceState])[],
  stays: ReadonlyMap<number, readonly Stay[]>,
  owedMs: ReadonlyMap<number, number>,
  movedAtMs: number,
): Promise<void> {
  const staysOf = (deviceId: number): string | null => {
    const changed = stays.get(deviceId);
    return changed === undefined ? null : encodeStays(changed);
  };
  const of = (
    type: Parameters<typeof binaryArray>[0],
    pick: (state: DeviceState) => number | boolean | null,
  ) => binaryArray(type, states, ([, state]) => pick(state));
  const result = await tx`
    update device_state s set
      recorded_at = t.recorded, latitude = t.latitude, longitude = t.longitude,
      altitude_m = t.altitude, speed_kmh = t.speed, heading = t.heading, satellites = t.satellites,
      odometer_km = t.odometer, ignition = t.ignition, alarms = coalesce(string_to_array(t.alarms, ','), '{}'),
      rfid = t.rfid, repeats = t.repeats, slow_since = t.slow, parked_at = t.parked,
      stays = coalesce(t.stays, s.stays), moved_at = to_timestamp(${movedAtMs}::float8 / 1000),
      rate_until = now() + t.owed * interval '1 millisecond', revision = s.revision + 1
    from unnest(
      ${binaryArray('int8', states, ([deviceId]) => deviceId)}::bigint[],
      ${of('timestamptz', (t) => t.recordedAtMs)}::timestamptz[],
      ${of('float8', (t) => t.lat)}::float8[], ${of('float8', (t) => t.lng)}::float8[],
      ${of('float8', (t) => t.altitudeM)}::float8[], ${of('float8', (t) => t.speedKmh)}::float8[],
      ${of('float8', (t) => t.heading)}::float8[], ${of('int4', (t) => t.satellites)}::int[],
      ${of('float8', (t) => t.odometerKm)}::float8[], ${of('bool', (t) => t.ignition)}::boolean[],
      ${of('timestamptz', (t) => t.slowSinceMs)}::timestamptz[], ${of('timestamptz', (t) => t.parkedAtMs)}::timestamptz[],
      ${binaryArray('float8', states, ([deviceId]) => owedMs.get(deviceId) ?? 0)}::float8[],
      ${sparse(states, ([, t]) => (t.alarms.length === 0 ? null : t.alarms.join(',')))}::text[],
      ${sparse(states, ([, t]) => t.rfid)}::text[], ${sparse(states, ([, t]) => encodeRepeats(t.repeats))}::text[],
      ${sparse(states, ([deviceId]) => staysOf(deviceId))}::text[]
    ) as t (device_id, recorded, latitude, longitude, altitude, speed, heading, satellites, odometer, ignition, slow, parked,
            owed, alarms, rfid, repeats, stays)
    where s.device_id = t.device_id`;
  invariant(result.count === states.length, 'every locked device has a state to update');
}

/** Texts that few items have, as an array for an unnest of several: null, which counts as an empty one, where none has. */
function sparse<T>(items: readonly T[], textOf: (item: T) => string | null): (string | null)[] | null {
  let texts: (string | null)[] | null = null;
  for (const [n, item] of items.entries()) {
    const text = textOf(item);
    if (text === null) continue;
    texts ??= items.map(() => null);
    texts[n] = text;
  }
  return texts;
}

/** Writes what devices owe that stored late points and did not move. */
export async function updateOwed(tx: Tx, owedMs: ReadonlyMap<number, number>): Promise<void> {
  for (const slice of rowSlices([...owedMs])) {
    await tx`
      update device_state s set rate_until = now() + t.owed * interval '1 millisecond'
      from unnest(
        ${arrayLiteral(slice.map(([deviceId]) => deviceId))}::bigint[], ${arrayLiteral(slice.map(([, ms]) => ms))}::float8[]
      ) as t (device_id, owed)
      where s.device_id = t.device_id`;
  }
}

/** Writes what repeated fixes changed: not the position, and not the time of the last position update. */
export async function updateRepeated(tx: Tx, states: ReadonlyMap<number, DeviceState>): Promise<void> {
  if (states.size === 0) return;
  const of = <T>(pick: (state: DeviceState) => T): T[] => [...states.values()].map(pick);
  const result = await tx`
    update device_state s set
      ignition = t.ignition, alarms = string_to_array(t.alarms, ','), rfid = t.rfid, repeats = t.repeats,
      revision = s.revision + 1
    from unnest(
      ${arrayLiteral([...states.keys()])}::bigint[], ${arrayLiteral(of((t) => t.ignition))}::boolean[],
      ${of((t) => t.alarms.join(','))}::text[], ${of((t) => t.rfid)}::text[], ${of((t) => encodeRepeats(t.repeats))}::text[]
    ) as t (device_id, ignition, alarms, rfid, repeats)
    where s.device_id = t.device_id`;
  invariant(result.count === states.size, 'every locked device has a state to update');
}

/**
 * Writes between which points of a device stays did not begin, for explanations. A time that begins within a day of the
 * one before prolongs it.
 */
export async function updateRefused(tx: Tx, refused: ReadonlyMap<number, RefusedStays>): Promise<void> {
  for (const slice of rowSlices([...refused])) {
    await tx`
      update device_state s set
        stays_refused_from = case when s.stays_refused_until >= to_timestamp(t.first / 1000) - interval '1 day'
          then s.stays_refused_from else to_timestamp(t.first / 1000) end,
        stays_refused_until = to_timestamp(t.last / 1000)
      from unnest(
        ${arrayLiteral(slice.map(([deviceId]) => deviceId))}::bigint[],
        ${arrayLiteral(slice.map(([, { firstMs }]) => firstMs))}::float8[],
        ${arrayLiteral(slice.map(([, { lastMs }]) => lastMs))}::float8[]
      ) as t (device_id, first, last)
      where s.device_id = t.device_id`;
  }
}

/** Between which points of a device stays did not begin. */
export interface RefusedTime {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The latest time in which stays of the device did not begin; null: there was none. */
export async function selectRefused(tx: Tx, deviceId: number): Promise<RefusedTime | null> {
  const [row] = await tx<{ from: Date; until: Date }[]>`
    select stays_refused_from as from, stays_refused_until as until from device_state
    where device_id = ${deviceId} and stays_refused_until is not null`;
  return row === undefined ? null : { fromMs: row.from.getTime(), untilMs: row.until.getTime() };
}
