import { invariant } from '../lib/errors.ts';
import { RowHash, type RowKeys } from '../lib/rowHash.ts';
import { Interned, RowPages, TextArena } from '../lib/rows.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { ChangeColumns } from './changeOrder.ts';
import type {
  DeviceFields,
  DeviceReader,
  DeviceState,
  LatestPosition,
  Motion,
  StatusFacts,
} from './device.ts';
import { imeiHead, imeiTail, isImei, namesText } from './device.ts';
import type { IndexedSlots } from './index/trie.ts';
import { NO_PACKED_STAYS, type PackedStays } from './stays/packedStays.ts';

// A row has 18 doubles, of which the last seven are 14 whole numbers of four bytes.
const ROW_DOUBLES = 18;
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
 *   8          id
 *   8 + 1      IMEI: the first 15 digits as a number, and what follows
 *   8          edited at, epoch ms
 *   8 × 7      the position: recorded at (NaN: there is none), latitude, longitude, altitude in m, speed in km/h, odometer in
 *              km (NaN: not known), moved at
 *   8 + 1 + 4  the motion: heading in degrees, ignition, revision
 *   4          world, as a number from #worldIds
 *   4          names: the place of IMEI, name and plate in an arena of texts, where they take some 60 bytes
 *   4 + 4      model and groups, which many devices have in common
 *   4          version: rises with every change that a reader can see
 *   4 + 4      transactions of the last movement and the last edit, less a common base (see putXids)
 *   4 + 4      where it is in the order of changes of its world (see ChangeOrder)
 *   4          where it is in the index of positions of its world (see Trie)
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
  readonly #worldIds: number[] = [];
  readonly #worldNumbers = new Map<number, number>();
  /** By the number in STAYS; 0: none. */
  readonly #stays: PackedStays[] = [NO_PACKED_STAYS];
  readonly #freeStays: number[] = [];
  readonly #byId = new RowHash(this, ID);
  readonly #byImei = new RowHash(this, IMEI);
  #baseXid = 0;
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
    const row = this.load(fields);
    invariant(this.#byId.put(row) === 0, 'a device is added once');
    this.#byImei.put(row);
    return row;
  }

  /** The same, but it is not found by its id or IMEI before `makeFound` was given its row. */
  load(fields: DeviceFields): number {
    const { id, imei } = fields;
    invariant(isImei(imei), 'a device in memory has an IMEI');
    const row = this.#rows.take();
    this.#rows.setDouble(row, ID, id);
    this.#rows.setDouble(row, IMEI, imeiHead(imei));
    this.#rows.setInt(row, IMEI_TAIL, imeiTail(imei));
    this.#rows.setDouble(row, RECORDED_AT, Number.NaN);
    this.#write(row, fields);
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
    this.#names.free(this.#rows.int(row, NAMES));
    this.#models.release(this.#rows.int(row, MODEL));
    this.#groups.release(this.#rows.int(row, GROUPS));
    this.#write(row, fields);
  }

  /** Removes a device that is in no index any more. */
  remove(row: number): void {
    this.#byId.remove(row);
    this.#byImei.remove(row);
    this.#names.free(this.#rows.int(row, NAMES));
    this.#models.release(this.#rows.int(row, MODEL));
    this.#groups.release(this.#rows.int(row, GROUPS));
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
    return this.#worldIds[this.#rows.int(row, WORLD)] as number;
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
  move(row: number, position: LatestPosition, { headingDeg, ignition, revision }: Motion): void {
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
      model: this.#models.value(rows.int(row, MODEL)),
      groups: this.#groups.value(rows.int(row, GROUPS)),
      editedAtMs: rows.double(row, EDITED_AT),
      position: this.#position(row),
    };
  }

  #position(row: number): LatestPosition | null {
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
    return this.#baseXid + this.#rows.int(row, MOVED_XID);
  }

  editedXid(row: number): number {
    return this.#baseXid + this.#rows.int(row, EDITED_XID);
  }

  /**
   * Transactions take four bytes: their distance from a base. Those of the last two billion are exact, and all are while there
   * have been fewer than four billion. Older ones read as the base, which is later: a reader of the changes since then may
   * see one twice but misses none.
   */
  putXids(row: number, movedXid: number, editedXid: number): void {
    const newest = Math.max(movedXid, editedXid);
    if (newest - this.#baseXid > OFFSET_MAX) this.#raiseBase(newest - KEPT_XIDS);
    this.#rows.setInt(row, MOVED_XID, Math.max(0, movedXid - this.#baseXid));
    this.#rows.setInt(row, EDITED_XID, Math.max(0, editedXid - this.#baseXid));
  }

  /** The lowest transaction that can be read. When it rises, those below rise too. */
  get baseXid(): number {
    return this.#baseXid;
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

  #write(row: number, { imei, worldId, name, plate, model, groups, editedAtMs }: DeviceFields): void {
    this.#rows.setDouble(row, EDITED_AT, editedAtMs);
    this.#rows.setInt(row, WORLD, this.#numberOfWorld(worldId));
    this.#rows.setInt(row, NAMES, this.#names.put(namesText(imei, name, plate)));
    this.#rows.setInt(row, MODEL, this.#models.use(model));
    this.#rows.setInt(row, GROUPS, this.#groups.use(groups.length === 0 ? NO_GROUPS : groups));
    this.#touch(row);
  }

  #numberOfWorld(worldId: number): number {
    let number = this.#worldNumbers.get(worldId);
    if (number === undefined) {
      number = this.#worldIds.push(worldId) - 1;
      this.#worldNumbers.set(worldId, number);
    }
    return number;
  }

  #imeiTail(row: number): number {
    return this.#rows.int(row, IMEI_TAIL) & (2 ** IGNITION_SHIFT - 1);
  }

  #raiseBase(baseXid: number): void {
    const by = baseXid - this.#baseXid;
    this.#baseXid = baseXid;
    for (let row = 0; row < this.#rows.end; row++) {
      this.#rows.setInt(row, MOVED_XID, Math.max(0, this.#rows.int(row, MOVED_XID) - by));
      this.#rows.setInt(row, EDITED_XID, Math.max(0, this.#rows.int(row, EDITED_XID) - by));
    }
  }

  #touch(row: number): void {
    this.#rows.setInt(row, VERSION, this.version(row) + 1);
  }
}

const NO_GROUPS: readonly string[] = [];
const IGNITIONS = [null, false, true] as const;
/** The ignition is kept with the end of the IMEI. */
const IGNITION_SHIFT = 8;
const OFFSET_MAX = 2 ** 32 - 1;
/** How far back transactions are exact after the base was raised. */
const KEPT_XIDS = 2 ** 31;
