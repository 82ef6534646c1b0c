import type { Tx } from '../postgres/sql.ts';
import { arrayLiteral } from '../postgres/sqlText.ts';

/**
 * Locks the external ids of an account until the transaction ends: only one transaction at a time adds some. The holder
 * sees every area that has one, so it cannot lose a race for an id. And two imports of the same ids in different order
 * cannot deadlock. Must be called before any area is locked.
 */
export async function lockExternalIds(tx: Tx, accountId: number): Promise<void> {
  // The text of the lock is the same in all versions: their pods run side by side.
  await tx`select pg_advisory_xact_lock(hashtextextended(${`area codes ${accountId}`}, 0))`;
}

/** The account that made an area of these worlds. Its external id is unique among the areas of that account. */
export async function selectAreaMaker(
  tx: Tx,
  worldIds: readonly number[],
  areaId: number,
): Promise<number | undefined> {
  const [row] = await tx<{ account_id: number }[]>`
    select account_id from area where id = ${areaId} and world_id = any(${arrayLiteral(worldIds)}::bigint[])`;
  return row?.account_id;
}
