import type { Changed } from '../devices/changes/worldChanges.ts';
import type { DeviceFields, LatestPosition } from '../devices/device.ts';
import { changedDeviceJson, removedDeviceJson, statusOf } from '../devices/deviceJson.ts';

/** A power of two. With every slot in use about 20 MB. */
const SLOTS = 2 ** 15;

interface Kept {
  readonly fields: DeviceFields;
  readonly position: LatestPosition | null;
  readonly status: string;
  readonly text: string;
}

/**
 * Items of the feeds as JSON text. A device that has changed is sent to every reader of its world: its text is made
 * once. Memory replaces fields and position as a whole, so the same object means the same text.
 */
export class ChangedJson {
  readonly #kept: (Kept | undefined)[] = new Array(SLOTS).fill(undefined);

  json(item: Changed, nowMs: number): string {
    if (item.device === null) return removedDeviceJson(item.imei);
    const { fields, position } = item.device;
    const slot = fields.id & (SLOTS - 1);
    const kept = this.#kept[slot];
    const status = statusOf(position, nowMs);
    if (kept?.fields === fields && kept.position === position && kept.status === status) return kept.text;
    const joined = changedDeviceJson(item.device, item.headingDeg, item.ignition, nowMs);
    // Joined from pieces, a string is a tree of them until it is copied into one.
    const text = Buffer.from(joined).toString();
    this.#kept[slot] = { fields, position, status, text };
    return text;
  }
}
