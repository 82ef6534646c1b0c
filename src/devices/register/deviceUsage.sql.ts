import type { Tx } from '../../postgres/sql.ts';
import { arrayLiteral } from '../../postgres/sqlText.ts';

/**
 * How many devices these worlds have. Locked until the transaction ends, so nobody else can add any before that. Must be
 * called after the locks of devices, like the triggers that count. Locks by ascending id, so two calls cannot deadlock.
 */
export async function lockDeviceCounts(
  tx: Tx,
  worldIds: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  await tx`
    insert into device_usage (world_id) select id from unnest(${arrayLiteral(worldIds)}::bigint[]) as id order by id
    on conflict do nothing`;
  const rows = await tx<{ world_id: number; devices: number }[]>`
    select world_id, devices from device_usage where world_id = any(${arrayLiteral(worldIds)}::bigint[])
    order by world_id for update`;
  return new Map(rows.map((row) => [row.world_id, row.devices]));
}
