import type { Occupant, OccupyingDevice } from './knownDevice.ts';
import { StayReader } from './packedStays.ts';
import type { Ranked } from './sortedList.ts';

/** Blocks are split beyond this length: a change copies at most so many slots. */
const BLOCK_MAX = 128;
const SLOT_BYTES = 4;

/**
 * The devices of one world that are in one area, by the beginning of their stays, then by IMEI. It holds their slots in
 * short blocks, each a text of four bytes a slot (see PackedStays for why), and finds their stays with the devices.
 */
export class OccupantList implements Ranked<Occupant, Occupant> {
  readonly keyOf = itself;
  readonly order = bySince;
  readonly #areaId: number;
  readonly #deviceAt: (slot: number) => OccupyingDevice;
  #blocks: string[] = [''];
  #size = 0;

  constructor(areaId: number, deviceAt: (slot: number) => OccupyingDevice) {
    this.#areaId = areaId;
    this.#deviceAt = deviceAt;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a device whose stay here began then. The device itself need not have this stay yet. */
  put(device: OccupyingDevice, insideSinceMs: number): void {
    const b = this.#blockFor(insideSinceMs, device.fields.imei);
    const block = this.#blocks[b] as string;
    const at = SLOT_BYTES * this.#lowerBound(block, insideSinceMs, device.fields.imei);
    this.#size++;
    const length = block.length + SLOT_BYTES;
    bytes.write(block, 'latin1');
    bytes.copyWithin(at + SLOT_BYTES, at, block.length);
    bytes.writeUInt32BE(device.slot, at);
    if (length <= BLOCK_MAX * SLOT_BYTES) {
      this.#blocks[b] = bytes.toString('latin1', 0, length);
      return;
    }
    const half = (BLOCK_MAX >> 1) * SLOT_BYTES;
    this.#blocks.splice(b, 1, bytes.toString('latin1', 0, half), bytes.toString('latin1', half, length));
  }

  /** Removes a device whose stay here began then. */
  remove(device: OccupyingDevice, insideSinceMs: number): boolean {
    const b = this.#blockFor(insideSinceMs, device.fields.imei);
    const block = this.#blocks[b] as string;
    const n = this.#lowerBound(block, insideSinceMs, device.fields.imei);
    if (n * SLOT_BYTES >= block.length || slotAt(block, n) !== device.slot) return false;
    this.#size--;
    if (block.length === SLOT_BYTES && this.#blocks.length > 1) {
      this.#blocks.splice(b, 1);
      return true;
    }
    bytes.write(block, 'latin1');
    bytes.copyWithin(n * SLOT_BYTES, (n + 1) * SLOT_BYTES, block.length);
    this.#blocks[b] = bytes.toString('latin1', 0, block.length - SLOT_BYTES);
    return true;
  }

  rank({ insideSinceMs, device }: Occupant): number {
    const b = this.#blockFor(insideSinceMs, device.fields.imei);
    let rank = 0;
    for (let i = 0; i < b; i++) rank += (this.#blocks[i] as string).length / SLOT_BYTES;
    return rank + this.#lowerBound(this.#blocks[b] as string, insideSinceMs, device.fields.imei);
  }

  at(index: number): Occupant | undefined {
    return this.slice(index, 1)[0];
  }

  slice(index: number, limit: number): Occupant[] {
    const out: Occupant[] = [];
    let rest = index;
    for (const block of this.#blocks) {
      if (out.length >= limit) break;
      const slots = block.length / SLOT_BYTES;
      for (let n = rest; n < slots && out.length < limit; n++) out.push(this.#occupant(slotAt(block, n)));
      rest = Math.max(0, rest - slots);
    }
    return out;
  }

  #occupant(slot: number): Occupant {
    const device = this.#deviceAt(slot);
    const stays = reader.open(device.stays);
    return { ...stays.stay(stays.indexOf(this.#areaId)), device };
  }

  /** The last block whose first device is not after this one. */
  #blockFor(insideSinceMs: number, imei: string): number {
    let low = 0;
    let high = this.#blocks.length - 1;
    while (low < high) {
      const mid = (low + high + 1) >> 1;
      if (this.#isBefore(slotAt(this.#blocks[mid] as string, 0), insideSinceMs, imei, true)) low = mid;
      else high = mid - 1;
    }
    return low;
  }

  #lowerBound(block: string, insideSinceMs: number, imei: string): number {
    let low = 0;
    let high = block.length / SLOT_BYTES;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.#isBefore(slotAt(block, mid), insideSinceMs, imei, false)) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  #isBefore(slot: number, insideSinceMs: number, imei: string, orEqual: boolean): boolean {
    const device = this.#deviceAt(slot);
    const stays = reader.open(device.stays);
    const sinceMs = stays.insideSinceMs(stays.indexOf(this.#areaId));
    if (sinceMs !== insideSinceMs) return sinceMs < insideSinceMs;
    return device.fields.imei < imei || (orEqual && device.fields.imei === imei);
  }
}

/** One for all, since each use ends before the next begins; so with the bytes of a block that is made. */
const reader = new StayReader();
const bytes = Buffer.alloc((BLOCK_MAX + 1) * SLOT_BYTES);

function slotAt(block: string, n: number): number {
  let slot = 0;
  for (let at = n * SLOT_BYTES; at < (n + 1) * SLOT_BYTES; at++) slot = slot * 256 + block.charCodeAt(at);
  return slot;
}

function itself(occupant: Occupant): Occupant {
  return occupant;
}

function bySince(a: Occupant, b: Occupant): number {
  const apartMs = a.insideSinceMs - b.insideSinceMs;
  if (apartMs !== 0) return apartMs;
  const { imei } = a.device.fields;
  const other = b.device.fields.imei;
  return imei < other ? -1 : imei === other ? 0 : 1;
}
