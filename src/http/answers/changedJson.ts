import type { DeviceFields, LatestPosition } from '../../engine/device.ts';
import type { Changed } from '../../memory/changes/worldChanges.ts';
import { changedDeviceJson, removedDeviceJson, statusOf } from './deviceJson.ts';

/** A power of two. With every slot in use about 20 MB. */
const SLOTS = 2 ** 15;

const OPENING = '{"data":[';
const COMMA = 0x2c;

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

  /** `{ data, meta }` with these items. The bytes are written straight from the texts, which are not joined before. */
  page(items: readonly Changed[], metaJson: string, nowMs: number): Buffer {
    const texts = items.map((item) => this.json(item, nowMs));
    const closing = `],"meta":${metaJson}}`;
    let length = OPENING.length + closing.length;
    for (const text of texts) length += Buffer.byteLength(text) + 1;
    const bytes = Buffer.allocUnsafe(length);
    let at = bytes.write(OPENING);
    for (const text of texts) {
      if (at > OPENING.length) bytes[at++] = COMMA;
      at += bytes.write(text, at);
    }
    return bytes.subarray(0, at + bytes.write(closing, at));
  }

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
