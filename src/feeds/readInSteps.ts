import type { Changed } from '../devices/worldChanges.memory.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { DevicesRead } from './cursors.ts';
import { type DevicesPage, type FleetView, isCurrent, readDevices } from './readDevices.ts';

/** Devices that are read in one step: less than a millisecond. */
const DEVICES_PER_STEP = 1_000;

/**
 * The next page of up to `limit` devices, read in steps as a reader would who asks for smaller pages. It is shorter, with
 * more to come, where such a reader would be sent a device for the second time, where the list or a round ends, and where
 * memory has changed so that only a new call can go on.
 *
 * `view`: what memory holds now; null when it cannot be used for what was read before.
 */
export function* readInSteps(
  view: () => FleetView | null,
  worldIds: readonly number[],
  from: DevicesRead,
  limit: number,
  perStep = DEVICES_PER_STEP,
): Steps<DevicesPage | null> {
  const first = view();
  if (first === null) return null;
  let page = readDevices(first, worldIds, from, Math.min(limit, perStep));
  const items = [...page.items];
  const imeis = new Set(items.map(imeiOf));
  for (let left = limit - perStep; left > 0 && goesOn(page, from); left -= perStep) {
    yield;
    const present = view();
    if (present === null || !isCurrent(present, page.read)) break;
    const next = readDevices(present, worldIds, page.read, Math.min(left, perStep));
    if (next.isCut || next.items.some((item) => imeis.has(imeiOf(item)))) break;
    for (const item of next.items) imeis.add(imeiOf(item));
    items.push(...next.items);
    page = next;
  }
  return { ...page, items };
}

/** Whether what follows a page belongs to the same list or the same round. */
function goesOn({ read, hasMore, isCut }: DevicesPage, from: DevicesRead): boolean {
  if (!hasMore || isCut) return false;
  return read.listedTo !== null || (from.listedTo === null && read.open !== null);
}

/** Takes the device as it is: memory changes while the page is made, and an answer must not be newer than its cursor says. */
function imeiOf(item: Changed): string {
  return item.device === null ? item.imei : item.device.taken().imei;
}
