import { formatIso } from './time.ts';

/** Which packed points cannot be read, and why. */
export interface Damage {
  readonly deviceId: number;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly reason: string;
}

/** Packed points cannot be unpacked: their bytes are not those that were stored. */
export class DamagedPoints extends Error {
  override name = 'DamagedPoints';
  readonly damage: Damage;

  constructor(damage: Damage) {
    super(`the points from ${formatIso(damage.firstMs)} to ${formatIso(damage.lastMs)} are damaged`);
    this.damage = damage;
  }
}
