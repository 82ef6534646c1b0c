import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { selectLogEnd } from '../../src/changelog/database.sql.ts';
import {
  countPodsBehind,
  deletePod,
  forgetDeadPods,
  LIVE_SECONDS,
  upsertPod,
} from '../../src/changelog/pods.sql.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

let sql: Sql;
let drop: () => Promise<void>;
before(async () => {
  const database = await createDatabase();
  drop = database.drop;
  sql = openSql(database.url, { maxConnections: 4, name: 'test' });
});
after(async () => {
  await sql.end();
  await drop();
});

const present = () => sql.begin(selectLogEnd);

/** A transaction that has ended; its number. */
async function write(): Promise<string> {
  const [row] = await sql<{ xid: string }[]>`select pg_current_xact_id()::text as xid`;
  return row?.xid ?? '';
}

describe('a writer', () => {
  test('waits for the pods that were seen lately and have not followed it', async () => {
    const pods = [randomUUID(), randomUUID()] as const;
    const before = await present();
    for (const pod of pods) await upsertPod(sql, pod, before);
    const xid = await write();
    assert.equal(await countPodsBehind(sql, xid), 2);
    await upsertPod(sql, pods[0], await present());
    assert.equal(await countPodsBehind(sql, xid), 1);
    await sql`update pod set seen_at = seen_at - make_interval(secs => ${LIVE_SECONDS}) where id = ${pods[1]}`;
    assert.equal(await countPodsBehind(sql, xid), 0, 'not for one that was not seen any more');
    await upsertPod(sql, pods[1], before);
    assert.equal(await countPodsBehind(sql, xid), 1, 'until it is back');
    for (const pod of pods) await deletePod(sql, pod);
    assert.equal(await countPodsBehind(sql, xid), 0);
  });

  test('does not wait for a pod that followed it past an older transaction that is still open', async () => {
    const opened = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const open = sql.begin(async (tx) => {
      await tx`select pg_current_xact_id()`;
      opened.resolve();
      await released.promise;
    });
    await opened.promise;
    const xid = await write();
    const pod = randomUUID();
    await upsertPod(sql, pod, await present());
    assert.equal(await countPodsBehind(sql, xid), 0);
    released.resolve();
    await open;
    await deletePod(sql, pod);
  });
});

test('only pods that died long ago are forgotten', async () => {
  const pods = [randomUUID(), randomUUID()] as const;
  for (const pod of pods) await upsertPod(sql, pod, await present());
  await sql`update pod set seen_at = seen_at - interval '2 hours' where id = ${pods[0]}`;
  await forgetDeadPods(sql);
  const rows = await sql<{ id: string }[]>`select id from pod`;
  assert.deepEqual(
    rows.map((row) => row.id),
    [pods[1]],
  );
});
