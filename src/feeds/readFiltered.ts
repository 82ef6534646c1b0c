import { createHash } from 'node:crypto';
import type { Snapshot } from '../changelog/appliedTransactions.memory.ts';
import { FirstChanges } from '../devices/changeOrder.ts';
import { ageLimitsMs, type DeviceFilter, passesGroups, passesTime } from '../devices/living/deviceFilter.ts';
import type { Changed } from '../devices/worldChanges.memory.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { DevicesRead, FilteredRead } from './cursors.ts';
import { type DevicesPage, type FleetView, isCurrent, readDevices } from './readDevices.ts';

/** Devices in one step, which takes less than a millisecond. */
const DEVICES_PER_STEP = 500;
/** Devices that are read for one page. Those that pass the filter may be fewer. */
const LOOKED_AT_MAX = 50_000;
/** The most devices of a page that are reported because time has passed: they are put in order in one go. */
const AGED_MAX = 1_000;

/** A device that is reported to a reader with filters; `isLeft`: it does not pass, but may have passed before. */
export interface FilteredItem {
  readonly item: Changed;
  readonly isLeft: boolean;
}

export interface FilteredPage extends Pick<DevicesPage, 'read' | 'hasMore' | 'isCut'> {
  readonly items: readonly FilteredItem[];
}

/** The same number for the same filters. Of four billion. */
export function filterHash({ key }: DeviceFilter): number {
  return createHash('sha256').update(key).digest().readUInt32LE();
}

/** A read of what passes filters that begins at a moment. */
export function filteredFrom(filter: DeviceFilter, nowMs: number): FilteredRead {
  return { hash: filterHash(filter), agedToMs: nowMs, agedToId: 0 };
}

export function passesFilter(filter: DeviceFilter, { device }: Changed, nowMs: number): boolean {
  if (device === null) return false;
  const { recordedAtMs, speedKmh } = device.statusFacts ?? { recordedAtMs: Number.NaN, speedKmh: 0 };
  return passesTime(filter, recordedAtMs, speedKmh, nowMs) && passesGroups(filter, device.groups);
}

/**
 * The next page of up to `limit` devices for a reader with filters, in steps: first all that pass, then those that have
 * changed since, of which those that do not pass have left, then those that begin or cease to pass because time has
 * passed. An IMEI is on a page once. What has left may never have passed, unless groups alone say so.
 *
 * `view`: what memory holds now; null when it cannot be used for what was read before. Null also when the reader is limited
 * to groups and may have seen a device that it sees no longer.
 */
export function* readFiltered(
  view: () => FleetView | null,
  worldIds: readonly number[],
  from: DevicesRead & { readonly filtered: FilteredRead },
  filter: DeviceFilter,
  limit: number,
  nowMs: number,
): Steps<FilteredPage | null> {
  const items = new Map<string, FilteredItem>();
  let read: DevicesRead = from;
  let lookedAt = 0;
  for (let present = view(); ; present = view()) {
    if (present === null || !isCurrent(present, read)) {
      if (lookedAt === 0) return null;
      return { items: [...items.values()], read, hasMore: true, isCut: false };
    }
    const page = readDevices(present, worldIds, read, DEVICES_PER_STEP);
    lookedAt += DEVICES_PER_STEP;
    if (page.items.some((item) => mayHaveBeenSeen(item, read, filter))) return null;
    const before = read;
    const end = takePage(items, page, before, filter, limit, nowMs);
    read = { ...end.read, filtered: from.filtered };
    const isRoundOver = before.listedTo === null && !end.isFull && read.open === null;
    if (isRoundOver && (filter.groups !== null || filter.seen !== null)) {
      const behindId = yield* takeOvertaken(items, view, worldIds, before, read.seen, filter, limit);
      if (behindId === 'seen') return null;
      if (behindId !== null) {
        const open = { upTo: read.seen, after: { xid: BEHIND_ALL_XID, id: behindId } };
        return {
          items: [...items.values()],
          read: { ...read, seen: before.seen, open },
          hasMore: true,
          isCut: false,
        };
      }
    }
    const isOver = end.isFull || page.isCut || (page.hasMore && lookedAt >= LOOKED_AT_MAX);
    if (isOver) return { items: [...items.values()], read, hasMore: true, isCut: page.isCut };
    if (!page.hasMore) break;
    yield;
  }
  const present = view();
  if (present === null) return null;
  const aged = yield* readAged(present, worldIds, from.filtered, filter, limit - items.size, nowMs);
  for (const { item, isLeft } of aged.items) {
    const imei = imeiOf(item);
    if (!items.has(imei)) items.set(imei, { item, isLeft });
  }
  const filtered = { ...from.filtered, agedToMs: aged.toMs, agedToId: aged.toId };
  return { items: [...items.values()], read: { ...read, filtered }, hasMore: aged.hasMore, isCut: false };
}

/** Adds to a page what is reported to its reader, as far as there is room. Returns how far that is. */
function takePage(
  items: Map<string, FilteredItem>,
  page: DevicesPage,
  before: DevicesRead,
  filter: DeviceFilter,
  limit: number,
  nowMs: number,
): { read: DevicesRead; isFull: boolean } {
  const isList = before.listedTo !== null;
  let last: Changed | null = null;
  for (const item of page.items) {
    const isPassing = passesFilter(filter, item, nowMs);
    const isTold = isPassing || (!isList && mayHavePassed(item, before, filter));
    if (isTold) {
      const imei = imeiOf(item);
      if (items.size === limit && !items.has(imei))
        return { read: last === null ? before : behind(last, page, isList), isFull: true };
      items.set(imei, { item, isLeft: !isPassing && item.device !== null });
    }
    last = item;
  }
  return { read: page.read, isFull: false };
}

/** Behind all changes of a round: its reader lacks only what was overtaken. */
const BEHIND_ALL_XID = Number.MAX_SAFE_INTEGER;

/**
 * Adds the devices that were edited in a round and moved before it had come to them, as far as their groups keep them out now.
 * The round leaves them to the next one, for which their edit is seen: it could not tell that they may have passed before. By
 * id, so that this ends while they move on. Returns the id behind which it has to go on, or null; `seen`: a reader who is
 * limited to groups may have seen one that it sees no longer.
 */
function* takeOvertaken(
  items: Map<string, FilteredItem>,
  view: () => FleetView | null,
  worldIds: readonly number[],
  { seen, open }: DevicesRead,
  upTo: Snapshot,
  filter: DeviceFilter,
  limit: number,
): Steps<number | 'seen' | null> {
  for (let behindId = open?.after?.xid === BEHIND_ALL_XID ? open.after.id : 0; ; ) {
    const present = view();
    if (present === null) return behindId;
    const first = new FirstChanges<{ xid: number; id: number }>(DEVICES_PER_STEP);
    const isWanted = (moved: number, edited: number, id: number): boolean => {
      const isOvertaken = !seen.sees(edited) && upTo.sees(edited) && !upTo.sees(moved);
      if (isOvertaken && id > behindId) first.offer({ xid: 0, id });
      return false;
    };
    present.fleet.changed(worldIds, { fromXid: seen.xmin, after: null, limit: 0, isWanted });
    const ids = first.inOrder().map(({ id }) => id);
    for (const item of present.fleet.living.shown(worldIds, ids)) {
      if (!passesGroups(filter, item.device.groups)) {
        if (mayHaveBeenSeen(item, { seen, listedTo: null }, filter)) return 'seen';
        const imei = imeiOf(item);
        if (items.size === limit && !items.has(imei)) return behindId;
        items.set(imei, { item, isLeft: true });
      }
      behindId = item.id;
    }
    if (ids.length < DEVICES_PER_STEP) return null;
    behindId = ids.at(-1) as number;
    yield;
  }
}

/**
 * Whether a reader who is limited to groups saw a device before that it does not see now. Memory has no groups of before, and
 * to tell the reader of every device that was edited or removed would tell of those that it never saw.
 */
function mayHaveBeenSeen(
  { device, editedXid }: Changed,
  { seen, listedTo }: Pick<DevicesRead, 'seen' | 'listedTo'>,
  { seen: groups }: DeviceFilter,
): boolean {
  // The list has each device once.
  if (groups === null || listedTo !== null) return false;
  if (device === null) return true;
  return !seen.sees(editedXid) && !device.groups.some((group) => groups.has(group));
}

/** Its groups change by edits only. */
function mayHavePassed({ device, editedXid }: Changed, { seen }: DevicesRead, filter: DeviceFilter): boolean {
  return device === null || !seen.sees(editedXid) || passesGroups(filter, device.groups);
}

/** The next page begins after this item. */
function behind(item: Changed, { begun }: DevicesPage, isList: boolean): DevicesRead {
  if (isList) return { ...begun, listedTo: imeiOf(item) };
  const upTo = begun.open?.upTo ?? begun.seen;
  return { ...begun, open: { upTo, after: { xid: item.xid, id: item.id } } };
}

/** Devices that begin or cease to pass because time has passed, with how far in time they go. */
function* readAged(
  { fleet }: FleetView,
  worldIds: readonly number[],
  { agedToMs, agedToId }: FilteredRead,
  filter: DeviceFilter,
  room: number,
  nowMs: number,
): Steps<{ items: FilteredItem[]; toMs: number; toId: number; hasMore: boolean }> {
  const limits = ageLimitsMs(filter);
  const count = Math.min(room, AGED_MAX);
  if (limits.length === 0 || nowMs <= agedToMs)
    return { items: [], toMs: Math.max(nowMs, agedToMs), toId: agedToId, hasMore: false };
  const first = new FirstChanges<{ xid: number; id: number }>(count + 1);
  yield* fleet.living.aged(worldIds, limits, agedToMs, nowMs, (id, atMs) => {
    if (atMs > agedToMs || id > agedToId) first.offer({ xid: atMs, id });
  });
  const found = first.inOrder();
  const hasMore = found.length > count;
  const told = found.slice(0, count);
  const last = told.at(-1) ?? { xid: agedToMs, id: agedToId };
  const shown = fleet.living.shown(
    worldIds,
    told.map(({ id }) => id),
  );
  const items = shown.map((item) => ({ item, isLeft: !passesFilter(filter, item, nowMs) }));
  return hasMore
    ? { items, toMs: last.xid, toId: last.id, hasMore }
    : { items, toMs: nowMs, toId: 0, hasMore };
}

/** Takes the device as it is: memory changes while the page is made, and an answer must not be newer than its cursor says. */
function imeiOf(item: Changed): string {
  return item.device === null ? item.imei : item.device.taken().imei;
}
