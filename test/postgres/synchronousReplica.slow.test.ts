import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openSql } from '../../src/postgres/sql.ts';
import { PostgresUnreachable, unavailability } from '../../src/postgres/sqlErrors.ts';
import { startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { waitFor } from '../support/waitFor.ts';

test('a commit that waits for a synchronous replica until somebody cancels it is no success', async (t) => {
  const { url } = await startOwnPostgres(t);
  const sql = openSql(url, { maxConnections: 1, name: 'writer' });
  const operator = openSql(url, { maxConnections: 1, name: 'operator' });
  t.after(() => Promise.all([sql.end(), operator.end()]));
  await sql`create table written (n integer)`;
  await operator`alter system set synchronous_standby_names = 'nobody'`;
  await operator`select pg_reload_conf()`;
  /** Writes until a commit waits, since Postgres reads the setting some time after the reload; what that write came to. */
  const cancelWaiting = async (write: () => Promise<unknown>): Promise<unknown> => {
    for (;;) {
      let isDone = false;
      let isCanceled = false;
      const outcome = write()
        .then(
          () => null,
          (error: unknown) => error,
        )
        .finally(() => {
          isDone = true;
        });
      await waitFor(async () => {
        const canceled = await operator`
          select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'writer' and wait_event = 'SyncRep'`;
        isCanceled = canceled.length === 1;
        return isCanceled || isDone;
      }, 'no commit waits for a replica, and none ends');
      if (isCanceled) return outcome;
      assert.equal(await outcome, null);
    }
  };
  for (const write of [
    () => sql.begin((tx) => tx`insert into written values (1)`),
    async () => sql`insert into written values (2)`,
  ]) {
    const error = await cancelWaiting(write);
    assert.ok(error instanceof PostgresUnreachable);
    assert.equal(unavailability(error), 'not_replicated');
  }
  // Both are there, for as long as the primary is. The next caller gets no error of the last one.
  assert.deepEqual([...(await sql`select distinct n from written order by n`)], [{ n: 1 }, { n: 2 }]);
});
