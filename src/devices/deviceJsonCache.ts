import { deviceJson, statusOf } from './deviceJson.ts';
import type { Device } from './knownDevice.ts';
import type { DeviceFields, LatestPosition } from './motion.ts';

/** A power of two. With every slot in use about 60 MB. */
const SLOTS = 2 ** 17;

/** What a text was made of: memory replaces fields and position as a whole, so the same object means the same text. */
interface Kept {
  readonly fields: DeviceFields;
  readonly position: LatestPosition | null;
  readonly status: string;
  readonly text: string;
}

/**
 * Caches the JSON of devices that were in lists. Most devices of a list have not changed since the last call, and
 * making a text takes ten times as long as finding it here. The id of a device determines its slot; devices with the
 * same slot replace each other.
 */
export class DeviceJsonCache {
  readonly #kept: (Kept | undefined)[] = new Array(SLOTS).fill(undefined);

  json(device: Device, nowMs: number): string {
    const { fields, position } = device;
    const slot = fields.id & (SLOTS - 1);
    const kept = this.#kept[slot];
    const status = statusOf(position, nowMs);
    if (kept?.fields === fields && kept.position === position && kept.status === status) return kept.text;
    // Joined from pieces, a string is a tree of them until it is copied into one.
    const text = Buffer.from(deviceJson(device, nowMs)).toString();
    this.#kept[slot] = { fields, position, status, text };
    return text;
  }
}
