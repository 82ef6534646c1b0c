import { invariant } from '../lib/errors.ts';
import { type changedDeviceJson, type Device, type DeviceReader, onlineUntilMs } from './device.ts';

/** Memory that several lists are cut from: to allocate it costs as much as to write a list. A slow reader keeps one from being freed. */
const ROOM_BYTES = 2 ** 17;
const COMMA = 0x2c;

/**
 * Keeps the texts of devices: most have not changed since the last call, and making one takes ten times as long as
 * finding it here. A device's row determines its slot, shared with others in a large fleet. Slots come as the fleet grows.
 *
 * What a text was made of is kept in columns, not in an object for each device. A list of 50 reads 50 neighbouring slots,
 * and each object would be one more cache miss.
 */
export class DeviceTexts {
  readonly #write: typeof changedDeviceJson;
  readonly #slotsMax: number; // a power of two
  /** The memory that all of these are from. */
  #reader: DeviceReader | null = null;
  // By slot: the device, its version, and the times between which its status stays the same.
  #rows = new Uint32Array(0);
  #versions = new Uint32Array(0);
  #timesMs = new Float64Array(0);
  #bytes = new Uint32Array(0);
  #texts: string[] = [];
  #room = Buffer.alloc(0);
  #roomUsed = 0;

  constructor(write: typeof changedDeviceJson, slotsMax: number) {
    this.#write = write;
    this.#slotsMax = slotsMax;
  }

  text(device: Device, nowMs: number, headingDeg = 0, ignition: boolean | null = null): string {
    return this.#texts[this.#slotOf(device, nowMs, headingDeg, ignition)] as string;
  }

  /** The texts of devices between `before` and `after`, separated by commas. */
  list(devices: readonly Device[], nowMs: number, before: string, after: string): Buffer {
    const texts: string[] = [];
    let [characters, bytes] = [0, 0];
    for (const device of devices) {
      const slot = this.#slotOf(device, nowMs, 0, null);
      const text = this.#texts[slot] as string;
      texts.push(text);
      characters += text.length;
      bytes += this.#bytes[slot] as number;
    }
    const list = this.#roomFor(before.length + bytes + texts.length + after.length);
    // Of ASCII alone, which is written faster.
    const encoding = characters === bytes ? 'latin1' : 'utf8';
    let end = list.write(before);
    for (const text of texts) {
      end += list.write(text, end, encoding);
      list[end++] = COMMA;
    }
    if (texts.length > 0) end--;
    return list.subarray(0, end + list.write(after, end));
  }

  /** Where the text of a device is, which is made if need be. */
  #slotOf(device: Device, nowMs: number, headingDeg: number, ignition: boolean | null): number {
    const { reader, row, version } = device;
    if (reader !== this.#reader) this.#beginFor(reader);
    const slot = row & (this.#slotsMax - 1);
    if (slot >= this.#rows.length) this.#grow(slot);
    if (
      this.#rows[slot] === row &&
      this.#versions[slot] === version &&
      nowMs > (this.#timesMs[2 * slot] as number) &&
      nowMs <= (this.#timesMs[2 * slot + 1] as number)
    )
      return slot;
    invariant(row > 0, 'the device is in memory');
    const facts = device.statusFacts;
    const onlineMs = facts === null ? Infinity : onlineUntilMs(facts.recordedAtMs, facts.speedKmh);
    // Joined from pieces, a string is a tree of them until it is copied into one.
    const bytes = Buffer.from(this.#write(device, nowMs, headingDeg, ignition));
    this.#texts[slot] = bytes.toString();
    this.#bytes[slot] = bytes.length;
    this.#rows[slot] = row;
    this.#versions[slot] = version;
    this.#timesMs.set(nowMs <= onlineMs ? [-Infinity, onlineMs] : [onlineMs, Infinity], 2 * slot);
    return slot;
  }

  #roomFor(bytes: number): Buffer {
    if (bytes > ROOM_BYTES / 4) return Buffer.allocUnsafeSlow(bytes);
    if (this.#roomUsed + bytes > this.#room.length) {
      this.#room = Buffer.allocUnsafeSlow(ROOM_BYTES);
      this.#roomUsed = 0;
    }
    this.#roomUsed += bytes;
    return this.#room.subarray(this.#roomUsed - bytes, this.#roomUsed);
  }

  #beginFor(reader: DeviceReader | null): void {
    this.#reader = reader;
    this.#rows.fill(0);
    this.#texts.fill('');
  }

  #grow(slot: number): void {
    const slots = 2 ** Math.ceil(Math.log2(slot + 1));
    this.#rows = grown(this.#rows, slots);
    this.#versions = grown(this.#versions, slots);
    this.#bytes = grown(this.#bytes, slots);
    const timesMs = this.#timesMs;
    this.#timesMs = new Float64Array(2 * slots);
    this.#timesMs.set(timesMs);
  }
}

function grown(numbers: Uint32Array<ArrayBuffer>, length: number): Uint32Array<ArrayBuffer> {
  const longer = new Uint32Array(length);
  longer.set(numbers);
  return longer;
}
