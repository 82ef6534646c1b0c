import { type changedDeviceJson, type Device, statusOf } from './device.ts';

/** What a text was made of. */
interface KeptText {
  readonly device: Device;
  readonly status: string;
  readonly text: string;
}

/**
 * Keeps the texts of devices: most have not changed since the last call, and making one takes ten times as long as
 * finding it here. A device's row determines its slot, shared with others in a large fleet. Slots come as the fleet grows.
 */
export class DeviceTexts {
  readonly #write: typeof changedDeviceJson;
  readonly #slotsMax: number; // a power of two
  readonly #kept: (KeptText | undefined)[] = [];

  constructor(write: typeof changedDeviceJson, slotsMax: number) {
    this.#write = write;
    this.#slotsMax = slotsMax;
  }

  text(device: Device, nowMs: number, headingDeg = 0, ignition: boolean | null = null): string {
    const slot = device.row & (this.#slotsMax - 1);
    while (this.#kept.length <= slot) this.#kept.push(undefined);
    const kept = this.#kept[slot];
    const status = statusOf(device.statusFacts, nowMs);
    if (kept?.status === status && kept.device.isSame(device)) return kept.text;
    // Joined from pieces, a string is a tree of them until it is copied into one.
    const text = Buffer.from(this.#write(device, nowMs, headingDeg, ignition)).toString();
    this.#kept[slot] = { device: device.mark(), status, text };
    return text;
  }
}
