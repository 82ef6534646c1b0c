import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DAY_MS } from '../../src/lib/time.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { INGEST_TOKEN, type Reply, request } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { startPostgresProxy } from '../support/postgres/postgresProxy.ts';
import { serviceEnv, startProcess } from '../support/service.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { EventSource } from '../support/webhooks/webhooks.ts';

const OWNER = 'owner@example.com';
const IMEIS = Array.from({ length: 20 }, (_, n) => String(350_000_000_000_001 + n));
const [LOCKED = '', ...OTHERS] = IMEIS;

const post = (ingest: string, points: readonly object[]): Promise<Reply> =>
  request(`${ingest}/positions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': INGEST_TOKEN },
    body: JSON.stringify(points),
  });

describe('a pod that stands still in the middle of a point', () => {
  test('holds up that device on another pod, and no other; then its points are stored in order, once', async (t) => {
    const { url } = await createDatabase(t);
    const admin = adminOf(url);
    await admin.account(OWNER);
    await admin.importDevices(
      OWNER,
      IMEIS.map((imei) => ({ imei })),
    );
    const sql = openSql(url, { maxConnections: 1, name: 'test' });
    t.after(() => sql.end());
    const proxy = await startPostgresProxy(t, url);
    const victim = startProcess(t, { ...serviceEnv(proxy.url), ROLES: 'ingest' });
    const survivor = startProcess(t, { ...serviceEnv(url), ROLES: 'ingest' });
    const { ingest: frozen } = await victim.listening;
    const { ingest } = await survivor.listening;
    const sources = new Map(IMEIS.map((imei) => [imei, new EventSource(imei, Date.now() - DAY_MS)]));
    const pointOf = (imei: string) => (sources.get(imei) as EventSource).point();

    const reached = proxy.hold('after', ({ text }) => text.includes('insert into position'));
    const cutOff = [pointOf(LOCKED)];
    const lost = post(frozen, cutOff).catch(() => null);
    await reached;
    victim.child.kill('SIGSTOP');

    const answered: string[] = [];
    const sendOwn = async (name: string, points: readonly object[]) => {
      const { status } = await post(ingest, points);
      assert.equal(status, 200);
      answered.push(name);
    };
    // One request with the locked device among others, and another of it alone.
    const mixed = sendOwn('mixed', IMEIS.map(pointOf));
    await waitFor(async () => (await sql`select from position`).length === OTHERS.length);
    const own = sendOwn('own', [pointOf(LOCKED)]);
    for (let n = 0; n < 10; n++) await sendOwn('others', OTHERS.map(pointOf));
    assert.deepEqual([...new Set(answered)], ['others']);
    // As Postgres itself does with a transaction that says nothing for ten seconds.
    if (!IS_TORTURE) {
      await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and state = 'idle in transaction'`;
    }
    await Promise.all([mixed, own]);
    victim.child.kill('SIGCONT');
    assert.notEqual((await lost)?.status, 200, 'what Postgres has rolled back was not acknowledged');

    const { body } = await post(ingest, cutOff);
    assert.deepEqual([body.data.accepted, body.data.late], [1, 1], 'sent again it is stored');
    const rows = await sql<{ imei: string; points: number; events: number; inOrder: boolean }[]>`
      select d.imei, (select count(*)::int from position p where p.device_id = d.id) as points,
        count(e.id)::int as events, array_agg(e.occurred_at order by e.id) = array_agg(e.occurred_at order by e.occurred_at)
          as "inOrder"
      from device d join fleet_event e on e.device_id = d.id group by d.id order by d.imei`;
    assert.deepEqual(
      [...rows],
      IMEIS.map((imei) => ({
        imei,
        points: imei === LOCKED ? 3 : 11,
        events: imei === LOCKED ? 2 : 11,
        inOrder: true,
      })),
    );
  });
});
