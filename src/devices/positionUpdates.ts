import type { Steps } from '../lib/workTurns.ts';
import type { LatestPosition, Motion } from './device.ts';
import type { DeviceRow } from './deviceRows.sql.ts';
import type { Fleet } from './fleet.memory.ts';
import { encodePackedStays, type PackedStays, StoredStaysReader } from './stays/packedStays.ts';

/** The new position of a device and its stays, for memory and for the change log. */
export interface PositionUpdate {
  readonly deviceId: number;
  readonly position: LatestPosition;
  readonly motion: Motion;
  /** Null where they are as they were before. */
  readonly stays: PackedStays | null;
}

/** An update is ten little-endian doubles. NaN is an odometer that was never known. */
const FIELDS = 10;
const UPDATE_BYTES = FIELDS * 8;
/** The last double is the revision times three plus the index of the ignition in this list. */
const IGNITIONS = [null, false, true] as const;

/** Position updates → payload of the change log. */
export function encodePositionUpdates(
  updates: readonly Pick<PositionUpdate, 'deviceId' | 'position' | 'motion'>[],
): Buffer {
  const bytes = Buffer.allocUnsafeSlow(updates.length * UPDATE_BYTES);
  const view = new DataView(bytes.buffer);
  let at = 0;
  const put = (value: number): void => {
    view.setFloat64(at, value, true);
    at += 8;
  };
  for (const { deviceId, position, motion } of updates) {
    put(deviceId);
    put(position.recordedAtMs);
    put(position.lat);
    put(position.lng);
    put(position.altitudeM);
    put(position.speedKmh);
    put(position.odometerKm ?? Number.NaN);
    put(position.movedAtMs);
    put(motion.headingDeg);
    put(motion.revision * IGNITIONS.length + IGNITIONS.indexOf(motion.ignition));
  }
  return bytes;
}

/** The stays that changed, as JSON: [[deviceId, stays], …] with stays as in the state of the device. */
export function encodeChangedStays(updates: readonly Pick<PositionUpdate, 'deviceId' | 'stays'>[]): string {
  let json = '';
  for (const { deviceId, stays } of updates) {
    if (stays !== null) json += `${json === '' ? '' : ','}[${deviceId},${encodePackedStays(stays)}]`;
  }
  return `[${json}]`;
}

/** The inverse of `encodePositionUpdates` and `encodeChangedStays`, one after the other, of the transaction `xid`. */
export function* decodePositionUpdates(
  bytes: Buffer,
  changedStays: string,
  xid: number,
): Generator<PositionUpdate, void> {
  const stays = new StoredStaysReader(changedStays);
  for (let n = 0; (n + 1) * UPDATE_BYTES <= bytes.length; n++) {
    const value = (field: number): number => bytes.readDoubleLE(n * UPDATE_BYTES + field * 8);
    const deviceId = value(0);
    const odometerKm = value(6);
    const revisionAndIgnition = value(9);
    yield {
      deviceId,
      position: {
        recordedAtMs: value(1),
        lat: value(2),
        lng: value(3),
        altitudeM: value(4),
        speedKmh: value(5),
        odometerKm: Number.isNaN(odometerKm) ? null : odometerKm,
        movedAtMs: value(7),
      },
      motion: {
        headingDeg: value(8),
        ignition: IGNITIONS[revisionAndIgnition % IGNITIONS.length] ?? null,
        revision: Math.floor(revisionAndIgnition / IGNITIONS.length),
        xid,
      },
      stays: stays.take(deviceId),
    };
  }
}

/** Updates and stays between two pauses: a fraction of a millisecond. */
const UPDATES_PER_STEP = 200;

/** Applies position updates to memory. Returns the ids of devices that are not known there. */
export function* applyPositionUpdates(fleet: Fleet, updates: Iterable<PositionUpdate>): Steps<number[]> {
  const unknown: number[] = [];
  let work = 0;
  for (const { deviceId, position, motion, stays } of updates) {
    if (!fleet.move(deviceId, position, motion)) unknown.push(deviceId);
    work++;
    if (stays !== null) work += yield* fleet.putStays(deviceId, stays, motion.revision);
    if (work < UPDATES_PER_STEP) continue;
    work = 0;
    yield;
  }
  return unknown;
}

/** Devices and stays between two pauses: a fraction of a millisecond. */
const DEVICES_PER_STEP = 50;

/** Puts devices with their positions and stays into memory. */
export function* putDevices(fleet: Fleet, rows: readonly DeviceRow[]): Steps<void> {
  let work = 0;
  for (const { fields, editedXid, position, motion, stays } of rows) {
    work++;
    if (fleet.isDeleted(fields)) continue; // since it was read
    fleet.putDevice(fields, editedXid);
    if (position !== null) {
      fleet.move(fields.id, position, motion);
      work += yield* fleet.putStays(fields.id, stays, motion.revision);
    }
    if (work < DEVICES_PER_STEP) continue;
    work = 0;
    yield;
  }
}
