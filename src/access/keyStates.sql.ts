import { invariant } from '../lib/invariant.ts';
import type { Sql } from '../postgres/sql.ts';
import { parseAllowlist } from './allowlist.ts';
import type { KeyState } from './keyState.ts';
import { parseScopes } from './scopes.ts';

/** The key with this fingerprint (SHA-256, hex), with its owner's state and worlds; undefined when there is none. */
export async function selectKeyState(sql: Sql, fingerprint: string): Promise<KeyState | undefined> {
  const [row] = await sql<
    {
      id: number;
      account_id: number;
      account_world: number;
      organization_world: number | null;
      scopes: string[];
      allowlist: string[];
      revoked: boolean;
      active: boolean;
      history_days: number;
    }[]
  >`
    select k.id, k.account_id, a.world_id as account_world, o.world_id as organization_world, k.scopes, k.allowlist,
           k.revoked_at is not null as revoked, a.active, p.history_days
    from api_key k
    join account a on a.id = k.account_id
    join plan p on p.name = a.plan
    left join organization o on o.id = a.organization_id
    where k.fingerprint = decode(${fingerprint}, 'hex')`.named('key_state');
  if (row === undefined) return undefined;
  const scopes = parseScopes(row.scopes);
  const allowlist = parseAllowlist(row.allowlist);
  invariant(
    scopes.ok && allowlist.ok,
    `key ${row.id} is stored with scopes or an allowlist that cannot be read`,
  );
  return {
    id: row.id,
    accountId: row.account_id,
    worldIds:
      row.organization_world === null ? [row.account_world] : [row.account_world, row.organization_world],
    scopes: scopes.value,
    allowlist: allowlist.value,
    revoked: row.revoked,
    ownerActive: row.active,
    historyDays: row.history_days,
  };
}
