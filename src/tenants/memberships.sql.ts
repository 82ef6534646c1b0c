import type { Sql, Tx } from '../postgres/sql.ts';
import { arrayLiteral } from '../postgres/sqlText.ts';

/** An account's world and that of its organization, if it belongs to one. */
export interface MembershipRow {
  readonly accountId: number;
  readonly worldId: number;
  readonly organizationWorldId: number | null;
  /** Stays that its areas may have, by its plan. */
  readonly maxStays: number;
}

interface RawMembership {
  id: number;
  world_id: number;
  organization_world: number | null;
  max_stays: number;
}

export async function selectMemberships(sql: Sql | Tx): Promise<MembershipRow[]> {
  const rows = await sql<RawMembership[]>`
    select a.id, a.world_id, o.world_id as organization_world, p.max_stays
    from account a join plan p on p.name = a.plan left join organization o on o.id = a.organization_id`;
  return rows.map(membershipRow);
}

export async function selectMembershipsById(
  sql: Sql,
  accountIds: readonly number[],
): Promise<MembershipRow[]> {
  if (accountIds.length === 0) return [];
  const rows = await sql<RawMembership[]>`
    select a.id, a.world_id, o.world_id as organization_world, p.max_stays
    from account a join plan p on p.name = a.plan left join organization o on o.id = a.organization_id
    where a.id = any(${arrayLiteral(accountIds)}::bigint[])`;
  return rows.map(membershipRow);
}

function membershipRow(row: RawMembership): MembershipRow {
  return {
    accountId: row.id,
    worldId: row.world_id,
    organizationWorldId: row.organization_world,
    maxStays: row.max_stays,
  };
}
