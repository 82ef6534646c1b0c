import { DeviceColumns } from '../../src/devices/deviceColumns.memory.ts';

interface Own {
  readonly idOf?: (slot: number) => number;
  readonly compare?: (slot: number, other: number) => number;
}

/** Columns of slots from 0 on that are no devices, with ids and an order of their own: by default both are the slots. */
export class SlotColumns extends DeviceColumns {
  readonly #own: Own;

  constructor(slots: number, own: Own = {}) {
    super();
    this.#own = own;
    for (let slot = 1; slot < slots; slot++) this.takeForRemoval(slot);
  }

  override id(slot: number): number {
    return this.#own.idOf?.(slot) ?? slot;
  }

  override compare(slot: number, other: number): number {
    return this.#own.compare?.(slot, other) ?? slot - other;
  }
}
