import { decodeStays } from '../devices/stays/packedStays.ts';
import { invariant } from '../lib/errors.ts';
import { MINUTE_MS, weekStartMs } from '../lib/time.ts';
import { type CopiedRow, CopyWriter, copyRows } from '../postgres/copyRows.ts';
import { POSITIONS, partitionName } from '../postgres/partitions.ts';
import type { Tx } from '../postgres/sql.ts';
import { identifier, integers } from '../postgres/sqlText.ts';
import { type DeviceState, decodeRepeats } from './deviceEvents.ts';
import {
  binaryArray,
  type LockedState,
  lockQuery,
  POSITION_COLUMNS,
  rowSlices,
  type StoredFix,
} from './points.sql.ts';

/** More points than this are copied. Up to here an insert is as fast: a copy asks more often. */
export const INSERTED_MAX = 50;

/** Does what insertNewPositions does for many points: copies them into the partitions of their weeks, which must exist. */
export async function copyNewPositions(tx: Tx, fixes: readonly StoredFix[]): Promise<void> {
  const receivedAtMs = await selectReceivedMs(tx);
  for (const slice of rowSlices(fixes)) {
    for (const [mondayMs, ofWeek] of Map.groupBy(slice, (fix) => weekStartMs(fix.recordedAtMs))) {
      const week = identifier(partitionName(POSITIONS, mondayMs));
      await tx.copyIn(tx`${week} (${POSITION_COLUMNS})`, copiedFixes(ofWeek, receivedAtMs));
    }
    await boxOldPoints(
      tx,
      slice.filter((fix) => fix.recordedAtMs < receivedAtMs - BOXED_FROM_MS),
    );
  }
}

/** When the points of this transaction are received, as an insert decides it. */
async function selectReceivedMs(tx: Tx): Promise<number> {
  const [row] = await tx<{ received: Date }[]>`select date_trunc('milliseconds', now()) as received`;
  invariant(row, 'a transaction has a start');
  return row.received.getTime();
}

const COLUMN_COUNT = 11;
/** Nine numbers and times of eight bytes, an integer and a boolean. */
const ROW_BYTES = 9 * 8 + 4 + 1;

function copiedFixes(fixes: readonly StoredFix[], receivedAtMs: number): Buffer {
  const writer = new CopyWriter(fixes.length, COLUMN_COUNT, ROW_BYTES);
  for (const fix of fixes) {
    writer.begin();
    writer.int8(fix.deviceId);
    writer.timestampMs(fix.recordedAtMs);
    writer.float8(fix.lat);
    writer.float8(fix.lng);
    writer.float8(fix.altitudeM);
    writer.float8(fix.speedKmh);
    writer.float8(fix.heading);
    writer.int4(fix.satellites);
    writer.float8OrNull(fix.odometerKm);
    writer.timestampMs(receivedAtMs);
    writer.bool(false);
  }
  return writer.end();
}

/** Older points are given to box_old_points, which takes those of more than ten minutes by the clock at that moment. */
const BOXED_FROM_MS = 5 * MINUTE_MS;

async function boxOldPoints(tx: Tx, old: readonly StoredFix[]): Promise<void> {
  if (old.length === 0) return;
  await tx`
    select box_old_points(
      ${binaryArray('int8', old, (fix) => fix.deviceId)}, ${binaryArray('timestamptz', old, (fix) => fix.recordedAtMs)},
      ${binaryArray('float8', old, (fix) => fix.lat)}, ${binaryArray('float8', old, (fix) => fix.lng)})`;
}

/** Locks the states of many devices for lockDeviceStates, and reads them by a copy: in half the time of a select. */
export async function copyLockedStates(
  tx: Tx,
  deviceIds: readonly number[],
  locked: Map<number, LockedState>,
): Promise<void> {
  const query = lockQuery(tx, tx`'{${integers(deviceIds)}}'`);
  await copyRows(tx, query, lockedState, (states) => {
    for (const [deviceId, state] of states) locked.set(deviceId, state);
  });
}

/** Reads the columns of lockQuery, in their order. */
function lockedState(row: CopiedRow): readonly [deviceId: number, LockedState] {
  const deviceId = row.int8();
  const worldId = row.int8();
  const state: DeviceState = {
    recordedAtMs: row.timestampMsOrNull(),
    lat: row.float8OrNull() ?? 0,
    lng: row.float8OrNull() ?? 0,
    altitudeM: row.float8OrNull() ?? 0,
    speedKmh: row.float8OrNull() ?? 0,
    heading: row.float8OrNull() ?? 0,
    satellites: row.int4OrNull() ?? 0,
    odometerKm: row.float8OrNull(),
    ignition: row.boolOrNull(),
    alarms: row.internedTexts(),
    rfid: row.textOrNull(),
    repeats: decodeRepeats(row.textOrNull()),
    slowSinceMs: row.timestampMsOrNull(),
    parkedAtMs: row.timestampMsOrNull(),
  };
  const stays = decodeStays(row.text());
  const revision = row.int8();
  const movedAtMs = row.timestampMsOrNull() ?? 0;
  return [deviceId, { worldId, state, stays, revision, movedAtMs, owedMs: row.float8() }];
}
