import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { lockCodes } from '../../src/store/areaCodes.ts';
import { openSql, type Sql, type Tx } from '../../src/store/sql.ts';
import { adminOf } from '../support/admin.ts';
import { callApi } from '../support/application.ts';
import { type Pod, type Reply, request, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { waitFor } from '../support/waitFor.ts';

const LARGE = 'large@example.com';
const VICTIM = 'victim@example.com';
const LARGE_IMEI = '350000000000017';
const IMEI = '350000000000025';
/** Far more than there are connections; the limits of one key allow twice as many in a minute. */
const CALLS = 60;
const AREA = { type: 'circle', center: { lat: 41.9, lng: 12.5 }, radius_m: 100 };

let pod: Pod;
let sql: Sql;
let largeId: number;
const keys: Record<string, string> = {};

before(async () => {
  const { url } = await createDatabase();
  const admin = adminOf(url);
  for (const [email, imei] of [
    [LARGE, LARGE_IMEI],
    [VICTIM, IMEI],
  ] as const) {
    await admin.account(email);
    await admin.device(email, imei);
    keys[email] = (await admin.key(email)).key;
  }
  sql = openSql(url, { maxConnections: 2, name: 'test' });
  const [row] = await sql<{ id: number }[]>`select id from account where email = ${LARGE}`;
  largeId = row?.id as number;
  pod = await startPod(url);
});
after(async () => {
  await pod.stop();
  await sql.end();
});

/** Holds what `lock` takes until the returned function is called. */
async function holding(lock: (tx: Tx) => Promise<unknown>): Promise<() => Promise<unknown>> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const held = sql.begin(async (tx) => {
    await lock(tx);
    locked.resolve();
    await promise;
  });
  await locked.promise;
  return () => {
    resolve();
    return held;
  };
}

const waitingForLocks = async (): Promise<number> =>
  (await sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
    .length;

/** Every way in which another customer uses the service. */
async function useAll(minute: number): Promise<void> {
  const key = keys[VICTIM] as string;
  const at = new Date(Date.now() - 600_000 + minute * 60_000).toISOString();
  const point = { imei: IMEI, recorded_at: at, latitude: 41.9, longitude: 12.5 };
  assert.equal((await pod.points([point])).accepted, 1);
  for (const path of [
    '/v3/devices/nearest?lat=41.9&lng=12.5',
    '/v3/events',
    `/v3/devices/${IMEI}/history`,
    '/v1/keys',
    '/webhooks',
    '/webhooks/metrics/summary',
  ]) {
    assert.equal((await callApi(pod, 'GET', path, { key })).status, 200, path);
  }
  const body = { name: 'mine', ...AREA };
  const saved = await callApi(pod, 'PUT', `/v3/areas/by-external-id/mine-${minute}`, { key, body });
  assert.equal(saved.status, 201);
  assert.equal((await request(`${pod.api}/readyz`)).status, 200);
}

interface Attack {
  readonly name: string;
  /** How many of its calls hold a connection. */
  readonly running: number;
  /** What each of them is answered with in the end. */
  readonly status: number;
  /** Makes them wait, and nobody else. */
  readonly lock: (tx: Tx) => Promise<unknown>;
  readonly call: (n: number) => Promise<Reply>;
}

describe('one account that waits for the database with all it has', () => {
  const attacks: Attack[] = [
    {
      name: 'with reads: two of them run',
      running: 2,
      status: 200,
      lock: (tx) => tx`lock table command in access exclusive mode`,
      call: () => callApi(pod, 'GET', `/v3/devices/${LARGE_IMEI}/commands`, { key: keys[LARGE] }),
    },
    {
      name: 'with writes that wait for an import of its own: one of them runs',
      running: 1,
      status: 201,
      lock: (tx) => lockCodes(tx, largeId),
      call: (n) =>
        callApi(pod, 'PUT', `/v3/areas/by-external-id/area-${n}`, {
          key: keys[LARGE],
          body: { name: `area ${n}`, ...AREA },
        }),
    },
  ];
  for (const [minute, { name, running, status, lock, call }] of attacks.entries()) {
    test(`${name}, and every call of another is answered before any of them`, async () => {
      const release = await holding(lock);
      let answered = 0;
      const calls = Array.from({ length: CALLS }, async (_, n) => {
        const answer = await call(n);
        answered++;
        return answer.status;
      });
      await waitFor(async () => (await waitingForLocks()) > 0);
      await useAll(minute);
      assert.equal(answered, 0);
      assert.equal(await waitingForLocks(), running);
      await release();
      const statuses = await Promise.all(calls);
      assert.deepEqual(new Set(statuses), new Set([status]));
    });
  }
});
