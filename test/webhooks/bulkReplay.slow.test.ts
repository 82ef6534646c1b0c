import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { weekStartMs } from '../../src/lib/time.ts';
import { DELIVERIES, ensureWeeks } from '../../src/postgres/partitions.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { request } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { type ServiceProcess, startProcess } from '../support/service.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { startReceiver } from '../support/webhooks/receiver.ts';
import { deliveringEnv, endLeases } from '../support/webhooks/webhookProcesses.ts';
import { endpointBody, type WebhookApi, webhookApi } from '../support/webhooks/webhooks.ts';

/** Replayed at an endpoint that is not active, where they are queued and not sent. */
const MANY = IS_TORTURE ? 1_000_000 : 6_000;
const SENT = IS_TORTURE ? 20_000 : 150;
/** At a time, of the customer that the victim must not notice. */
const CALLS_AT_ONCE = 4;
/** Until the victim has called beside them. */
const TRIES_MAX = 5;
const [OWNER, VICTIM] = ['owner@example.com', 'victim@example.com'];
/** In one statement. */
const INSERTED = 100_000;
const AGE_MS = 2 * 3_600_000;

interface Scene {
  readonly sql: Sql;
  readonly keys: readonly [owner: string, victim: string];
  readonly start: () => ServiceProcess;
  /** The one that runs; it is killed, and the next takes its place. */
  service: ServiceProcess;
}

async function startScene(t: TestContext): Promise<Scene> {
  const { url } = await createDatabase(t);
  const admin = adminOf(url);
  for (const email of [OWNER, VICTIM]) await admin.account(email);
  await admin.device(VICTIM, '350000000000001');
  const keys = [(await admin.key(OWNER)).key, (await admin.key(VICTIM)).key] as const;
  const sql = openSql(url, { maxConnections: 4, name: 'test' });
  t.after(() => sql.end());
  await ensureWeeks(sql, DELIVERIES, [weekStartMs(Date.now()), weekStartMs(Date.now() - AGE_MS)]);
  // An attempt that a kill interrupts has failed, and its delivery is due again two minutes later.
  const env = await deliveringEnv(t, url, 500, { ROLES: 'api,ingest,delivery' });
  const start = () => startProcess(t, env);
  return { sql, keys, start, service: start() };
}

const apiOf = async ({ service, keys }: Scene): Promise<WebhookApi> =>
  webhookApi((await service.listening).api, keys[0]);

async function killService(scene: Scene): Promise<void> {
  const { child, ended } = scene.service;
  child.kill('SIGKILL');
  await ended;
  scene.service = scene.start();
}

/** Puts dead letters and delivered ones in turn, a microsecond apart, in place of the one delivery that an endpoint has. */
async function addDeadLetters({ sql }: Scene, webhookId: number, count: number): Promise<void> {
  const firstMs = Date.now() - AGE_MS;
  const [first] = await sql<
    { id: string }[]
  >`select id from webhook_delivery where webhook_id = ${webhookId}`;
  const firstId = first?.id ?? '';
  for (let from = 1; from <= 2 * count; from += INSERTED) {
    await sql`
      insert into webhook_delivery (id, webhook_id, account_id, event_id, event_type, body, status, attempts, spent,
        next_attempt_at, created_at)
      select 'dlv_' || md5(random()::text || n), d.webhook_id, d.account_id, 'evt_' || md5(n::text), d.event_type, d.body,
        case n % 2 when 0 then 'exhausted' else 'delivered' end, 5, 5, null,
        ${new Date(firstMs)}::timestamptz + n * interval '1 microsecond'
      from (select * from webhook_delivery where id = ${firstId}) d,
        generate_series(${from}::int, ${Math.min(from + INSERTED - 1, 2 * count)}::int) n`;
  }
  await sql`delete from webhook_delivery where id = ${firstId}`;
  await sql.unsafe('analyze webhook_delivery');
}

/** An endpoint with dead letters, that is not active. */
async function endpointWith(scene: Scene, api: WebhookApi, url: string, count: number): Promise<number> {
  const { id } = await api.make(endpointBody(url, { active: false }));
  await api.ping(id);
  await waitFor(async () => (await api.deliveries(id)).length === 1);
  await addDeadLetters(scene, id, count);
  return id;
}

async function countOf(sql: Sql, webhookId: number, status: string): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from webhook_delivery where webhook_id = ${webhookId} and status = ${status}`;
  return row?.count ?? 0;
}

const ALL = { status: ['failed', 'exhausted'] };

/** On a slow machine a call may run out of time; the next one goes on where it was. */
async function replayAll(api: WebhookApi, id: number): Promise<void> {
  for (;;) {
    const { status, text } = await api.call('POST', `/${id}/replay`, ALL);
    if (status === 202) return;
    assert.equal(status, 503, text);
  }
}

test('a bulk replay', async (t) => {
  const scene = await startScene(t);
  const { sql } = scene;
  const receiver = await startReceiver(t);

  await t.test(
    `of ${MANY} deliveries that is killed in the middle goes on with the next call: each is queued once, oldest first`,
    async (t) => {
      const api = await apiOf(scene);
      const id = await endpointWith(scene, api, 'https://127.0.0.1:9/', MANY);
      const cut = api.call('POST', `/${id}/replay`, ALL).then(
        () => 'answered',
        () => 'cut',
      );
      await waitFor(async () => (await countOf(sql, id, 'requeued')) >= MANY / 4);
      await killService(scene);
      assert.equal(await cut, 'cut');
      // Postgres goes on with the chunk that it has begun.
      await waitFor(async () => {
        const rows = await sql`select 1 from pg_stat_activity
        where datname = current_database() and application_name like 'fleet writes%' and state = 'active'`;
        return rows.length === 0;
      });
      const before = await countOf(sql, id, 'requeued');
      const left = await countOf(sql, id, 'exhausted');
      assert.equal(before + left, MANY);
      assert.ok(left > 0, `of ${before} some were left`);

      const startMs = performance.now();
      const reply = await (await apiOf(scene)).call('POST', `/${id}/replay`, ALL);
      t.diagnostic(`${left} in ${Math.round(performance.now() - startMs)} ms`);
      assert.deepEqual([reply.status, reply.body.data], [202, { requeued: left }]);
      const [order] = await sql<{ count: number; unordered: number; spent: number }[]>`
      select count(*)::int as count, count(*) filter (where not is_behind)::int as unordered, max(spent) as spent from (
        select spent, next_attempt_at > lag(next_attempt_at, 1, '-infinity') over (order by created_at, id) as is_behind
        from webhook_delivery where webhook_id = ${id} and status = 'requeued') d`;
      assert.deepEqual(order, { count: MANY, unordered: 0, spent: 0 });
    },
  );

  await t.test(
    `of ${SENT} deliveries that is killed while they are sent sends each once, oldest first`,
    async () => {
      const api = await apiOf(scene);
      const id = await endpointWith(scene, api, `${receiver.url}/replayed`, SENT);
      await api.change(id, { active: true });
      const cut = api.call('POST', `/${id}/replay`, ALL).catch(() => 'cut');
      await waitFor(() => receiver.received.length > SENT / 3);
      await killService(scene);
      await cut;
      await endLeases(sql);
      assert.equal((await (await apiOf(scene)).call('POST', `/${id}/replay`, ALL)).status, 202);
      await waitFor(async () => (await countOf(sql, id, 'delivered')) === 2 * SENT);
      const ids = receiver.received.map(({ headers }) => headers['x-service-delivery-id'] as string);
      const oldest = await sql<{ id: string; attempts: number }[]>`
      select id, attempts from webhook_delivery where webhook_id = ${id} and attempts > 5 order by created_at, id`;
      assert.equal(oldest.length, SENT);
      // What was on its way when the process was killed may have arrived, and is sent again after its lease.
      const onTheWay = oldest.filter(({ attempts }) => attempts > 6).map((row) => row.id);
      assert.ok(onTheWay.length <= 1, `${onTheWay.length} were sent again`);
      const replayed = oldest.map((row) => row.id).filter((each) => !onTheWay.includes(each));
      const isReplayed = new Set(replayed);
      // The first one that was ever sent is the one that all are copies of.
      assert.deepEqual(
        ids.filter((each) => isReplayed.has(each)),
        replayed,
      );
    },
  );

  await t.test('keeps nobody else waiting: others read, write and are sent theirs meanwhile', async (t) => {
    const { api: url } = await scene.service.listening;
    const [owner, victim] = scene.keys.map((key) => webhookApi(url, key)) as [WebhookApi, WebhookApi];
    const own = await victim.make(endpointBody(`${receiver.url}/victim`));
    const headers = { 'X-API-Key': scene.keys[1] };
    const rounds: number[] = [];
    const round = async (): Promise<void> => {
      const startMs = performance.now();
      const poll = await request(`${url}/api/v3/devices/nearest?lat=1&lng=2`, { headers });
      const list = await request(`${url}/api/v3/events`, { headers });
      assert.deepEqual([poll.status, list.status], [200, 200]);
      await victim.change(own.id, { description: `round ${rounds.length}` });
      await victim.ping(own.id);
      rounds.push(performance.now() - startMs);
    };
    const ids: number[] = [];
    /** How many rounds the victim makes while as much as may be is replayed. */
    const roundsBesideReplays = async (): Promise<number> => {
      const filled: number[] = [];
      for (let n = 0; n < CALLS_AT_ONCE; n++)
        filled.push(await endpointWith(scene, owner, 'https://127.0.0.1:9/', MANY / CALLS_AT_ONCE));
      ids.push(...filled);
      let isOver = false;
      const replays = Promise.all(filled.map((id) => replayAll(owner, id))).finally(() => {
        isOver = true;
      });
      const before = rounds.length;
      while (!isOver) await round();
      await replays;
      return rounds.length - before;
    };
    let most = 0;
    // On a busy machine replays may be over before this process has had its turn twice.
    for (let n = 0; n < TRIES_MAX && most < 2; n++) most = Math.max(most, await roundsBesideReplays());
    assert.ok(most > 1, 'the victim was served beside the replays');
    t.diagnostic(`${rounds.length} rounds of four calls, the longest ${Math.round(Math.max(...rounds))} ms`);
    await waitFor(() => receiver.to('/victim').length >= rounds.length);
    for (const id of ids) assert.equal(await countOf(sql, id, 'requeued'), MANY / CALLS_AT_ONCE);
  });
});
