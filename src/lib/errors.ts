import { formatIso } from './time.ts';

/** States what must hold; a false condition is a bug of this program, never an error of the caller. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

export class InvariantError extends Error {
  override name = 'InvariantError';
}

/** True for an error of the system that has one of these codes, such as ENOENT. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

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
