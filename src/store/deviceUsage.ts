import type { Tx } from './sql.ts';
import { list } from './tracks.ts';

/**
 * How many devices these worlds have. Until the transaction ends nobody else adds to them. To be taken after the locks
 * of devices, as the triggers do that count; by ascending id, so two never wait for each other in a circle.
 */
export async function lockDeviceCounts(
  tx: Tx,
  worldIds: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  await tx`
    insert into device_usage (world_id) select id from unnest(${list(worldIds)}::bigint[]) as id order by id
    on conflict do nothing`;
  const rows = await tx<{ world_id: number; devices: number }[]>`
    select world_id, devices from device_usage where world_id = any(${list(worldIds)}::bigint[])
    order by world_id for update`;
  return new Map(rows.map((row) => [row.world_id, row.devices]));
}
