import { type CopiedRow, copyRows } from '../postgres/copyRows.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import { integers, RawSql, type SqlText } from '../postgres/sqlText.ts';
import type { DeviceFields, LatestPosition, Motion } from './device.ts';
import { isImei } from './device.ts';
import { NO_PACKED_STAYS, type PackedStays, packStoredStays } from './stays/packedStays.ts';

/** A device as Postgres has it: its fields, its newest position, and in which areas it is. */
export interface DeviceRow {
  readonly fields: DeviceFields;
  /** The transaction of the last edit. */
  readonly editedXid: number;
  readonly position: LatestPosition | null;
  /** `xid`: of the last message that changed anything. */
  readonly motion: Motion;
  readonly stays: PackedStays;
}

const columns = (sql: Sql | Tx) => sql`
  d.id, d.imei, d.world_id, d.name, d.plate, d.device_model, d.groups, d.updated_at,
  s.ignition, s.revision, d.xmin as edited_xid, s.xmin as moved_xid,
  (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint) as xmax,
  nullif(s.stays, '[]') as stays, s.recorded_at, s.latitude, s.longitude, s.altitude_m, s.speed_kmh, s.odometer_km, s.moved_at, s.heading`;

export function selectDevicesById(sql: Sql, ids: readonly number[]): Promise<DeviceRow[]> {
  return selectDevices(sql, sql`d.id = any('{${integers(ids)}}'::bigint[])`);
}

/** A text that is not an IMEI belongs to no device. */
export function selectDevicesByImei(sql: Sql, imeis: readonly string[]): Promise<DeviceRow[]> {
  const digits = new RawSql(imeis.filter(isImei).join(','));
  return selectDevices(sql, sql`d.imei = any('{${digits}}'::text[])`);
}

/** Reads them by a copy, in a third of the time of a select: the change log names thousands of devices at once. */
async function selectDevices(sql: Sql, condition: SqlText): Promise<DeviceRow[]> {
  const query = sql`
    select ${columns(sql)} from device d join device_state s on s.device_id = d.id where ${condition}`;
  const devices: DeviceRow[] = [];
  await copyRows(sql, query, copiedDevice, (rows) => void devices.push(...rows));
  return devices;
}

/** Gives all devices of all worlds to `use`, in batches: see copyRows. */
export async function copyDevices(
  tx: Tx,
  use: (devices: Iterable<DeviceRow>) => void | Promise<void>,
): Promise<void> {
  const query = tx`select ${columns(tx)} from device d join device_state s on s.device_id = d.id`;
  await copyRows(tx, query, copiedDevice, use);
}

/** Reads `columns`, in their order. */
function copiedDevice(row: CopiedRow): DeviceRow {
  const fields: DeviceFields = {
    id: row.int8(),
    imei: row.text(),
    worldId: row.int8(),
    name: row.textOrNull(),
    plate: row.textOrNull(),
    model: row.internedTextOrNull(),
    groups: row.internedTexts(),
    editedAtMs: row.timestampMs(),
  };
  const ignition = row.boolOrNull();
  const revision = row.int8();
  const edited = row.xid();
  const moved = row.xid();
  const xmax = row.int8();
  const stored = row.textOrNull();
  // Most devices are in no area: their list is not sent.
  const stays = stored === null ? NO_PACKED_STAYS : packStoredStays(stored);
  const editedXid = wholeXid(edited, xmax);
  const motion = { headingDeg: 0, ignition, revision, xid: wholeXid(moved, xmax) };
  const recordedAtMs = row.timestampMsOrNull();
  if (recordedAtMs === null) return { fields, editedXid, position: null, motion, stays };
  return {
    fields,
    editedXid,
    position: {
      recordedAtMs,
      lat: row.float8(),
      lng: row.float8(),
      altitudeM: row.float8(),
      speedKmh: row.float8(),
      odometerKm: row.float8OrNull(),
      movedAtMs: row.timestampMs(),
    },
    motion: { ...motion, headingDeg: row.float8OrNull() ?? 0 },
    stays,
  };
}

const TWO_32 = 2 ** 32;
/** Below it Postgres keeps transaction ids for itself, such as that of frozen rows. */
const FIRST_XID = 3;

/**
 * A transaction id from its lower 32 bits: the newest one that could have written a row that a snapshot with this xmax
 * sees. Of a row that was not written for four billion transactions the answer is too new; it is then sent once more.
 */
export function wholeXid(low: number, xmax: number): number {
  if (low < FIRST_XID) return 0;
  const xid = Math.floor(xmax / TWO_32) * TWO_32 + low;
  return xid < xmax ? xid : Math.max(0, xid - TWO_32);
}
