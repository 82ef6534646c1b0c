import type { LogPosition, Snapshot } from '../changelog/appliedTransactions.memory.ts';
import type { ChangeXids } from '../devices/changeOrder.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import type { Changed } from '../devices/worldChanges.memory.ts';
import { ALSO_MAX, type DevicesRead } from './cursors.ts';

/** The devices in memory, and which transactions of them a reader may be sent. */
export interface FleetView {
  readonly fleet: Fleet;
  readonly followed: Snapshot;
  /** Transactions of this pod that memory holds as well. */
  readonly own: Pick<ReadonlySet<number>, 'has'>;
}

export interface DevicesPage {
  readonly items: readonly Changed[];
  /** Where the next page begins. */
  readonly read: DevicesRead;
  /** Where it begins again for a reader who has been sent only a part of it. */
  readonly begun: DevicesRead;
  readonly hasMore: boolean;
  /** Something was left out, because it is of more transactions than a cursor has room for: memory must follow first. */
  readonly isCut: boolean;
}

/** Before every IMEI. */
const BEFORE_ALL = '0';

/** A reader who knows nothing yet. */
export function firstRead(followed: Snapshot): DevicesRead {
  return { seen: followed, listedTo: BEFORE_ALL, open: null, also: [] };
}

/** Whether a reader was sent nothing yet. */
export function isFirstRead({ listedTo }: DevicesRead): boolean {
  return listedTo === BEFORE_ALL;
}

/** Everything up to a snapshot was sent. */
export function readUpTo(seen: Snapshot): DevicesRead {
  return { seen, listedTo: null, open: null, also: [] };
}

/** Whether memory is at least as new as what the reader was sent: an answer is never older than its cursor. */
export function isCurrent(view: Omit<FleetView, 'fleet'>, { seen, open, also }: DevicesRead): boolean {
  const { followed } = view;
  return (
    followed.contains(seen) &&
    (open === null || followed.contains(open.upTo)) &&
    also.every((xid) => followed.sees(xid) || view.own.has(xid))
  );
}

/**
 * The next page of devices for a reader.
 *
 * First come all devices by IMEI. Then follow rounds: a round sends the changes that memory has at its beginning and the
 * reader has not seen, by transaction and id. A change during a round that is not sent in it belongs to the next, so a
 * round ends. Since a device is sent as it is now and sent again if a transaction of it
 * is missing in what the reader has seen, a change may come twice and is never left out.
 */
export function readDevices(
  view: FleetView,
  worldIds: readonly number[],
  read: DevicesRead,
  limit: number,
): DevicesPage {
  return read.listedTo === null
    ? nextChanges(view, worldIds, read, limit)
    : nextListed(view, worldIds, read, limit);
}

function nextListed(
  view: FleetView,
  worldIds: readonly number[],
  read: DevicesRead,
  limit: number,
): DevicesPage {
  const { followed } = view;
  const found = view.fleet.listed(worldIds, read.listedTo ?? '', limit + 1);
  const later = new LaterXids(followed, read.also);
  const items = found.slice(0, limit);
  const cutAt = items.findIndex((item) => !later.take(item));
  if (cutAt !== -1) items.length = cutAt;
  // What was sent is as new as this, so what follows must be; the round that comes after the list begins with it.
  const open = { upTo: followed, after: START };
  const isLast = cutAt === -1 && found.length <= limit;
  const listedTo = isLast ? null : (items.at(-1)?.device.imei ?? read.listedTo);
  const also = later.all;
  const begun = { ...read, open, also };
  const next = { ...begun, listedTo };
  if (!isLast) return { items, read: next, begun, hasMore: true, isCut: cutAt !== -1 };
  if (hasChanges(view, worldIds, next)) return { items, read: next, begun, hasMore: true, isCut: false };
  return { items, read: { ...readUpTo(followed), also }, begun, hasMore: false, isCut: false };
}

function nextChanges(
  view: FleetView,
  worldIds: readonly number[],
  read: DevicesRead,
  limit: number,
): DevicesPage {
  const { fleet, followed } = view;
  const { seen, open } = read;
  // Only where more transactions run than a cursor has room for.
  if (!followed.contains(seen)) return { items: [], read, begun: read, hasMore: false, isCut: false };
  const upTo = open?.upTo ?? followed;
  const found = changedSince(view, worldIds, seen, upTo, open?.after ?? null, limit);
  const later = new LaterXids(upTo, read.also);
  const page = found.slice(0, limit);
  // What is left out is of later transactions, and so it belongs to the next round anyway.
  const sent = page.filter((item) => later.take(item));
  const isCut = sent.length < page.length;
  // A removed device may have moved to the other world, or was created again.
  const isGone = (imei: string): boolean => !fleet.has(worldIds, imei);
  const items = sentOnce(sent.filter((item) => item.device !== null || isGone(item.imei)));
  const also = later.all;
  const begun = { ...read, open: { upTo, after: open?.after ?? START }, also };
  const last = page.at(-1);
  if (found.length > limit && last !== undefined) {
    const after = { xid: last.xid, id: last.id };
    return { items, read: { ...begun, open: { upTo, after } }, begun, hasMore: true, isCut };
  }
  const next = { ...readUpTo(upTo), also };
  const hasMore = open !== null && hasChanges(view, worldIds, next);
  return { items, read: next, begun, hasMore, isCut };
}

/** Before every position. */
const START: LogPosition = { xid: 0, id: 0 };

/** The transactions behind a snapshot of which something is sent. */
class LaterXids {
  readonly #upTo: Snapshot;
  readonly #xids: Set<number>;

  constructor(upTo: Snapshot, before: readonly number[]) {
    this.#upTo = upTo;
    this.#xids = new Set(before.filter((xid) => !upTo.sees(xid)));
  }

  /** Whether an item can be sent. False when a cursor has no room for its transactions. */
  take({ movedXid, editedXid }: ChangeXids): boolean {
    // Nearly all are seen.
    if (this.#upTo.sees(movedXid) && this.#upTo.sees(editedXid)) return true;
    const added = [movedXid, editedXid].filter((xid) => !this.#upTo.sees(xid) && !this.#xids.has(xid));
    if (this.#xids.size + new Set(added).size > ALSO_MAX) return false;
    for (const xid of added) this.#xids.add(xid);
    return true;
  }

  get all(): number[] {
    return [...this.#xids].sort((a, b) => a - b);
  }
}

/** Whether memory holds something that the reader has not seen. */
export function hasChanges(view: FleetView, worldIds: readonly number[], { seen }: DevicesRead): boolean {
  return changedSince(view, worldIds, seen, view.followed, null, 0).length > 0;
}

/** Changes that memory holds up to `upTo` and a reader who has `seen` does not have. */
function changedSince(
  { fleet, own }: FleetView,
  worldIds: readonly number[],
  seen: Snapshot,
  upTo: Snapshot,
  after: LogPosition | null,
  limit: number,
): Changed[] {
  const isHeld = (xid: number): boolean => upTo.sees(xid) || own.has(xid);
  const isWanted = (moved: number, edited: number): boolean =>
    !(seen.sees(moved) && seen.sees(edited)) && isHeld(moved) && isHeld(edited);
  return fleet.changed(worldIds, { fromXid: seen.xmin, after, limit, isWanted });
}

/** Without what is removed twice: from one of the worlds, and then from the other. */
function sentOnce(items: Changed[]): Changed[] {
  const removed = new Set<string>();
  return items.filter((item) => {
    if (item.device !== null) return true;
    const isNew = !removed.has(item.imei);
    removed.add(item.imei);
    return isNew;
  });
}
