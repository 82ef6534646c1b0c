import { decodeStays, encodeStays, type Stay } from '../devices/stays/packedStays.ts';
import { invariant } from '../lib/errors.ts';
import { arrayLiteral, type Sql, type Tx } from '../postgres/sql.ts';
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
 * delays another, even if a pod stalls with a lock. A device that is in neither does not exist.
 */
export async function lockDeviceStates(
  tx: Tx,
  deviceIds: readonly number[],
): Promise<{
  readonly locked: ReadonlyMap<number, LockedState>;
  readonly lockedElsewhere: ReadonlySet<number>;
}> {
  const locked = new Map<number, LockedState>();
  for (const slice of rowSlices(deviceIds)) {
    for (const [id, state] of await lockSlice(tx, slice)) locked.set(id, state);
  }
  const missing = deviceIds.filter((id) => !locked.has(id));
  if (missing.length === 0) return { locked, lockedElsewhere: NOBODY };
  const elsewhere = await tx<{ device_id: number }[]>`
    select device_id from device_state where device_id = any(${arrayLiteral(missing)}::bigint[])`;
  return { locked, lockedElsewhere: new Set(elsewhere.map((row) => row.device_id)) };
}

async function lockSlice(tx: Tx, deviceIds: readonly number[]): Promise<[number, LockedState][]> {
  const rows = await tx<
    {
      device_id: number;
      world_id: number;
      recorded: number | null;
      latitude: number;
      longitude: number;
      altitude_m: number;
      speed_kmh: number;
      heading: number;
      satellites: number;
      odometer_km: number | null;
      ignition: boolean | null;
      alarms: string[];
      rfid: string | null;
      repeats: string | null;
      slow: number | null;
      parked: number | null;
      stays: string;
      revision: number;
      moved: number | null;
      owed: number;
    }[]
  >`
    select s.device_id, d.world_id, s.latitude, s.longitude, s.altitude_m, s.speed_kmh, s.heading, s.satellites,
      s.odometer_km, s.ignition, s.alarms, s.rfid, s.repeats, s.stays, s.revision,
      coalesce(greatest(0, date_part('epoch', s.rate_until - now()) * 1000), 0) as owed,
      date_part('epoch', s.moved_at) * 1000 as moved, date_part('epoch', s.recorded_at) * 1000 as recorded,
      date_part('epoch', s.slow_since) * 1000 as slow, date_part('epoch', s.parked_at) * 1000 as parked
    from device_state s join device d on d.id = s.device_id
    where s.device_id = any(${arrayLiteral(deviceIds)}::bigint[])
    order by s.device_id for update of s skip locked`;
  return rows.map((row) => [
    row.device_id,
    {
      worldId: row.world_id,
      state: {
        recordedAtMs: wholeMs(row.recorded),
        lat: row.latitude,
        lng: row.longitude,
        altitudeM: row.altitude_m,
        speedKmh: row.speed_kmh,
        heading: row.heading,
        satellites: row.satellites,
        odometerKm: row.odometer_km,
        ignition: row.ignition,
        alarms: row.alarms,
        rfid: row.rfid,
        repeats: decodeRepeats(row.repeats),
        slowSinceMs: wholeMs(row.slow),
        parkedAtMs: wholeMs(row.parked),
      },
      stays: decodeStays(row.stays),
      revision: row.revision,
      movedAtMs: wholeMs(row.moved) ?? 0,
      owedMs: row.owed,
    },
  ]);
}

const NOBODY: ReadonlySet<number> = new Set();

/** Rounds seconds times a thousand, which are inexact in the last bits. Reading numbers is faster than timestamps. */
function wholeMs(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms);
}

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

/** Those of these devices that are not locked at this moment. */
export async function selectUnlocked(sql: Sql, deviceIds: readonly number[]): Promise<number[]> {
  const rows = await sql<{ device_id: number }[]>`
    select device_id from device_state where device_id = any(${arrayLiteral(deviceIds)}::bigint[])
    for key share skip locked`;
  return rows.map((row) => row.device_id);
}

/** A point as it is stored: parsed, its device known, its speed decided. */
export type StoredFix = Omit<Fix, 'imei' | 'sentAtMs' | 'speedKmh' | 'ignition' | 'alarms' | 'rfid'> & {
  readonly deviceId: number;
  readonly speedKmh: number;
};

/** Stores points that are newer than every stored point of their device, so no duplicates are possible. */
export async function insertNewPositions(tx: Tx, fixes: readonly StoredFix[]): Promise<void> {
  for (const slice of rowSlices(fixes)) await insertStatement(tx, slice, false);
}

/** All points of a transaction are received at its beginning: a change that was committed before holds for them. */
export const insertStatement = (tx: Tx, fixes: readonly StoredFix[], late: boolean) => tx`
  insert into position
    (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites, odometer_km, received_at, late)
  select device_id, to_timestamp(recorded / 1000), latitude, longitude, altitude, speed, heading, satellites, odometer,
    date_trunc('milliseconds', now()), ${late}::boolean
  from unnest(
    ${arrayLiteral(fixes.map((fix) => fix.deviceId))}::bigint[], ${arrayLiteral(fixes.map((fix) => fix.recordedAtMs))}::float8[],
    ${arrayLiteral(fixes.map((fix) => fix.lat))}::float8[], ${arrayLiteral(fixes.map((fix) => fix.lng))}::float8[],
    ${arrayLiteral(fixes.map((fix) => fix.altitudeM))}::float8[], ${arrayLiteral(fixes.map((fix) => fix.speedKmh))}::float8[],
    ${arrayLiteral(fixes.map((fix) => fix.heading))}::float8[], ${arrayLiteral(fixes.map((fix) => fix.satellites))}::int[],
    ${arrayLiteral(fixes.map((fix) => fix.odometerKm))}::float8[]
  ) as f (device_id, recorded, latitude, longitude, altitude, speed, heading, satellites, odometer)`;

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
  const deviceIds = states.map(([deviceId]) => deviceId);
  const of = <T>(pick: (state: DeviceState) => T): T[] => states.map(([, state]) => pick(state));
  const result = await tx`
    update device_state s set
      recorded_at = to_timestamp(t.recorded / 1000), latitude = t.latitude, longitude = t.longitude,
      altitude_m = t.altitude, speed_kmh = t.speed, heading = t.heading, satellites = t.satellites,
      odometer_km = t.odometer, ignition = t.ignition, alarms = string_to_array(t.alarms, ','), rfid = t.rfid,
      repeats = t.repeats, slow_since = to_timestamp(t.slow / 1000), parked_at = to_timestamp(t.parked / 1000),
      stays = coalesce(t.stays, s.stays), moved_at = to_timestamp(${movedAtMs}::float8 / 1000),
      rate_until = now() + t.owed * interval '1 millisecond', revision = s.revision + 1
    from unnest(
      ${arrayLiteral(deviceIds)}::bigint[], ${arrayLiteral(of((t) => t.recordedAtMs))}::float8[],
      ${arrayLiteral(of((t) => t.lat))}::float8[], ${arrayLiteral(of((t) => t.lng))}::float8[],
      ${arrayLiteral(of((t) => t.altitudeM))}::float8[], ${arrayLiteral(of((t) => t.speedKmh))}::float8[],
      ${arrayLiteral(of((t) => t.heading))}::float8[], ${arrayLiteral(of((t) => t.satellites))}::int[],
      ${arrayLiteral(of((t) => t.odometerKm))}::float8[], ${arrayLiteral(of((t) => t.ignition))}::boolean[],
      ${of((t) => t.alarms.join(','))}::text[], ${of((t) => t.rfid)}::text[],
      ${arrayLiteral(of((t) => t.slowSinceMs))}::float8[], ${arrayLiteral(of((t) => t.parkedAtMs))}::float8[],
      ${deviceIds.map(staysOf)}::text[], ${of((t) => encodeRepeats(t.repeats))}::text[],
      ${arrayLiteral(deviceIds.map((id) => owedMs.get(id) ?? 0))}::float8[]
    ) as t (device_id, recorded, latitude, longitude, altitude, speed, heading, satellites, odometer, ignition,
            alarms, rfid, slow, parked, stays, repeats, owed)
    where s.device_id = t.device_id`;
  invariant(result.count === states.length, 'every locked device has a state to update');
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
