import { invariant } from '../lib/errors.ts';
import { Interned, RowHash, type RowKeys, RowPages, TextArena } from '../lib/rows.ts';
import type { Steps } from '../lib/workTurns.ts';
import { type ChangeColumns, RowXids } from './changeOrder.ts';
import type {
  DeviceFields,
  DeviceReader,
  DeviceState,
  LatestPosition,
  Motion,
  StatusFacts,
} from './device.ts';
import { imeiHead, imeiTail, isImei, namesText } from './device.ts';
import type { PassingDevice } from './deviceRows.sql.ts';
import type { IndexedSlots } from './index/trie.ts';
import { NO_PACKED_STAYS, type PackedStays } from './stays/packedStays.ts';

const ROW_DOUBLES = 18; // the last seven are 14 whole numbers of four bytes
/** The fields that rows are found by: see RowHash. */
const ID = 0;
export const IMEI = 1;
const [EDITED_AT, RECORDED_AT, LAT, LNG, ALTITUDE, SPEED, ODOMETER, MOVED_AT, HEADING] = [
  2, 3, 4, 5, 6, 7, 8, 9, 10,
] as const;
const [WORLD, NAMES, MODEL, GROUPS, VERSION, MOVED_XID, EDITED_XID, REVISION, SEGMENT, PLACE] = [
  22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
] as const;
const [ENTRY, STAYS, STAYS_REVISION, IMEI_TAIL] = [32, 33, 34, 35] as const;

/** The row of no device: it holds the place in the order of IMEIs at which a list continues. */
export const PROBE = 0;

/**
 * What memory holds of devices, in a row of 144 bytes for each. Rows are numbered from 1 on, in the order in which they are
 * needed, and those that are free again are taken first. A row is found by id or IMEI.
 *
 *   bytes      what
 *   8 + 8 + 1  id, and IMEI: its first 15 digits as a number, and what follows
 *   8          edited at, epoch ms
 *   8 × 7      the position: recorded at (NaN: there is none), latitude, longitude, altitude in m, speed in km/h, odometer in
 *              km (NaN: not known), moved at
 *   8 + 1 + 4  the motion: heading in degrees, ignition, revision
 *   4          names: the place of IMEI, name and plate in an arena of texts, where they take some 60 bytes
 *   4 × 3      world, model and groups, which many devices have in common
 *   4          version: rises with every change that a reader can see
 *   4 + 4      transactions of the last movement and the last edit, less a common base (see putXids)
 *   4 × 3      where it is in the order of changes (see ChangeOrder) and the index of positions (see Trie) of its world
 *   4 + 4      stays, and the revision they are from, plus 1
 *
 * Beside it a row takes some 15 bytes in the tables by id and IMEI, 12 in the list of its world, 30 in the index of
 * positions and 5 in the order of changes: with its names some 270.
 *
 * A device that left a world has a row too: its id, transactions and place in the order of changes, for those who follow it.
 */
export class DeviceColumns implements DeviceReader, IndexedSlots, ChangeColumns, RowKeys {
  readonly #rows = new RowPages(ROW_DOUBLES);
  readonly #names = new TextArena();
  readonly #models = new Interned<string | null>(null, (model) => model ?? '');
  readonly #groups = new Interned<readonly string[]>(NO_GROUPS, (groups) => JSON.stringify(groups));
  readonly #worlds = new Interned<number>(0, String);
  /** By the number in STAYS; 0: none. */
  readonly #stays: PackedStays[] = [NO_PACKED_STAYS];
  readonly #freeStays: number[] = [];
  readonly #xids = new RowXids(this.#rows, MOVED_XID, EDITED_XID);
  readonly #byId = new RowHash(this, ID);
  readonly #byImei = new RowHash(this, IMEI);
  #size = 0;

  /** How many devices there are. */
  get size(): number {
    return this.#size;
  }

  /** Above all rows that are or were used. */
  get end(): number {
    return this.#rows.end;
  }

  /** The row of a device, or 0. */
  rowOfId(id: number): number {
    return this.#byId.find(id, 0);
  }

  /** The row of the device with this IMEI, or 0. */
  rowOfImei(imei: string): number {
    return isImei(imei) ? this.#byImei.find(imeiHead(imei), imeiTail(imei)) : 0;
  }

  /** Adds a device without a position. Until an older device with its IMEI is removed, the IMEI is that of the newer one. */
  add(fields: DeviceFields): number {
    const { id, imei } = fields;
    invariant(isImei(imei), 'a device in memory has an IMEI');
    const row = this.#begin(id, imeiHead(imei), imeiTail(imei));
    this.#write(row, this.#names.put(namesText(fields)), fields);
    invariant(this.#byId.put(row) === 0, 'a device is added once');
    this.#byImei.put(row);
    return row;
  }

  /** Adds a device with its position and stays. It is not found by id or IMEI before `makeFound` was given its row. */
  load(device: PassingDevice): void {
    const { id, hasPosition } = device;
    const imei = device.imei.text(device.bytes) as string;
    const row = this.#begin(id, imeiHead(imei), imeiTail(imei));
    const length = device.writeNames(bytes);
    const isAscii = length > 0;
    const ref = isAscii ? this.#names.putAscii(bytes, length) : this.#names.put(namesText(device.texts()));
    this.#write(row, ref, device);
    this.putXids(row, hasPosition ? device.movedXid : 0, device.editedXid);
    if (!hasPosition) return;
    this.setLatLng(row, device.lat, device.lng);
    this.move(row, device, device);
    this.setStaysRevision(row, device.revision);
    this.putStays(row, device.stays);
  }

  #begin(id: number, head: number, tail: number): number {
    const row = this.#rows.take();
    this.#rows.setDouble(row, ID, id);
    this.#rows.setDouble(row, IMEI, head);
    this.#rows.setInt(row, IMEI_TAIL, tail);
    this.#rows.setDouble(row, RECORDED_AT, Number.NaN);
    this.#size++;
    return row;
  }

  /** Lets devices that were loaded be found by id and IMEI. */
  *makeFound(rows: ArrayLike<number>): Steps<void> {
    yield* this.#byId.fill(rows);
    yield* this.#byImei.fill(rows);
  }

  /** Replaces the fields of a device; its id and its IMEI stay as they are. */
  edit(row: number, fields: DeviceFields): void {
    this.#release(row);
    this.#write(row, this.#names.put(namesText(fields)), fields);
  }

  /** Removes a device that is in no index any more. */
  remove(row: number): void {
    this.#byId.remove(row);
    this.#byImei.remove(row);
    this.#release(row);
    this.putStays(row, NO_PACKED_STAYS);
    this.#size--;
    this.free(row);
  }

  /** A row for a device that left a world. */
  takeForRemoval(deviceId: number): number {
    const row = this.#rows.take();
    this.#rows.setDouble(row, ID, deviceId);
    return row;
  }

  /** Gives such a row back. */
  free(row: number): void {
    const version = this.version(row) + 1;
    this.#rows.clear(row);
    this.#rows.setInt(row, VERSION, version);
    this.#rows.free(row);
  }

  /** Whether the row is of a device that is in a world, or will be. */
  isDevice(row: number): boolean {
    return this.#rows.int(row, NAMES) !== 0;
  }

  id(row: number): number {
    return this.#rows.double(row, ID);
  }

  worldId(row: number): number {
    return this.#worlds.value(this.#rows.int(row, WORLD));
  }

  editedAtMs(row: number): number {
    return this.#rows.double(row, EDITED_AT);
  }

  version(row: number): number {
    return this.#rows.int(row, VERSION);
  }

  hasPosition(row: number): boolean {
    return !Number.isNaN(this.#rows.double(row, RECORDED_AT));
  }

  recordedAtMs(row: number): number {
    return this.#rows.double(row, RECORDED_AT);
  }

  lat(row: number): number {
    return this.#rows.double(row, LAT);
  }

  lng(row: number): number {
    return this.#rows.double(row, LNG);
  }

  /** Called by the index of positions only, which must know where a device was before. */
  setLatLng(row: number, lat: number, lng: number): void {
    this.#rows.setDouble(row, LAT, lat);
    this.#rows.setDouble(row, LNG, lng);
  }

  /** Everything about a position but latitude and longitude, and the motion but its transaction. */
  move(row: number, position: LatestPosition, motion: Omit<Motion, 'xid'>): void {
    const { headingDeg, ignition, revision } = motion;
    const rows = this.#rows;
    rows.setDouble(row, RECORDED_AT, position.recordedAtMs);
    rows.setDouble(row, ALTITUDE, position.altitudeM);
    rows.setDouble(row, SPEED, position.speedKmh);
    rows.setDouble(row, ODOMETER, position.odometerKm ?? Number.NaN);
    rows.setDouble(row, MOVED_AT, position.movedAtMs);
    rows.setDouble(row, HEADING, headingDeg);
    rows.setInt(row, REVISION, revision);
    rows.setInt(row, IMEI_TAIL, this.#imeiTail(row) | (IGNITIONS.indexOf(ignition) << IGNITION_SHIFT));
    this.#touch(row);
  }

  headingDeg(row: number): number {
    return this.#rows.double(row, HEADING);
  }

  ignition(row: number): boolean | null {
    return IGNITIONS[this.#rows.int(row, IMEI_TAIL) >>> IGNITION_SHIFT] ?? null;
  }

  revision(row: number): number {
    return this.#rows.int(row, REVISION);
  }

  state(row: number): DeviceState {
    const rows = this.#rows;
    return {
      id: rows.double(row, ID),
      worldId: this.worldId(row),
      names: this.#names.text(rows.int(row, NAMES)),
      model: this.model(row),
      groups: this.#groups.value(rows.int(row, GROUPS)),
      editedAtMs: rows.double(row, EDITED_AT),
      position: this.position(row),
    };
  }

  position(row: number): LatestPosition | null {
    const rows = this.#rows;
    const recordedAtMs = rows.double(row, RECORDED_AT);
    if (Number.isNaN(recordedAtMs)) return null;
    const odometerKm = rows.double(row, ODOMETER);
    return {
      recordedAtMs,
      lat: rows.double(row, LAT),
      lng: rows.double(row, LNG),
      altitudeM: rows.double(row, ALTITUDE),
      speedKmh: rows.double(row, SPEED),
      odometerKm: Number.isNaN(odometerKm) ? null : odometerKm,
      movedAtMs: rows.double(row, MOVED_AT),
    };
  }

  statusFacts(row: number): StatusFacts | null {
    const recordedAtMs = this.recordedAtMs(row);
    return Number.isNaN(recordedAtMs) ? null : { recordedAtMs, speedKmh: this.speedKmh(row) };
  }

  speedKmh(row: number): number {
    return this.#rows.double(row, SPEED);
  }

  model(row: number): string | null {
    return this.#models.value(this.#rows.int(row, MODEL));
  }

  groups(row: number): readonly string[] {
    return this.#groups.value(this.#rows.int(row, GROUPS));
  }

  names(row: number): string {
    return this.#names.text(this.#rows.int(row, NAMES));
  }

  keyHead(row: number, field: number): number {
    return this.#rows.double(row, field);
  }

  keyTail(row: number, field: number): number {
    return field === IMEI ? this.#imeiTail(row) : 0;
  }

  /** Below 0: the IMEI of the first row comes first. */
  compare(a: number, b: number): number {
    return this.#rows.double(a, IMEI) - this.#rows.double(b, IMEI) || this.#imeiTail(a) - this.#imeiTail(b);
  }

  /** Puts PROBE right behind an IMEI, or before all if the text is none. */
  probeBehind(imei: string): void {
    this.#rows.setDouble(PROBE, IMEI, isImei(imei) ? imeiHead(imei) : -1);
    this.#rows.setInt(PROBE, IMEI_TAIL, isImei(imei) ? imeiTail(imei) + 1 : 0);
  }

  movedXid(row: number): number {
    return this.#xids.moved(row);
  }

  editedXid(row: number): number {
    return this.#xids.edited(row);
  }

  putXids(row: number, movedXid: number, editedXid: number): void {
    this.#xids.put(row, movedXid, editedXid);
  }

  get baseXid(): number {
    return this.#xids.base;
  }

  /** The number of its segment in the order of changes, plus 1; 0: it is in none. */
  segment(row: number): number {
    return this.#rows.int(row, SEGMENT);
  }

  place(row: number): number {
    return this.#rows.int(row, PLACE);
  }

  setPlace(row: number, segment: number, place: number): void {
    this.#rows.setInt(row, SEGMENT, segment);
    this.#rows.setInt(row, PLACE, place);
  }

  entry(row: number): number {
    return this.#rows.int(row, ENTRY);
  }

  setEntry(row: number, entry: number): void {
    this.#rows.setInt(row, ENTRY, entry);
  }

  stays(row: number): PackedStays {
    return this.#stays[this.#rows.int(row, STAYS)] as PackedStays;
  }

  putStays(row: number, stays: PackedStays): void {
    const present = this.#rows.int(row, STAYS);
    if (stays === NO_PACKED_STAYS) {
      if (present === 0) return;
      this.#stays[present] = NO_PACKED_STAYS;
      this.#freeStays.push(present);
      this.#rows.setInt(row, STAYS, 0);
      return;
    }
    const number = present !== 0 ? present : (this.#freeStays.pop() ?? this.#stays.length);
    this.#stays[number] = stays;
    this.#rows.setInt(row, STAYS, number);
  }

  /** The revision of the state of the device that its stays are from; -1: there were none. */
  staysRevision(row: number): number {
    return this.#rows.int(row, STAYS_REVISION) - 1;
  }

  setStaysRevision(row: number, revision: number): void {
    this.#rows.setInt(row, STAYS_REVISION, revision + 1);
  }

  #write(row: number, names: number, fields: Omit<DeviceFields, 'imei' | 'name' | 'plate'>): void {
    const { worldId, model, groups, editedAtMs } = fields;
    this.#rows.setDouble(row, EDITED_AT, editedAtMs);
    this.#rows.setInt(row, WORLD, this.#worlds.use(worldId));
    this.#rows.setInt(row, NAMES, names);
    this.#rows.setInt(row, MODEL, this.#models.use(model));
    this.#rows.setInt(row, GROUPS, this.#groups.use(groups.length === 0 ? NO_GROUPS : groups));
    this.#touch(row);
  }

  #release(row: number): void {
    this.#worlds.release(this.#rows.int(row, WORLD));
    this.#names.free(this.#rows.int(row, NAMES));
    this.#models.release(this.#rows.int(row, MODEL));
    this.#groups.release(this.#rows.int(row, GROUPS));
  }

  #imeiTail(row: number): number {
    return this.#rows.int(row, IMEI_TAIL) & (2 ** IGNITION_SHIFT - 1);
  }

  #touch(row: number): void {
    this.#rows.setInt(row, VERSION, this.version(row) + 1);
  }
}

const NO_GROUPS: readonly string[] = [];
/** Here the names of a device that is loaded are put together as bytes. Those that do not fit are made a text first. */
const bytes = new Uint8Array(512);
const IGNITIONS = [null, false, true] as const;
/** The ignition is kept with the end of the IMEI. */
const IGNITION_SHIFT = 8;
