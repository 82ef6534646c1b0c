import type { Tx } from './sql.ts';

/** Where an area is, and where it could be. */
export interface AreaHomes {
  readonly worldId: number;
  readonly accountWorldId: number;
  /** Null when its account belongs to no organization. */
  readonly organizationWorldId: number | null;
}

/** The worlds of an area, which is locked until the transaction ends; undefined when there is none. */
export async function lockAreaHomes(tx: Tx, areaId: number): Promise<AreaHomes | undefined> {
  const [row] = await tx<{ world_id: number; account_world: number; organization_world: number | null }[]>`
    select r.world_id, a.world_id as account_world, o.world_id as organization_world
    from area r
    join account a on a.id = r.account_id
    left join organization o on o.id = a.organization_id
    where r.id = ${areaId} for update of r`;
  if (row === undefined) return undefined;
  return {
    worldId: row.world_id,
    accountWorldId: row.account_world,
    organizationWorldId: row.organization_world,
  };
}

export async function moveArea(tx: Tx, areaId: number, worldId: number): Promise<void> {
  await tx`update area set world_id = ${worldId}, revision = revision + 1 where id = ${areaId}`;
}
