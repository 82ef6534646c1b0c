import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { holdTransaction } from '../support/postgres/holdTransaction.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';
import { type MemoryPod, openMemoryPod } from './memoryPod.ts';

let url: string;
let sql: Sql;
let drop: () => Promise<void>;

before(async () => {
  ({ url, drop } = await createDatabase());
  sql = openSql(url, { maxConnections: 1, name: 'test' });
});
after(async () => {
  await sql.end();
  await drop();
});

async function startedPod(t: TestContext): Promise<MemoryPod> {
  const pod = openMemoryPod(url);
  t.after(() => pod.close());
  await pod.follower.start();
  return pod;
}

describe('a Postgres that does not answer', () => {
  /** Makes every read of the feed wait until the returned function is called. */
  const lockFeed = () => holdTransaction(sql, (tx) => tx`lock table change in access exclusive mode`);

  test('counts as unresponsive after two seconds, until it answers', async (t) => {
    const pod = await startedPod(t);
    assert.equal(pod.follower.isUnresponsive, false);
    const release = await lockFeed();
    const sinceMs = performance.now();
    const caughtUp = pod.follower.catchUp();
    await waitFor(() => pod.follower.isUnresponsive);
    assert.ok(performance.now() - sinceMs > 1_900);
    await release();
    await caughtUp;
    assert.equal(pod.follower.isUnresponsive, false);
  });

  test('does not count as unresponsive for time in which this process itself did not run', async (t) => {
    const pod = await startedPod(t);
    const release = await lockFeed();
    const caughtUp = pod.follower.catchUp();
    for (let times = 0; times < 2; times++) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_200);
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
      assert.equal(pod.follower.isUnresponsive, false);
    }
    await release();
    await caughtUp;
    assert.equal(pod.follower.isUnresponsive, false);
  });
});
