import { openSql } from '../../src/postgres/sql.ts';
import { adminOf } from '../../test/support/postgres/admin.ts';

/** Keys used in turn: more than fit into the first-level cache of a processor. */
const KEYS = 256;

/** Distributes the devices of a world among new accounts. Returns one key for each of the first accounts. */
export async function splitAmong(databaseUrl: string, accounts: number): Promise<string[]> {
  const sql = openSql(databaseUrl, { maxConnections: 1, name: 'bench tenants' });
  try {
    await sql.begin(async (tx) => {
      await tx`
        with made as (insert into world select from generate_series(1, ${accounts}::int) returning id)
        insert into account (email, name, world_id)
        select 'tenant' || row_number() over () || '@example.com', 'Tenant', id from made`;
      await tx`
        with owner as (
          select world_id, row_number() over (order by id) - 1 as n from account where email like 'tenant%'
        )
        update device d set world_id = owner.world_id from owner where owner.n = d.id % ${accounts}::int`;
    });
    await sql.unsafe('analyze device');
  } finally {
    await sql.end();
  }
  const admin = adminOf(databaseUrl);
  const keys: string[] = [];
  for (let n = 1; n <= Math.min(KEYS, accounts); n++) {
    keys.push((await admin.key(`tenant${n}@example.com`)).key);
  }
  return keys;
}
