import type { Tx } from '../postgres/sql.ts';

/** The world of an area, and the worlds it could be moved to. */
export interface AreaWorlds {
  readonly worldId: number;
  readonly accountWorldId: number;
  /** Null when its account belongs to no organization. */
  readonly organizationWorldId: number | null;
}

/** Locks an area until the transaction ends, and returns its worlds; undefined when there is no such area. */
export async function lockAreaWorlds(tx: Tx, areaId: number): Promise<AreaWorlds | undefined> {
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
