import type { Sql } from '../postgres/sql.ts';

/** An account as the commands list it. */
export interface ListedAccount {
  readonly id: number;
  readonly email: string;
  readonly name: string;
  readonly organization_id: number | null;
  readonly organization: string | null;
  readonly plan: string;
  readonly active: boolean;
}

/** The accounts behind an id, by id. */
export function selectAccountPage(sql: Sql, afterId: number, limit: number): Promise<ListedAccount[]> {
  return sql<ListedAccount[]>`
    select a.id, a.email, a.name, a.organization_id, o.name as organization, a.plan, a.active
    from account a left join organization o on o.id = a.organization_id
    where a.id > ${afterId} order by a.id limit ${limit}`;
}
