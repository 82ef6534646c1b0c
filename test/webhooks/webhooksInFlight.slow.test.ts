import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { type Pod, request, startPod } from '../support/pod.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis, startRedis, type TestRedis } from '../support/redis.ts';
import { waitFor } from '../support/waitFor.ts';
import { auditDeliveries, proveAudit } from '../support/webhooks/deliveryProof.ts';
import { type Receiver, startReceiver } from '../support/webhooks/receiver.ts';
import {
  EventSource,
  endpointBody,
  type WebhookApi,
  webhookApi,
  webhookEnv,
} from '../support/webhooks/webhooks.ts';

const OWNER = 'owner@example.com';
const REPLAYS = 50;
/** What one request may take, from DNS to the last byte of the answer. */
const TIMEOUT_MS = 10_000;

/** Two pods that share Redis; what the second is asked meets what the first is doing. */
describe('while a request is in flight', {
  skip: skipWithoutRedis(),
  concurrency: 4,
}, () => {
  let url: string;
  let sql: Sql;
  let redis: TestRedis;
  let admin: Admin;
  let pods: readonly [Pod, Pod];
  let apis: readonly [WebhookApi, WebhookApi];
  let receiver: Receiver & { close(): Promise<void> };

  before(async () => {
    ({ url } = await createDatabase());
    redis = await startRedis();
    admin = adminOf(url, redis.url);
    await admin.account(OWNER);
    const { key } = await admin.key(OWNER);
    const env = webhookEnv(60_000, { REDIS_URL: redis.url });
    pods = await Promise.all([startPod(url, { env }), startPod(url, { env })]);
    apis = [webhookApi(pods[0].api, key), webhookApi(pods[1].api, key)];
    receiver = await startReceiver();
    sql = openSql(url, { maxConnections: 4, name: 'test' });
    await auditDeliveries(sql);
  });
  after(async () => {
    await Promise.all(pods.map((pod) => pod.stop()));
    await receiver.close();
    await redis.stop();
    await proveAudit(sql).finally(() => sql.end());
  });

  /** An endpoint whose first request is in flight until `answer`, with a status. */
  async function startFlight(name: string, status: number, others: object = {}) {
    const path = `/${name}`;
    const held = Promise.withResolvers<void>();
    receiver.behave([{ status, after: held.promise }, 200], path);
    const { id } = await apis[0].make(endpointBody(receiver.url + path, others));
    const ping = await apis[0].ping(id);
    await waitFor(() => receiver.to(path).length === 1);
    return { id, path, deliveryId: ping.id, answer: held.resolve };
  }
  const numbersAt = (path: string) =>
    receiver.to(path).map(({ headers }) => headers['x-service-delivery-attempt']);

  test('fifty replays at once, through both pods: one is taken, one attempt is made', async () => {
    const { id, path, deliveryId, answer } = await startFlight('replayed', 500, { retry_policy: 'none' });
    const early = await Promise.all(apis.map((api) => api.replay(deliveryId)));
    assert.deepEqual(
      early.map(({ status }) => status),
      [400, 400],
      'not while it is in flight',
    );
    answer();
    await apis[0].deliveriesWhen(id, 1, ({ status }) => status === 'exhausted');
    const replies = await Promise.all(
      Array.from({ length: REPLAYS }, (_, n) => (apis[n % 2] as WebhookApi).replay(deliveryId)),
    );
    const statuses = replies.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [202, ...Array.from({ length: REPLAYS - 1 }, () => 400)]);
    const [delivery] = await apis[1].deliveriesWhen(id, 1, ({ status }) => status === 'delivered');
    assert.equal(delivery?.attempts, 2);
    assert.deepEqual(numbersAt(path), ['1', '2']);
    assert.equal(receiver.maxInFlight(path), 1);
  });

  test('changed: it ends as it began, and the retry goes to the new url under the new rule', async () => {
    const { id, path, answer } = await startFlight('changed', 500);
    await apis[1].change(id, { url: `${receiver.url}/changed-to`, retry_policy: 'fixed', max_retries: 1 });
    receiver.behave([200], '/changed-to');
    answer();
    const [delivery] = await apis[1].deliveriesWhen(id, 1, ({ status }) => status !== 'pending');
    assert.deepEqual([delivery?.status, delivery?.attempts], ['failed', 1], 'by the rule it began under');
    await sql`update webhook_delivery set next_attempt_at = clock_timestamp() where webhook_id = ${id}`;
    await apis[1].change(id, {});
    await apis[0].deliveriesWhen(id, 1, ({ status }) => status === 'delivered');
    assert.deepEqual(numbersAt('/changed-to'), ['2']);
    assert.equal(receiver.to(path).length, 1);
  });

  test('deleted: nothing of it stays, whatever its receiver answers later, and nothing more is sent', async () => {
    for (const status of [200, 500]) {
      const { id, path, answer } = await startFlight(`deleted-${status}`, status);
      await apis[0].ping(id);
      assert.equal((await apis[1].call('DELETE', `/${id}`)).status, 204);
      answer();
      const { id: after } = await apis[0].make(endpointBody(`${receiver.url}/after-${status}`));
      await apis[0].ping(after);
      await apis[0].deliveriesWhen(after, 1, (each) => each.status === 'delivered');
      assert.equal((await sql`select from webhook_delivery where webhook_id = ${id}`).length, 0);
      assert.equal(receiver.to(path).length, 1);
    }
  });

  test('a receiver that hangs is left after ten seconds; another endpoint of its owner does not wait', async () => {
    receiver.behave(['hang'], '/slow');
    const { id } = await apis[0].make(endpointBody(`${receiver.url}/slow`, { retry_policy: 'none' }));
    await apis[0].ping(id);
    await waitFor(() => receiver.to('/slow').length === 1);
    const { id: other } = await apis[1].make(endpointBody(`${receiver.url}/beside`));
    await apis[1].ping(other);
    await apis[1].deliveriesWhen(other, 1, ({ status }) => status === 'delivered');
    const [open] = await apis[1].deliveries(id);
    assert.equal(open?.status, 'pending', 'the slow one is still in flight');
    const [delivery] = await apis[1].deliveriesWhen(id, 1, ({ status }) => status === 'exhausted');
    assert.equal(delivery?.last_error, 'timeout');
    const tookMs = delivery?.last_duration_ms ?? 0;
    assert.ok(tookMs >= TIMEOUT_MS - 50, `${tookMs} ms`);
  });

  test('a deactivated account: what waits is held on every pod, nothing new is queued; all goes on when it is active again', async () => {
    const owner = 'leaving@example.com';
    await admin.account(owner);
    await admin.device(owner, '350000000000009');
    const api = webhookApi(pods[0].api, (await admin.key(owner)).key);
    const source = new EventSource('350000000000009', Date.now() - 86_400_000);
    receiver.behave([500, 200], '/leaving');
    const { id } = await api.make(endpointBody(`${receiver.url}/leaving`));
    await source.emit(pods[1]);
    await api.deliveriesWhen(id, 1, ({ status }) => status === 'failed');
    await admin.run('account:deactivate', '--email', owner);
    await sql`update webhook_delivery set next_attempt_at = clock_timestamp() where webhook_id = ${id}`;
    for (const pod of pods) await source.emit(pod);
    const stored = await sql`select from webhook_delivery where webhook_id = ${id}`;
    assert.equal(stored.length, 1, 'as for an inactive endpoint, new events are not queued');
    await sweptByAll(pods);
    assert.equal(receiver.to('/leaving').length, 1);
    await admin.run('account:activate', '--email', owner);
    await source.emit(pods[0]);
    await api.deliveriesWhen(id, 2, ({ status }) => status === 'delivered');
    assert.deepEqual(numbersAt('/leaving').toSorted(), ['1', '1', '2']);
  });
});

/** Every pod has rebuilt its schedule once more, from what Postgres holds by now. */
async function sweptByAll(pods: readonly Pod[]): Promise<void> {
  for (const pod of pods) {
    const sweeps = async () =>
      /^fleet_webhook_schedule_rebuild_seconds (\S+)/m.exec(
        (await request(`${pod.ingest}/metrics`)).text,
      )?.[1];
    const before = await sweeps();
    await waitFor(async () => (await sweeps()) !== before);
  }
}
