import type { Tx } from './sql.ts';
import { list } from './tracks.ts';

/**
 * Lets one transaction at a time bring external ids into the namespace of an account. Whoever holds this sees every
 * area that has one of its codes, so nobody loses a race for one, and two imports of the same codes in another order
 * never wait for each other in a circle. To be taken before any area is locked.
 */
export async function lockCodes(tx: Tx, accountId: number): Promise<void> {
  await tx`select pg_advisory_xact_lock(hashtextextended(${`area codes ${accountId}`}, 0))`;
}

/** Who made an area of these worlds, and so whose namespace its code is in: that never changes. */
export async function selectAreaMaker(
  tx: Tx,
  worldIds: readonly number[],
  areaId: number,
): Promise<number | undefined> {
  const [row] = await tx<{ account_id: number }[]>`
    select account_id from area where id = ${areaId} and world_id = any(${list(worldIds)}::bigint[])`;
  return row?.account_id;
}
