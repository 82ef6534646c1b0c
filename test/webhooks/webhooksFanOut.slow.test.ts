import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Sql } from '../../src/postgres/sql.ts';
import { patienceMs } from '../support/patience.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { type Place, startPostgresProxy } from '../support/postgres/postgresProxy.ts';
import { startProcess } from '../support/service.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { drained, proveAudit, proveDeliveries } from '../support/webhooks/deliveryProof.ts';
import {
  deliveringEnv,
  endLeases,
  eventIdsOf,
  startAuditedOwner,
} from '../support/webhooks/webhookProcesses.ts';
import { EventSource, endpointBody, postPoints } from '../support/webhooks/webhooks.ts';

const IMEI = '350000000000001';
const ENDPOINTS = ['/a', '/b', '/c'].map((path) => ({ path, budget: 5 }));
/** Endpoints that are paused before anything is sent to them: they make the chunks, and cost no time. */
const PAUSED = 17;
/** More deliveries than a transaction makes itself, and than one chunk has. */
const EVENTS = IS_TORTURE ? 1_500 : 60;
const STUCK_MS = 60_000;

interface Harm {
  readonly signal: 'SIGKILL' | 'SIGSTOP';
  readonly when: string;
  readonly place: Place;
}

const BEFORE = { when: 'before its first chunk', place: 'before' } as const;
const AFTER = { when: 'after its first chunk, before it knows', place: 'after' } as const;
const HARMS: readonly Harm[] = [
  { signal: 'SIGSTOP', ...BEFORE },
  { signal: 'SIGKILL', ...AFTER },
  ...(IS_TORTURE
    ? ([
        { signal: 'SIGKILL', ...BEFORE },
        { signal: 'SIGSTOP', ...AFTER },
      ] as const)
    : []),
];

/** What a pod does that takes points and delivers, and how it is stopped in the middle of emptying the outbox. */
async function startSetup(t: TestContext) {
  const { url } = await createDatabase(t);
  const owner = await startAuditedOwner(t, url, [IMEI]);
  const { api, receiver } = owner;
  const paused = Array.from({ length: PAUSED }, (_, n) => `/paused/${n}`);
  for (const path of [...ENDPOINTS.map((endpoint) => endpoint.path), ...paused])
    await api.make(endpointBody(receiver.url + path));
  const proxy = await startPostgresProxy(t, url);
  const env = await deliveringEnv(t, url, 60_000);
  const start = (databaseUrl: string) => startProcess(t, { ...env, DATABASE_URL: databaseUrl });
  return { ...owner, url, proxy, start };
}

const isEmpty = async (sql: Sql): Promise<boolean> => (await sql`select from webhook_outbox`).length === 0;

/** All is sent but what is held for the paused endpoints: every event that happened before they were paused, once. */
async function sent(sql: Sql): Promise<void> {
  const held = await sql<{ count: number; events: number }[]>`
    with removed as (
      delete from webhook_delivery d using webhook w where w.id = d.webhook_id and not w.active
      returning d.webhook_id, d.event_id
    )
    select count(*)::int as count, count(distinct event_id)::int as events from removed group by webhook_id`;
  for (const { count, events } of held) assert.deepEqual([count, events], [EVENTS, EVENTS]);
  if (held.length > 0) assert.equal(held.length, PAUSED);
  await drained(sql, patienceMs(STUCK_MS));
}

describe('a pod that makes deliveries out of the outbox', {
  concurrency: 2,
}, () => {
  for (const { signal, when, place } of HARMS) {
    test(`gets ${signal} ${when}: another goes on, nothing is lost, doubled or out of order`, async (t) => {
      const { url, sql, proxy, receiver, start } = await startSetup(t);
      const source = new EventSource(IMEI, Date.now() - 86_400_000);
      const victim = start(proxy.url);
      const { ingest } = await victim.listening;
      const reached = proxy.hold(place, ({ text }) => text === 'fan_out');
      const points = Array.from({ length: EVENTS }, () => source.point());
      assert.equal(
        await postPoints(ingest, points),
        200,
        'the points are answered whatever comes of their deliveries',
      );
      await reached;
      victim.child.kill(signal);
      await sql`update webhook set active = false where url like '%/paused/%'`;
      const made = await sql`select from webhook_delivery`;
      assert.equal(made.length > 0, place === 'after');
      assert.ok(!(await isEmpty(sql)));
      if (signal === 'SIGKILL') {
        await victim.ended;
        // Nobody is left to write under its leases; in the long form they run out by themselves.
        if (!IS_TORTURE) await endLeases(sql);
      }

      const heir = start(url);
      const more = Array.from({ length: 3 }, () => source.point());
      assert.equal(await postPoints((await heir.listening).ingest, more), 200);
      await waitFor(() => isEmpty(sql));
      await sent(sql);
      if (signal === 'SIGSTOP') {
        victim.child.kill('SIGCONT');
        more.push(source.point());
        assert.equal(await postPoints(ingest, more), 200);
        await waitFor(() => isEmpty(sql));
        await sent(sql);
      }
      const ids = await eventIdsOf(sql);
      assert.equal(ids.length, points.length + more.length);
      await proveDeliveries(sql, receiver, ENDPOINTS, ids);
      await proveAudit(sql);
      for (const { path } of ENDPOINTS) {
        const order = receiver.to(path).map(({ body }) => JSON.parse(body).data.fleet_event_id);
        assert.deepEqual([...new Set(order)], ids, `${path} got them in the order of production`);
      }
    });
  }
});
