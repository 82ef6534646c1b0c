import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
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
  startLast,
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

/** A process that takes points and delivers. */
async function startSetup(t: TestContext) {
  const { url } = await createDatabase(t);
  const owner = await startAuditedOwner(t, url, [IMEI]);
  const { api, receiver } = owner;
  for (const { path } of ENDPOINTS) await api.make(endpointBody(receiver.url + path));
  const pausedIds: number[] = [];
  for (let n = 0; n < PAUSED; n++)
    pausedIds.push((await api.make(endpointBody(`${receiver.url}/paused/${n}`))).id);
  const proxy = await startPostgresProxy(t, url);
  const env = await deliveringEnv(t, proxy.url, 60_000);
  const start = () => startProcess(t, env);
  const source = new EventSource(IMEI, Date.now() - 86_400_000);
  const startLastHeir = () => startLast(t, env);
  return { ...owner, proxy, source, pausedIds, start, startLastHeir, victim: start(), sentPoints: 0 };
}

type Setup = Awaited<ReturnType<typeof startSetup>>;

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

/** The victim is harmed while it empties the outbox; another process, the next victim, goes on. */
async function harmVictim(setup: Setup, { signal, place }: Harm, isLast: boolean): Promise<void> {
  const { sql, proxy, receiver, source, victim } = setup;
  assert.equal(victim.child.signalCode, null, 'there is an heir of the harm before');
  const { ingest } = await victim.listening;
  const send = async (address: string, count: number): Promise<void> => {
    const points = Array.from({ length: count }, () => source.point());
    const status = await postPoints(address, points);
    assert.equal(status, 200, 'points are answered whatever comes of their deliveries');
    setup.sentPoints += count;
  };
  for (const id of setup.pausedIds) await setup.api.change(id, { active: true });
  const [before] = await sql<{ count: number }[]>`select count(*)::int as count from webhook_delivery`;
  const reached = proxy.hold(place, ({ text }) => text === 'fan_out');
  await send(ingest, EVENTS);
  await reached;
  victim.child.kill(signal);
  await sql`update webhook set active = false where url like '%/paused/%'`;
  const made = await sql`select from webhook_delivery`;
  assert.equal(made.length > (before?.count ?? 0), place === 'after');
  assert.ok(!(await isEmpty(sql)));
  if (signal === 'SIGKILL') {
    await victim.ended;
    // Nobody is left to write under its leases; in the long form they run out by themselves.
    if (!IS_TORTURE) await endLeases(sql);
  }

  if (!isLast) setup.victim = setup.start();
  const heir = isLast ? setup.startLastHeir() : setup.victim;
  await send((await heir.listening).ingest, 3);
  await waitFor(() => isEmpty(sql));
  await sent(sql);
  if (signal === 'SIGSTOP') {
    victim.child.kill('SIGCONT');
    await send(ingest, 1);
    await waitFor(() => isEmpty(sql));
    await sent(sql);
    victim.child.kill('SIGKILL');
    await victim.ended;
    await endLeases(sql);
  }
  const ids = await eventIdsOf(sql);
  assert.equal(ids.length, setup.sentPoints);
  await proveDeliveries(sql, receiver, ENDPOINTS, ids);
  await proveAudit(sql);
  for (const { path } of ENDPOINTS) {
    const order = receiver.to(path).map(({ body }) => JSON.parse(body).data.fleet_event_id);
    assert.deepEqual([...new Set(order)], ids, `${path} got them in the order of production`);
  }
}

test('a pod that makes deliveries out of the outbox is harmed: another goes on, nothing is lost, doubled or out of order', async (t) => {
  const setup = await startSetup(t);
  for (const harm of HARMS)
    await t.test(`${harm.signal} ${harm.when}`, () => harmVictim(setup, harm, harm === HARMS.at(-1)));
});
