import { invariant } from '../base/invariant.ts';
import type { DeviceTrack } from '../engine/deviceEvents.ts';
import { decodeRepeats, encodeRepeats } from '../engine/repeats.ts';
import { decodeStays, encodeStays, type Stay } from '../engine/stays.ts';
import type { Sql, Tx } from './sql.ts';

/** A device's state as its next point will be judged by it, and the world that owns the device now. */
export interface LockedTrack {
  readonly worldId: number;
  readonly track: DeviceTrack;
  readonly stays: readonly Stay[];
}

export interface LockedTracks {
  readonly locked: ReadonlyMap<number, LockedTrack>;
  /** Devices that somebody else has locked. What is in neither does not exist. */
  readonly held: ReadonlySet<number>;
}

/**
 * Locks the state of the named devices until the transaction ends and returns it. This is what serializes the
 * points of one device across pods. Nobody waits here: what somebody else has locked, for a moment or for as long as a
 * pod stands still, is told to be `held`, so that no device costs another its time.
 */
export async function lockTracks(tx: Tx, deviceIds: readonly number[]): Promise<LockedTracks> {
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
    }[]
  >`
    select s.device_id, d.world_id, s.latitude, s.longitude, s.altitude_m, s.speed_kmh, s.heading, s.satellites,
      s.odometer_km, s.ignition, s.alarms, s.rfid, s.repeats, s.stays, date_part('epoch', s.recorded_at) * 1000 as recorded,
      date_part('epoch', s.slow_since) * 1000 as slow, date_part('epoch', s.parked_at) * 1000 as parked
    from device_state s join device d on d.id = s.device_id
    where s.device_id = any(${list(deviceIds)}::bigint[])
    order by s.device_id for update of s skip locked`;
  const locked = new Map(
    rows.map((row) => [
      row.device_id,
      {
        worldId: row.world_id,
        track: {
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
          repeats: decodeRepeats(row.repeats, wholeMs(row.recorded)),
          slowSinceMs: wholeMs(row.slow),
          parkedAtMs: wholeMs(row.parked),
        },
        stays: decodeStays(row.stays),
      },
    ]),
  );
  const missing = deviceIds.filter((id) => !locked.has(id));
  if (missing.length === 0) return { locked, held: NOBODY };
  const held = await tx<{ device_id: number }[]>`
    select device_id from device_state where device_id = any(${list(missing)}::bigint[])`;
  return { locked, held: new Set(held.map((row) => row.device_id)) };
}

const NOBODY: ReadonlySet<number> = new Set();

/** The devices among these that nobody has locked at this moment. */
export async function selectUnlocked(sql: Sql, deviceIds: readonly number[]): Promise<number[]> {
  const rows = await sql<{ device_id: number }[]>`
    select device_id from device_state where device_id = any(${list(deviceIds)}::bigint[])
    for key share skip locked`;
  return rows.map((row) => row.device_id);
}

/** Seconds times a thousand are whole but for the last bits; reading them as numbers is quicker than as timestamps. */
function wholeMs(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms);
}

/**
 * Writes the states of the devices that moved, and of `stays` what changed; `movedAtMs` is the server's time.
 */
export async function updateTracks(
  tx: Tx,
  tracks: ReadonlyMap<number, DeviceTrack>,
  stays: ReadonlyMap<number, readonly Stay[]>,
  movedAtMs: number,
): Promise<void> {
  if (tracks.size === 0) return;
  const staysOf = (deviceId: number): string | null => {
    const changed = stays.get(deviceId);
    return changed === undefined ? null : encodeStays(changed);
  };
  const of = <T>(pick: (track: DeviceTrack) => T): T[] => [...tracks.values()].map(pick);
  const result = await tx`
    update device_state s set
      recorded_at = to_timestamp(t.recorded / 1000), latitude = t.latitude, longitude = t.longitude,
      altitude_m = t.altitude, speed_kmh = t.speed, heading = t.heading, satellites = t.satellites,
      odometer_km = t.odometer, ignition = t.ignition, alarms = string_to_array(t.alarms, ','), rfid = t.rfid,
      repeats = t.repeats, slow_since = to_timestamp(t.slow / 1000), parked_at = to_timestamp(t.parked / 1000),
      stays = coalesce(t.stays, s.stays), moved_at = to_timestamp(${movedAtMs}::float8 / 1000)
    from unnest(
      ${list([...tracks.keys()])}::bigint[], ${list(of((t) => t.recordedAtMs))}::float8[],
      ${list(of((t) => t.lat))}::float8[], ${list(of((t) => t.lng))}::float8[],
      ${list(of((t) => t.altitudeM))}::float8[], ${list(of((t) => t.speedKmh))}::float8[],
      ${list(of((t) => t.heading))}::float8[], ${list(of((t) => t.satellites))}::int[],
      ${list(of((t) => t.odometerKm))}::float8[], ${list(of((t) => t.ignition))}::boolean[],
      ${of((t) => t.alarms.join(','))}::text[], ${of((t) => t.rfid)}::text[],
      ${list(of((t) => t.slowSinceMs))}::float8[], ${list(of((t) => t.parkedAtMs))}::float8[],
      ${[...tracks.keys()].map(staysOf)}::text[], ${of(encodeRepeats)}::text[]
    ) as t (device_id, recorded, latitude, longitude, altitude, speed, heading, satellites, odometer, ignition,
            alarms, rfid, slow, parked, stays, repeats)
    where s.device_id = t.device_id`;
  invariant(result.count === tracks.size, 'every locked device has a state to update');
}

/** Writes what repeats have told of devices that did not move: nothing of their position, nor when they moved. */
export async function updateRepeated(tx: Tx, tracks: ReadonlyMap<number, DeviceTrack>): Promise<void> {
  if (tracks.size === 0) return;
  const of = <T>(pick: (track: DeviceTrack) => T): T[] => [...tracks.values()].map(pick);
  const result = await tx`
    update device_state s set
      ignition = t.ignition, alarms = string_to_array(t.alarms, ','), rfid = t.rfid, repeats = t.repeats
    from unnest(
      ${list([...tracks.keys()])}::bigint[], ${list(of((t) => t.ignition))}::boolean[],
      ${of((t) => t.alarms.join(','))}::text[], ${of((t) => t.rfid)}::text[], ${of(encodeRepeats)}::text[]
    ) as t (device_id, ignition, alarms, rfid, repeats)
    where s.device_id = t.device_id`;
  invariant(result.count === tracks.size, 'every locked device has a state to update');
}

/** A Postgres array literal of numbers, booleans and nulls: one short text instead of a parameter per value. */
export function list(values: readonly (number | boolean | null)[]): string {
  return `{${values.map((value) => value ?? 'null').join(',')}}`;
}
