import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { lockExternalIds } from '../../src/areas/areas.sql.ts';
import type { Tx } from '../../src/postgres/sql.ts';
import { callApi } from '../support/http/application.ts';
import { ownerPod } from '../support/ownerPod.ts';
import { type Reply, request } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';
import { endpointBody, webhookApi } from '../support/webhooks/webhooks.ts';

const LARGE = 'large@example.com';
const VICTIM = 'victim@example.com';
const LARGE_IMEI = '350000000000017';
const IMEI = '350000000000025';
/** Far more than there are connections; the limits of one key allow twice as many in a minute. */
const CALLS = 60;
const AREA = { type: 'circle', center: { lat: 41.9, lng: 12.5 }, radius_m: 100 };

/** So many may an account have. */
const ENDPOINTS = 100;

let largeId: number;
/** The path of one below those of webhooks. */
let delivery = '';
const keys: Record<string, string> = {};

const owner = ownerPod({}, async ({ admin, sql }) => {
  for (const [email, imei] of [
    [LARGE, LARGE_IMEI],
    [VICTIM, IMEI],
  ] as const) {
    await admin.account(email);
    await admin.device(email, imei);
    keys[email] = (await admin.key(email)).key;
  }
  const [row] = await sql<{ id: number }[]>`select id from account where email = ${LARGE}`;
  largeId = row?.id as number;
});

const { pod } = owner;

/** Endpoints whose receivers fail, one of them with a delivery. */
before(async () => {
  const webhooks = webhookApi(pod.api, keys[LARGE] as string);
  const { id } = await webhooks.make(endpointBody('https://hooks.example.com/', { active: false }));
  delivery = `${id}/deliveries/${(await webhooks.ping(id)).id}`;
  await owner.sql`
    insert into webhook (account_id, url, events, retry_policy, max_retries, active, secret, failing_since, failures)
    select account_id, url, events, retry_policy, max_retries, active, secret, now(), 14
    from webhook, generate_series(2, ${ENDPOINTS}::int) where id = ${id}`;
});

/** Holds what `lock` takes until the returned function is called. */
async function holding(lock: (tx: Tx) => Promise<unknown>): Promise<() => Promise<unknown>> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const held = owner.sql.begin(async (tx) => {
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

/** How many connections for reads and writes of callers wait for a lock. */
const waitingForLocks = async (): Promise<number> =>
  (
    await owner.sql`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
        and application_name ~ '^fleet (reads|writes)'`
  ).length;

/** Every way in which another customer uses the service; but for paths that begin with `without`. */
async function useAll(minute: number, without: string | undefined): Promise<void> {
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
    if (without !== undefined && path.startsWith(without)) continue;
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
  /** Unless others wait for the same at the paths that begin with this. */
  readonly alsoLocks?: string;
  readonly call: (n: number) => Promise<Reply>;
}

describe('calls of one account wait for the database', () => {
  const attacks: Attack[] = [
    {
      name: 'with two connections for reads',
      running: 2,
      status: 200,
      lock: (tx) => tx`lock table command in access exclusive mode`,
      call: () => callApi(pod, 'GET', `/v3/devices/${LARGE_IMEI}/commands`, { key: keys[LARGE] }),
    },
    {
      name: 'with two connections for its endpoints that fail and a delivery in detail',
      running: 2,
      status: 200,
      lock: (tx) => tx`lock table webhook_delivery in access exclusive mode`,
      alsoLocks: '/webhooks',
      call: (n) =>
        callApi(pod, 'GET', n % 2 === 0 ? '/webhooks?limit=200' : `/webhooks/${delivery}`, {
          key: keys[LARGE],
        }),
    },
    {
      name: 'with one connection for writes that wait for its own import',
      running: 1,
      status: 201,
      lock: (tx) => lockExternalIds(tx, largeId),
      call: (n) =>
        callApi(pod, 'PUT', `/v3/areas/by-external-id/area-${n}`, {
          key: keys[LARGE],
          body: { name: `area ${n}`, ...AREA },
        }),
    },
  ];
  for (const [minute, { name, running, status, lock, alsoLocks, call }] of attacks.entries()) {
    test(`${name}, and every call of another account is answered before any of them`, async () => {
      const release = await holding(lock);
      let answered = 0;
      const calls = Array.from({ length: CALLS }, async (_, n) => {
        const answer = await call(n);
        if (answer.status !== 503) answered++;
        return answer.status;
      });
      await waitFor(async () => (await waitingForLocks()) > 0);
      try {
        await useAll(minute, alsoLocks);
        assert.equal(answered, 0);
        assert.ok((await waitingForLocks()) <= running);
      } finally {
        await release();
      }
      // On a slow machine the time that a call may wait is over before the lock is released.
      for (const each of await Promise.all(calls)) assert.ok(each === status || each === 503, String(each));
    });
  }
});
