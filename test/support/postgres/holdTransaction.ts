import type { Sql, Tx } from '../../../src/postgres/sql.ts';

/** Opens a transaction that does `work` and then stays open. Returns the function that commits it. */
export async function holdTransaction(
  sql: Sql,
  work: (tx: Tx) => Promise<unknown>,
): Promise<() => Promise<void>> {
  const opened = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const transaction = sql.begin(async (tx) => {
    await tx`set local idle_in_transaction_session_timeout = 0`; // a slow machine takes longer than a pod may
    await work(tx);
    opened.resolve();
    await released.promise;
  });
  await opened.promise;
  return async () => {
    released.resolve();
    await transaction;
  };
}

/** How many connections to this database wait for a lock. */
export async function countLockWaiters(sql: Sql): Promise<number> {
  const waiting = await sql`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  return waiting.length;
}
