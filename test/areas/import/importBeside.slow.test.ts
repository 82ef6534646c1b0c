import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { selectLogEnd } from '../../../src/changelog/database.sql.ts';
import { upsertPod } from '../../../src/changelog/pods.sql.ts';
import { IMPORT_CHUNK } from '../../../src/devices/importDevices.ts';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { startPod } from '../../support/pod.ts';
import { adminOf } from '../../support/postgres/admin.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { runs } from '../../support/torture.ts';

const OWNER = 'importer@example.com';
const DEVICES = runs(2) * IMPORT_CHUNK;
const lines = Array.from({ length: DEVICES }, (_, n) => ({ imei: String(860_000_000_000_000 + n) }));

/** A pod that follows the feed slowly, until it is ended; returns how many devices were new to it, each time. */
function startSlowPod(sql: Sql): { end(): Promise<readonly number[]> } {
  const podId = randomUUID();
  const steps: number[] = [];
  let isOver = false;
  const follow = async (): Promise<void> => {
    let known = 0;
    while (!isOver) {
      const { cursor, devices } = await sql.begin('isolation level repeatable read', async (tx) => {
        const [row] = await tx<{ devices: number }[]>`select count(*)::int as devices from device`;
        return { cursor: await selectLogEnd(tx), devices: row?.devices ?? 0 };
      });
      steps.push(devices - known);
      known = devices;
      await upsertPod(sql, podId, cursor);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const following = follow();
  return {
    end: async () => {
      isOver = true;
      await following;
      return steps;
    },
  };
}

test('an import of devices waits for the pods that follow it, and points of others are stored all along', async (t) => {
  const { url } = await createDatabase(t);
  const sql = openSql(url, { maxConnections: 2, name: 'test' });
  t.after(() => sql.end());
  const admin = adminOf(url);
  await admin.account(OWNER);
  await admin.account('victim@example.com');
  const imeis = ['350000000000001', '350000000000002'];
  for (const imei of imeis) await admin.device('victim@example.com', imei);
  const pods = await Promise.all(imeis.map(() => startPod(url, { t })));
  const slow = startSlowPod(sql);
  let isOver = false;
  let storedMeanwhile = 0;
  const send = async (n: number): Promise<void> => {
    for (let at = Date.now() - 3_600_000; !isOver; at++) {
      const point = { imei: imeis[n], recorded_at: at, latitude: 41.9, longitude: 12.5 };
      const { accepted, late } = await (pods[n] as (typeof pods)[number]).points([point]);
      assert.deepEqual([accepted, late], [1, 0]);
      if (!isOver) storedMeanwhile++;
    }
  };
  const sending = imeis.map((_, n) => send(n));
  await admin.importDevices(OWNER, lines);
  isOver = true;
  await Promise.all(sending);
  assert.equal(Math.max(...(await slow.end())), IMPORT_CHUNK);
  const [row] = await sql<{ devices: number }[]>`select count(*)::int as devices from device`;
  assert.equal(row?.devices, DEVICES + imeis.length);
  // One for each chunk at least; it was none for as long as memory was behind.
  assert.ok(storedMeanwhile >= (2 * DEVICES) / IMPORT_CHUNK, `${storedMeanwhile} points`);
});
