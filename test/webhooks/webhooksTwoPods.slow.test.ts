import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { newEventId, pingBody } from '../../src/webhooks/message.ts';
import { type Pod, request, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis, startRedis, type TestRedis } from '../support/redis.ts';
import { waitFor } from '../support/waitFor.ts';
import { type Receiver, startReceiver } from '../support/webhooks/receiver.ts';
import {
  EventSource,
  endpointBody,
  type WebhookApi,
  webhookApi,
  webhookEnv,
} from '../support/webhooks/webhooks.ts';

const ENDPOINTS = 4;
const EVENTS = 15;
const DEAD_POD_TOKENS = 1_000;

/** Two pods that ingest and deliver, sharing Redis. */
describe('deliveries of two pods', { skip: skipWithoutRedis() }, () => {
  let sql: Sql;
  let redis: TestRedis;
  let pods: readonly [Pod, Pod];
  let api: WebhookApi;
  let receiver: Receiver & { close(): Promise<void> };
  let source: EventSource;

  before(async () => {
    const { url } = await createDatabase();
    redis = await startRedis();
    const admin = adminOf(url, redis.url);
    await admin.account('owner@example.com');
    await admin.device('owner@example.com', '350000000000001');
    const env = webhookEnv(1, { REDIS_URL: redis.url });
    pods = await Promise.all([startPod(url, { env }), startPod(url, { env })]);
    receiver = await startReceiver();
    sql = openSql(url, { maxConnections: 2, name: 'test' });
    api = webhookApi(pods[0].api, (await admin.key('owner@example.com')).key);
    source = new EventSource('350000000000001', Date.now() - 86_400_000);
  });
  after(async () => {
    await Promise.all(pods.map((pod) => pod.stop()));
    await receiver.close();
    await sql.end();
    await redis.stop();
  });

  const deleteAll = async (): Promise<void> => {
    for (const { id } of (await api.call('GET', '?limit=200')).body.data) await api.call('DELETE', `/${id}`);
  };

  test('never two in flight to one endpoint, each event once and in its order; one that hangs holds up nobody', async () => {
    await deleteAll();
    receiver.behave(['hang'], '/hanging');
    await api.make(endpointBody(`${receiver.url}/hanging`));
    // Slow enough that other pods come by while a request is in flight.
    const slow = () => ({ status: 200, after: new Promise((resolve) => setTimeout(resolve, 5)) });
    const ids: number[] = [];
    for (let n = 0; n < ENDPOINTS; n++) {
      receiver.behave(slow, `/endpoint/${n}`);
      ids.push((await api.make(endpointBody(`${receiver.url}/endpoint/${n}`))).id);
    }
    for (let n = 0; n < EVENTS; n++) await source.emit(pods[n % 2] as Pod);
    for (const [n, id] of ids.entries()) {
      await api.deliveriesWhen(id, EVENTS, ({ status }) => status === 'delivered');
      assert.equal(receiver.maxInFlight(`/endpoint/${n}`), 1);
      const eventIds = receiver.to(`/endpoint/${n}`).map(({ body }) => JSON.parse(body).data.fleet_event_id);
      assert.deepEqual(
        eventIds,
        [...new Set(eventIds)].sort((a, b) => a - b),
      );
      assert.equal(eventIds.length, EVENTS);
    }
    assert.equal(receiver.maxInFlight('/hanging'), 1);
  });

  test('a lease that was taken away: the late result changes nothing and is counted as fenced', async () => {
    await deleteAll();
    const answer = Promise.withResolvers<void>();
    receiver.behave([{ status: 200, after: answer.promise }, 500, 500], '/fenced');
    const { id } = await api.make(endpointBody(`${receiver.url}/fenced`, { max_retries: 2 }));
    await api.ping(id);
    await waitFor(() => receiver.to('/fenced').length === 1);
    // As if the pod had slept past its lease.
    await sql`update webhook set leased_until = clock_timestamp() - interval '1 second' where id = ${id}`;
    await api.change(id, {});
    const [cutOff] = await api.deliveriesWhen(id, 1, ({ status }) => status === 'exhausted');
    assert.deepEqual([cutOff?.attempts, cutOff?.last_error], [2, 'http_500']);
    answer.resolve();
    const fenced = async () => {
      const texts = await Promise.all(pods.map(async (pod) => (await request(`${pod.ingest}/metrics`)).text));
      return texts.some((text) => /fleet_webhook_attempts_total\{outcome="fenced"\} 1\b/.test(text));
    };
    await waitFor(fenced);
    assert.deepEqual(await api.deliveries(id), [cutOff]);
    assert.deepEqual(
      receiver.to('/fenced').map(({ headers }) => headers['x-service-delivery-attempt']),
      ['1', '2'],
    );
  });

  test('an attempt whose pod died counts and is made again, even where it used up the budget', async () => {
    await deleteAll();
    const rules = [{}, { max_retries: 1 }, { retry_policy: 'none' }] as const;
    const ids: number[] = [];
    for (const [n, others] of rules.entries()) {
      const { id } = await api.make(endpointBody(`${receiver.url}/died/${n}`, { ...others, active: false }));
      ids.push(id);
      const eventId = newEventId();
      const body = pingBody(eventId, id, Date.now());
      // What a pod leaves behind that was killed after it had counted the attempt.
      await sql`
        insert into webhook_delivery
          (id, webhook_id, account_id, event_id, event_type, body, attempts, spent, next_attempt_at, attempt_token)
        select 'dlv_' || md5(id::text), id, account_id, ${eventId}, 'ping', ${body}, 1, 1, null, ${DEAD_POD_TOKENS}
        from webhook where id = ${id}`;
      await sql`
        update webhook set fencing_token = ${DEAD_POD_TOKENS}, active = true,
          leased_until = clock_timestamp() + interval '300 milliseconds' where id = ${id}`;
    }
    for (const [n, id] of ids.entries()) {
      const [delivery] = await api.deliveriesWhen(id, 1, ({ status }) => status === 'delivered');
      assert.equal(delivery?.attempts, 2);
      const again = receiver.to(`/died/${n}`).map(({ headers }) => headers['x-service-delivery-attempt']);
      assert.deepEqual(again, ['2']);
    }
  });

  test('sessions of Postgres cut while requests are in flight: their results are kept, nothing stays in flight', async () => {
    await deleteAll();
    const answer = Promise.withResolvers<void>();
    receiver.behave([{ status: 200, after: answer.promise }], '/cut');
    const { id } = await api.make(endpointBody(`${receiver.url}/cut`, { retry_policy: 'none' }));
    await api.ping(id);
    await waitFor(() => receiver.to('/cut').length === 1);
    await sql`alter table webhook_delivery rename to away`;
    answer.resolve();
    // The result cannot be written now; its pod must not give the lease back as if it had been.
    await waitFor(
      async () => (await sql`select from webhook where leased_until < clock_timestamp()`).length > 0,
    );
    await sql`alter table away rename to webhook_delivery`;
    const [again] = await api.deliveriesWhen(id, 1, ({ status }) => status === 'delivered');
    assert.equal(again?.attempts, 2, 'nobody knows what became of the first attempt');
    const { id: second } = await api.make(endpointBody(`${receiver.url}/cut2`, { retry_policy: 'none' }));
    const late = Promise.withResolvers<void>();
    receiver.behave([{ status: 200, after: late.promise }], '/cut2');
    await api.ping(second);
    await waitFor(() => receiver.to('/cut2').length === 1);
    await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`;
    late.resolve();
    const isFinished = async () =>
      (await sql`select from webhook_delivery where webhook_id = ${second} and status = 'delivered'`)
        .length === 1;
    await waitFor(isFinished);
    assert.equal(receiver.to('/cut2').length, 1);
  });

  test('Redis emptied, and lost: deliveries go on', async () => {
    await deleteAll();
    const { id } = await api.make(endpointBody(`${receiver.url}/redis`));
    await source.emit(pods[0], 3);
    await redis.restart();
    await source.emit(pods[1], 3);
    await redis.stop();
    await source.emit(pods[0], 3);
    await api.deliveriesWhen(id, 9, ({ status }) => status === 'delivered');
    assert.equal(receiver.maxInFlight('/redis'), 1);
    assert.equal(receiver.to('/redis').length, 9);
  });
});
