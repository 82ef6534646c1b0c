import { type CopiedRow, copyRows } from '../postgres/copyRows.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import { integers, RawSql, type SqlText } from '../postgres/sqlText.ts';
import type { DeviceFields, LatestPosition, Motion } from './device.ts';
import { isImei, type Names, NULL, namesText, needsEscape, PLATE, QUOTE } from './device.ts';
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

/**
 * Gives all devices of all worlds to `use`, in batches: see copyRows. Each is to be taken before the next one is read, since
 * one object serves for all.
 */
export async function copyDevices(
  tx: Tx,
  use: (devices: Iterable<PassingDevice>) => void | Promise<void>,
): Promise<void> {
  const device = new PassingDevice();
  await copyRows(tx, allDevices(tx), (row) => device.read(row), use);
}

function allDevices(tx: Tx): SqlText {
  return tx`select ${columns(tx)} from device d join device_state s on s.device_id = d.id`;
}

/** A row of a copy as numbers, and texts as bytes: a device that is loaded leaves no garbage. */
export class PassingDevice {
  id = 0;
  worldId = 0;
  /** The UTF-8 texts of the row are in here. */
  bytes: Buffer = Buffer.alloc(0);
  readonly imei = new TextPlace();
  readonly name = new TextPlace();
  readonly plate = new TextPlace();
  model: string | null = null;
  groups: readonly string[] = [];
  editedAtMs = 0;
  editedXid = 0;
  ignition: boolean | null = null;
  revision = 0;
  movedXid = 0;
  stays = NO_PACKED_STAYS;
  hasPosition = false;
  // Where it has no position, what follows is that of another device.
  recordedAtMs = 0;
  lat = 0;
  lng = 0;
  altitudeM = 0;
  speedKmh = 0;
  odometerKm: number | null = null;
  movedAtMs = 0;
  headingDeg = 0;

  /** Reads `columns`, in their order. Returns itself. */
  read(row: CopiedRow): this {
    this.bytes = row.buffer;
    this.id = row.int8();
    this.imei.read(row);
    this.worldId = row.int8();
    this.name.read(row);
    this.plate.read(row);
    this.model = row.internedTextOrNull();
    this.groups = row.internedTexts();
    this.editedAtMs = row.timestampMs();
    this.ignition = row.boolOrNull();
    this.revision = row.int8();
    const edited = row.xid();
    const moved = row.xid();
    const xmax = row.int8();
    this.editedXid = wholeXid(edited, xmax);
    this.movedXid = wholeXid(moved, xmax);
    // Most devices are in no area: their list is not sent.
    const stored = row.textOrNull();
    this.stays = stored === null ? NO_PACKED_STAYS : packStoredStays(stored);
    const recordedAtMs = row.timestampMsOrNull();
    this.hasPosition = recordedAtMs !== null;
    if (recordedAtMs === null) return this;
    this.recordedAtMs = recordedAtMs;
    this.lat = row.float8();
    this.lng = row.float8();
    this.altitudeM = row.float8();
    this.speedKmh = row.float8();
    this.odometerKm = row.float8OrNull();
    this.movedAtMs = row.timestampMs();
    this.headingDeg = row.float8OrNull() ?? 0;
    return this;
  }

  /** A copy, which stays when the next one is read. */
  taken(): DeviceRow {
    const { id, worldId, model, groups, editedAtMs, ignition, revision, hasPosition, stays } = this;
    return {
      fields: { ...this.texts(), id, worldId, model, groups, editedAtMs },
      editedXid: this.editedXid,
      position: hasPosition ? this.#position() : null,
      motion: { headingDeg: hasPosition ? this.headingDeg : 0, ignition, revision, xid: this.movedXid },
      stays,
    };
  }

  texts(): Names {
    const { bytes } = this;
    const imei = this.imei.text(bytes) as string;
    return { imei, name: this.name.text(bytes), plate: this.plate.text(bytes) };
  }

  /** See namesText. */
  names(): string {
    const length = this.writeNames(written);
    return length > 0 ? written.toString('latin1', 0, length) : namesText(this.texts());
  }

  /** Writes namesText to the beginning of `target`. Returns its length; 0: it does not fit, or is not ASCII without escapes. */
  writeNames(target: Uint8Array): number {
    const { bytes, imei, name, plate } = this;
    const textBytes = imei.end - imei.start + name.end - name.start + plate.end - plate.start;
    if (textBytes + NAMES_REST_BYTES > target.length) return 0;
    let at = 0;
    for (let from = imei.start; from < imei.end; from++) target[at++] = bytes[from] as number;
    at = writeQuoted(target, at, bytes, name);
    if (at === 0) return 0;
    for (let n = 0; n < PLATE.length; n++) target[at++] = PLATE.charCodeAt(n);
    return writeQuoted(target, at, bytes, plate);
  }

  #position(): LatestPosition {
    const { recordedAtMs, lat, lng, altitudeM, speedKmh, odometerKm, movedAtMs } = this;
    return { recordedAtMs, lat, lng, altitudeM, speedKmh, odometerKm, movedAtMs };
  }
}

const written = Buffer.alloc(512);

/** Where a text begins and ends; null does both at -1. */
class TextPlace {
  start = -1;
  end = -1;

  read(row: CopiedRow): void {
    this.start = row.textStart();
    this.end = this.start === -1 ? -1 : row.position;
  }

  text(bytes: Buffer): string | null {
    return this.start === -1 ? null : bytes.toString('utf8', this.start, this.end);
  }
}

/** The most that namesText adds to the three texts. */
const NAMES_REST_BYTES = PLATE.length + 2 * NULL.length;

/** Returns where it ends; 0: a character is not ASCII or has to be escaped. */
function writeQuoted(target: Uint8Array, at: number, bytes: Uint8Array, { start, end }: TextPlace): number {
  if (start === -1) {
    for (let n = 0; n < NULL.length; n++) target[at + n] = NULL.charCodeAt(n);
    return at + NULL.length;
  }
  let to = at;
  target[to++] = QUOTE;
  for (let from = start; from < end; from++) {
    const byte = bytes[from] as number;
    if (byte >= 0x80 || needsEscape(byte)) return 0;
    target[to++] = byte;
  }
  target[to++] = QUOTE;
  return to;
}

const read = new PassingDevice();

function copiedDevice(row: CopiedRow): DeviceRow {
  return read.read(row).taken();
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
