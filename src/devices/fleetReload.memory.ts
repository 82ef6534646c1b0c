import { Pace, type Steps } from '../lib/workTurns.ts';
import type { DeviceFields, DeviceState, LatestPosition } from './device.ts';
import { namesText } from './device.ts';
import type { DeviceColumns } from './deviceColumns.memory.ts';
import type { DeviceRow, PassingDevice } from './deviceRows.sql.ts';
import type { PackedStays } from './stays/packedStays.ts';
import { FIRST_VERSION, type World } from './world.memory.ts';
import type { Removal } from './worldChanges.memory.ts';

/** The fleet that is reloaded, from within. */
interface FleetParts {
  readonly fleet: {
    putStays(deviceId: number, stays: PackedStays, revision: number): Steps<number>;
    putRemoval(worldId: number, removal: Removal, isGone: boolean): void;
  };
  readonly columns: DeviceColumns;
  readonly worlds: Map<number, World>;
  world(worldId: number): World;
}

/**
 * Makes a fleet as one snapshot of Postgres is, device by device while it is in use, whatever it held before: all devices
 * are put, then those that the snapshot lacks are dropped. At every moment a device is as it was or as the snapshot has it.
 * What a newer transaction has brought stays.
 *
 * When a device leaves a world here, that is not remembered: `setRemovals` adds the removals that Postgres remembers. Readers
 * miss none, since memory had not followed the transactions of those that are new.
 */
export class FleetReload {
  readonly #parts: FleetParts;
  readonly #isNewer: (xid: number) => boolean;
  /** A bit for each row: the snapshot has its device. */
  #found: Uint8Array;

  /** `isNewer`: whether the snapshot does not see a transaction that memory has. */
  constructor(parts: FleetParts, isNewer: (xid: number) => boolean) {
    this.#parts = parts;
    this.#isNewer = isNewer;
    this.#found = new Uint8Array((parts.columns.end >>> 3) + 1);
  }

  /** Makes these devices as the snapshot has them. */
  *put(devices: Iterable<PassingDevice>): Steps<void> {
    const pace = new Pace();
    for (const passing of devices) {
      // Most are as they were, for which hardly any objects are made.
      if (!this.#isThere(passing)) {
        const device = passing.taken();
        const row = this.#put(device);
        // Most devices are in no area, before and after: a generator for each would be a tenth of all garbage.
        if (row !== 0 && this.#takesStays(row, device)) {
          yield* this.#parts.fleet.putStays(device.fields.id, device.stays, device.motion.revision);
        }
      }
      if (pace.isDue()) yield* pace.pause();
    }
  }

  /** Drops the devices that were not put. */
  *dropOthers(): Steps<void> {
    const pace = new Pace();
    const { columns } = this.#parts;
    for (let row = 1; row < columns.end; row++) {
      const isOther = columns.isDevice(row) && !this.#isFound(row);
      if (isOther && !this.#isNewer(columns.editedXid(row))) this.#drop(row);
      if (pace.isDue()) yield* pace.pause();
    }
  }

  /** Makes the removals that are remembered those of the snapshot, oldest first. To be called when the devices are there. */
  *setRemovals(removals: readonly (Removal & { readonly worldId: number })[]): Steps<void> {
    const { fleet, worlds } = this.#parts;
    const pace = new Pace();
    // A device that was made anew may have left with each of its ids: the last time counts.
    const lastXids = new Map<number, Map<string, number>>();
    for (const { worldId, imei, xid } of removals) {
      const ofWorld = lastXids.get(worldId) ?? new Map<string, number>();
      lastXids.set(worldId, ofWorld.set(imei, Math.max(xid, ofWorld.get(imei) ?? 0)));
      if (pace.isDue()) yield* pace.pause();
    }
    for (const [worldId, { changes }] of worlds)
      yield* changes.keepRemovals(lastXids.get(worldId) ?? new Map());
    for (const { worldId, ...removal } of removals) {
      fleet.putRemoval(worldId, removal, false);
      if (pace.isDue()) yield* pace.pause();
    }
  }

  /** Gives worlds the versions of the snapshot, and forgets those that it lacks. The last step, like raiseVersion. */
  setVersions(versions: readonly { readonly id: number; readonly version: number }[]): void {
    const { worlds } = this.#parts;
    const known = new Set(versions.map(({ id }) => id));
    for (const [id, world] of worlds) {
      if (known.has(id)) continue;
      if (world.devices.size === 0) worlds.delete(id);
      else world.version = FIRST_VERSION;
    }
    for (const { id, version } of versions) this.#parts.world(id).version = version;
  }

  /** Whether memory has a device exactly as the snapshot. False for some that are equal, such as those in an area. */
  #isThere(device: PassingDevice): boolean {
    const { columns } = this.#parts;
    const row = columns.rowOfId(device.id);
    const isThere =
      row !== 0 &&
      device.hasPosition &&
      columns.hasPosition(row) &&
      columns.movedXid(row) === device.movedXid &&
      columns.editedXid(row) === device.editedXid &&
      columns.revision(row) === device.revision &&
      columns.headingDeg(row) === device.headingDeg &&
      columns.ignition(row) === device.ignition &&
      isSamePosition(columns.position(row) as LatestPosition, device) &&
      columns.worldId(row) === device.worldId &&
      columns.editedAtMs(row) === device.editedAtMs &&
      columns.model(row) === device.model &&
      columns.names(row) === device.names() &&
      columns.rowOfImei(device.imei.text(device.bytes) as string) === row &&
      isSameList(columns.groups(row), device.groups) &&
      columns.staysRevision(row) === device.revision &&
      columns.stays(row) === device.stays;
    if (isThere) this.#setFound(row, true);
    return isThere;
  }

  /** Returns its row; 0 when its IMEI belongs to a newer device. */
  #put(device: DeviceRow): number {
    const { columns } = this.#parts;
    const { id, imei } = device.fields;
    let row = columns.rowOfId(id);
    if (row !== 0) this.#setFound(row, true);
    const namesake = columns.rowOfImei(imei);
    if (namesake !== 0 && namesake !== row) {
      if (this.#isNewer(columns.editedXid(namesake))) return 0;
      this.#drop(namesake);
    }
    // Another history may have given this id to another device, and may have no position of this one.
    if (row !== 0 && (columns.rowOfImei(imei) !== row || this.#lacksPosition(row, device))) {
      this.#drop(row);
      row = 0;
    }
    if (row === 0) return this.#add(device);
    this.#update(row, device);
    return row;
  }

  #lacksPosition(row: number, { position }: DeviceRow): boolean {
    const { columns } = this.#parts;
    return position === null && columns.hasPosition(row) && !this.#isNewer(columns.movedXid(row));
  }

  #add({ fields, editedXid, position, motion }: DeviceRow): number {
    const { columns, world } = this.#parts;
    const row = columns.add(fields);
    if (position !== null) {
      columns.setLatLng(row, position.lat, position.lng);
      columns.move(row, position, motion);
    }
    world(fields.worldId).add(row, fields.imei, editedXid, position === null ? 0 : motion.xid);
    this.#setFound(row, true);
    return row;
  }

  #update(row: number, { fields, position, motion, editedXid }: DeviceRow): void {
    const { columns, world } = this.#parts;
    const held = columns.state(row);
    const isEditOld = !this.#isNewer(columns.editedXid(row));
    const isMotionOld = !this.#isNewer(columns.movedXid(row));
    if (isEditOld && !hasFields(held, fields)) this.#edit(row, fields);
    const { changes } = world(columns.worldId(row));
    if (isMotionOld && position !== null) {
      const isThere =
        held.position !== null &&
        isSamePosition(held.position, position) &&
        columns.revision(row) === motion.revision &&
        columns.headingDeg(row) === motion.headingDeg &&
        columns.ignition(row) === motion.ignition;
      if (!isThere) world(columns.worldId(row)).move(row, position, motion);
    }
    const moved = isMotionOld ? (position === null ? 0 : motion.xid) : columns.movedXid(row);
    const edited = isEditOld ? editedXid : columns.editedXid(row);
    if (moved !== columns.movedXid(row) || edited !== columns.editedXid(row))
      changes.order.put(row, moved, edited);
  }

  #edit(row: number, fields: DeviceFields): void {
    const { columns, world } = this.#parts;
    const before = columns.worldId(row);
    if (before === fields.worldId) {
      world(before).edit(row, fields);
      return;
    }
    world(before).remove(row, null);
    columns.edit(row, fields);
    world(fields.worldId).add(row, fields.imei, columns.editedXid(row), columns.movedXid(row));
  }

  /** Whether the stays of the snapshot differ and count: then they are to be put. */
  #takesStays(row: number, { motion: { revision }, stays }: DeviceRow): boolean {
    const { columns } = this.#parts;
    if (columns.staysRevision(row) > revision && this.#isNewer(columns.movedXid(row))) return false;
    columns.setStaysRevision(row, revision);
    return columns.stays(row) !== stays;
  }

  #drop(row: number): void {
    const { columns, world } = this.#parts;
    world(columns.worldId(row)).remove(row, null);
    columns.remove(row);
    this.#setFound(row, false);
  }

  #isFound(row: number): boolean {
    return ((this.#found[row >>> 3] ?? 0) & (1 << (row & 7))) !== 0;
  }

  #setFound(row: number, isFound: boolean): void {
    const at = row >>> 3;
    if (at >= this.#found.length) {
      const longer = new Uint8Array(2 * at);
      longer.set(this.#found);
      this.#found = longer;
    }
    const bit = 1 << (row & 7);
    const present = this.#found[at] as number;
    this.#found[at] = isFound ? present | bit : present & ~bit;
  }
}

function hasFields(
  { worldId, names, model, groups, editedAtMs }: DeviceState,
  fields: DeviceFields,
): boolean {
  return (
    worldId === fields.worldId &&
    editedAtMs === fields.editedAtMs &&
    model === fields.model &&
    names === namesText(fields) &&
    isSameList(groups, fields.groups)
  );
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, n) => item === b[n]);
}

function isSamePosition(a: LatestPosition, b: LatestPosition): boolean {
  return (
    a.recordedAtMs === b.recordedAtMs &&
    a.lat === b.lat &&
    a.lng === b.lng &&
    a.altitudeM === b.altitudeM &&
    a.speedKmh === b.speedKmh &&
    a.odometerKm === b.odometerKm &&
    a.movedAtMs === b.movedAtMs
  );
}
