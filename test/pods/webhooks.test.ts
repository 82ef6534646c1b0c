import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { openSql, type Sql } from '../../src/store/sql.ts';
import { type Admin, adminOf } from '../support/admin.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { type Received, type Receiver, startReceiver } from '../support/receiver.ts';
import { waitFor } from '../support/waitFor.ts';
import {
  EventSource,
  endpointBody,
  type MadeWebhook,
  type WebhookApi,
  webhookApi,
  webhookEnv,
} from '../support/webhooks.ts';

const OWNER = 'owner@example.com';
const MINUTE_MS = 2;
const POLICIES = ['none', 'fixed', 'exponential'] as const;
const BUDGETS = [0, 1, 5, 10] as const;

interface Scene {
  readonly url: string;
  readonly pod: Pod;
  readonly sql: Sql;
  readonly admin: Admin;
  readonly api: WebhookApi;
  readonly receiver: Receiver;
  readonly source: EventSource;
  end(): Promise<void>;
}

async function startScene(minuteMs: number): Promise<Scene> {
  const { url } = await createDatabase();
  const admin = adminOf(url);
  await admin.account(OWNER);
  await admin.device(OWNER, '350000000000001', '--name', 'Van', '--plate', 'B-X 1');
  const pod = await startPod(url, { env: webhookEnv(minuteMs) });
  const receiver = await startReceiver();
  const sql = openSql(url, { maxConnections: 2, name: 'test' });
  return {
    url,
    pod,
    sql,
    admin,
    api: webhookApi(pod.api, (await admin.key(OWNER)).key),
    receiver,
    source: new EventSource('350000000000001', Date.now() - 86_400_000),
    end: async () => {
      await pod.stop();
      await receiver.close();
      await sql.end();
    },
  };
}

/** Minutes between the attempts of one budget, as the API document lists them. */
function gapsOf(policy: string, budget: number): number[] {
  if (policy === 'none' || budget <= 1) return [];
  return Array.from({ length: budget - 1 }, (_, n) => (policy === 'fixed' ? 5 : 2 ** (n + 1)));
}

function proveGaps(attempts: readonly Received[], gaps: readonly number[], name: string): void {
  assert.equal(attempts.length, gaps.length + 1, name);
  for (const [n, gap] of gaps.entries()) {
    const [before, next] = [attempts[n], attempts[n + 1]];
    assert.ok(before && next && next.atMs - before.atMs >= gap * MINUTE_MS, `${name}: gap ${n}`);
  }
}

/** All requests of one delivery say the same under rising numbers, and are signed. */
function proveAttempts(attempts: readonly Received[], { id, secret }: MadeWebhook, deliveryId: string): void {
  const [first] = attempts;
  assert.ok(first);
  const { id: eventId } = JSON.parse(first.body);
  for (const [n, { headers, body }] of attempts.entries()) {
    assert.equal(body, first.body);
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(headers['x-service-delivery-attempt'], String(n + 1));
    assert.equal(headers['x-service-delivery-id'], deliveryId);
    assert.equal(headers['idempotency-key'], `${id}:${eventId}`);
    assert.equal(headers['x-service-signature-version'], 'v1');
    const hex = createHmac('sha256', secret).update(body).digest('hex');
    assert.equal(headers['x-service-signature'], `sha256=${hex}`);
    const sentAtMs = Number(headers['x-service-timestamp']);
    assert.ok(Math.abs(Date.now() - sentAtMs) < 60_000);
    assert.equal(headers['webhook-id'], eventId);
    assert.equal(headers['webhook-timestamp'], String(Math.floor(sentAtMs / 1000)));
    new Webhook(secret).verify(body, { ...headers });
  }
}

describe('retries with short minutes against a receiver', { timeout: 60_000 }, () => {
  let scene: Scene;
  before(async () => {
    scene = await startScene(MINUTE_MS);
  });
  after(() => scene.end());

  test('every policy and budget: attempts, gaps, numbers, bytes, the end in the dead letter, and a replay', async () => {
    const { api, receiver, source, pod } = scene;
    const cases = POLICIES.flatMap((policy) =>
      BUDGETS.map((budget) => ({ policy, budget, path: `/${policy}/${budget}` })),
    );
    receiver.behave([500]);
    const made: MadeWebhook[] = [];
    for (const { policy, budget, path } of cases) {
      made.push(
        await api.make(endpointBody(receiver.url + path, { retry_policy: policy, max_retries: budget })),
      );
    }
    await source.emit(pod);
    const ids: string[] = [];
    for (const [n, { policy, budget, path }] of cases.entries()) {
      const endpoint = made[n] as MadeWebhook;
      const [delivery] = await api.settled(endpoint.id, 1, ({ status }) => status === 'exhausted');
      assert.ok(delivery);
      ids.push(delivery.id);
      const attempts = receiver.to(path);
      proveGaps(attempts, gapsOf(policy, budget), path);
      proveAttempts(attempts, endpoint, delivery.id);
      const { attempts: count, next_attempt_at, last_status_code, last_error, delivered_at } = delivery;
      assert.deepEqual(
        [count, next_attempt_at, last_status_code, last_error, delivered_at],
        [attempts.length, null, 500, 'http_500', null],
      );
    }
    const { body: dead } = await api.call('GET', '/dead-letter/list');
    assert.deepEqual(dead.data.map((each: { id: string }) => each.id).sort(), ids.toSorted());

    // A replay begins a budget of its own; its last attempt is answered.
    for (const { policy, budget, path } of cases) {
      const spent = receiver.to(path).length;
      const last = spent + gapsOf(policy, budget).length;
      receiver.behave((_, n) => (n < last ? 503 : 204), path);
    }
    for (const id of ids) assert.equal((await api.replay(id)).status, 202);
    for (const [n, { policy, budget, path }] of cases.entries()) {
      const endpoint = made[n] as MadeWebhook;
      const [delivery] = await api.settled(endpoint.id, 1, ({ status }) => status === 'delivered');
      const attempts = receiver.to(path);
      const gaps = gapsOf(policy, budget);
      proveGaps(attempts.slice(gaps.length + 1), gaps, `${path} replayed`);
      proveAttempts(attempts, endpoint, ids[n] ?? '');
      assert.equal(delivery?.attempts, attempts.length);
      assert.deepEqual(
        [delivery?.last_status_code, delivery?.last_error, delivery?.next_attempt_at],
        [204, null, null],
      );
      assert.ok(delivery?.delivered_at);
      assert.equal((await api.replay(ids[n] ?? '')).status, 400);
    }
  });

  test('only 2xx delivers: other answers, redirects, resets are failed attempts; an endless answer counts', async () => {
    const { api, receiver } = scene;
    for (const [behaviour, status, code, error] of [
      [200, 'delivered', 200, null],
      [204, 'delivered', 204, null],
      [299, 'delivered', 299, null],
      [302, 'exhausted', 302, 'http_302'],
      [400, 'exhausted', 400, 'http_400'],
      [410, 'exhausted', 410, 'http_410'],
      ['reset', 'exhausted', null, 'connection_reset'],
      ['endless', 'delivered', 200, null],
    ] as const) {
      const path = `/answer/${behaviour}`;
      receiver.behave([behaviour], path);
      const { id } = await api.make(endpointBody(receiver.url + path, { retry_policy: 'none' }));
      await api.ping(id);
      const [delivery] = await api.settled(id, 1, (each) => each.status === status);
      assert.deepEqual(
        [delivery?.last_status_code, delivery?.last_error, delivery?.attempts],
        [code, error, 1],
        path,
      );
      assert.equal(receiver.to(path).length, 1);
    }
    assert.equal(receiver.to('/elsewhere').length, 0, 'no redirect is followed');
  });

  test('a fleet event says what it was', async () => {
    const { api, receiver, source, pod, admin } = scene;
    await api.make(endpointBody(`${receiver.url}/body`));
    const [point] = await source.emit(pod);
    await waitFor(() => receiver.to('/body').length === 1);
    const { body: events } = await pod.get('/api/v3/events?limit=1', (await admin.key(OWNER)).key);
    const [event] = events.data;
    const { id, created_at, ...body } = JSON.parse(receiver.to('/body')[0]?.body ?? '');
    assert.match(id, /^evt_[0-9a-f]+$/);
    assert.match(created_at, /Z$/);
    assert.deepEqual(body, {
      type: 'rfid',
      data: {
        ...event.data,
        fleet_event_id: event.id,
        device: { imei: source.imei, name: 'Van', plate: 'B-X 1' },
        occurred_at: new Date(point?.recorded_at ?? 0).toISOString(),
      },
    });
  });

  test('an address that is refused at delivery: failed as url_unsafe, without a packet or a retry; a replay may succeed', async () => {
    const { api, receiver, url, pod } = scene;
    const path = '/unsafe';
    receiver.behave([200], path);
    const { id } = await api.make(endpointBody(receiver.url + path, { active: true }));
    // The only pod that delivers knows of no exempt networks.
    await pod.stop();
    const strict = await startPod(url, { env: { ...webhookEnv(MINUTE_MS), WEBHOOK_ALLOW_NETS: '' } });
    const strictApi = webhookApi(strict.api, (await scene.admin.key(OWNER)).key);
    await strictApi.ping(id);
    const [delivery] = await strictApi.settled(id, 1, ({ status }) => status === 'failed');
    assert.deepEqual(
      [delivery?.attempts, delivery?.next_attempt_at, delivery?.last_error, delivery?.last_status_code],
      [1, null, 'url_unsafe', null],
    );
    assert.equal((await strictApi.call('POST', `/deliveries/${delivery?.id}/replay`)).status, 202);
    const [again] = await strictApi.settled(
      id,
      1,
      ({ status, attempts }) => status === 'failed' && attempts === 2,
    );
    assert.equal(again?.last_error, 'url_unsafe');
    await strict.stop();
    assert.equal(receiver.to(path).length, 0);
    const lenient = await startPod(url, { env: webhookEnv(MINUTE_MS) });
    const lenientApi = webhookApi(lenient.api, (await scene.admin.key(OWNER)).key);
    assert.equal((await lenientApi.replay(delivery?.id ?? '')).status, 202);
    await lenientApi.settled(id, 1, ({ status }) => status === 'delivered');
    assert.equal(receiver.to(path)[0]?.headers['x-service-delivery-attempt'], '3');
    await lenient.stop();
  });
});

describe('states between attempts with real minutes', { timeout: 60_000 }, () => {
  let scene: Scene;
  before(async () => {
    scene = await startScene(60_000);
  });
  after(() => scene.end());

  /** As if the wait were over. */
  const skipWait = async (id: number): Promise<void> => {
    await scene.sql`update webhook_delivery set next_attempt_at = clock_timestamp() where webhook_id = ${id} and next_attempt_at is not null`;
    await scene.api.change(id, {}); // wakes the lane
  };

  for (const policy of ['fixed', 'exponential'] as const) {
    test(`${policy}: failed until the budget is used up, each time due after the documented minutes`, async () => {
      const { api, receiver } = scene;
      const path = `/${policy}`;
      receiver.behave([500], path);
      const { id } = await api.make(endpointBody(receiver.url + path, { retry_policy: policy }));
      await api.ping(id);
      for (const [n, gap] of gapsOf(policy, 5).entries()) {
        const [delivery] = await api.settled(
          id,
          1,
          ({ status, attempts, next_attempt_at }) =>
            status === 'failed' && attempts === n + 1 && next_attempt_at !== null,
        );
        const answeredAtMs = performance.timeOrigin + (receiver.to(path)[n]?.answeredAtMs ?? 0);
        const dueAtMs = Date.parse(delivery?.next_attempt_at ?? '') - gap * 60_000;
        assert.ok(dueAtMs >= answeredAtMs - 5 && dueAtMs <= Date.now(), `attempt ${n + 1}`);
        await skipWait(id);
      }
      await api.settled(id, 1, ({ status, attempts }) => status === 'exhausted' && attempts === 5);
    });
  }

  test('a waiting retry holds up no later delivery, nor a replay; a delivery already failed can be replayed', async () => {
    const { api, receiver } = scene;
    receiver.behave([500, 200, 500, 200], '/later');
    const { id } = await api.make(endpointBody(`${receiver.url}/later`));
    const first = await api.ping(id);
    await api.settled(id, 1, ({ status }) => status === 'failed');
    const second = await api.ping(id);
    const both = await api.settled(
      id,
      2,
      ({ status, id: deliveryId }) => status === (deliveryId === second.id ? 'delivered' : 'failed'),
    );
    assert.equal(both.length, 2);
    assert.equal((await api.replay(first.id)).status, 202);
    await api.settled(
      id,
      2,
      ({ attempts, status, next_attempt_at, id: deliveryId }) =>
        deliveryId === second.id || (status === 'failed' && attempts === 2 && next_attempt_at !== null),
    );
    await skipWait(id);
    await api.settled(id, 2, ({ status }) => status === 'delivered');
  });

  test('inactive: waiting deliveries are held, a replay too, new events are not queued, a ping is sent; active: all goes on', async () => {
    const { api, receiver, source, pod } = scene;
    receiver.behave([500, 500, 200], '/paused');
    const { id } = await api.make(endpointBody(`${receiver.url}/paused`));
    await source.emit(pod);
    const [held] = await api.settled(id, 1, ({ status }) => status === 'failed');
    await api.change(id, { active: false });
    await scene.sql`update webhook_delivery set next_attempt_at = clock_timestamp() where webhook_id = ${id}`;
    const reply = await api.replay(held?.id ?? '');
    assert.equal(reply.body.data.status, 'requeued');
    await source.emit(pod);
    const ping = await api.ping(id);
    // The lane was looked at: the ping went out, which was queued after what is held.
    await api.settled(
      id,
      2,
      ({ id: deliveryId, status }) => status === (deliveryId === ping.id ? 'failed' : 'requeued'),
    );
    assert.deepEqual(
      receiver.to('/paused').map(({ headers }) => headers['x-service-delivery-id']),
      [held?.id, ping.id],
    );
    await api.change(id, { active: true });
    await api.settled(
      id,
      2,
      ({ id: deliveryId, status }) => deliveryId === ping.id || status === 'delivered',
    );
  });

  test('what waits goes to the new url of its endpoint, by the new policy, and nowhere once it is deleted', async () => {
    const { api, receiver, sql } = scene;
    receiver.behave([500], '/old');
    receiver.behave([500], '/new');
    const { id } = await api.make(endpointBody(`${receiver.url}/old`));
    await api.ping(id);
    await api.settled(id, 1, ({ status }) => status === 'failed');
    await api.change(id, { url: `${receiver.url}/new`, retry_policy: 'fixed', max_retries: 2 });
    await skipWait(id);
    await api.settled(id, 1, ({ status, attempts }) => status === 'exhausted' && attempts === 2);
    assert.deepEqual([receiver.to('/old').length, receiver.to('/new').length], [1, 1]);
    await api.ping(id);
    await api.settled(id, 2, ({ status }) => status !== 'pending');
    assert.equal((await api.call('DELETE', `/${id}`)).status, 204);
    assert.equal((await sql`select from webhook_delivery where webhook_id = ${id}`).length, 0);
  });

  test('rotation while an attempt is in flight: that one has its signature, the next is signed by both', async () => {
    const { api, receiver, sql } = scene;
    const answer = Promise.withResolvers<void>();
    receiver.behave([{ status: 500, after: answer.promise }, 500, 500, 200], '/rotated');
    const { id, secret: old } = await api.make(endpointBody(`${receiver.url}/rotated`));
    const ping = await api.ping(id);
    const nth = async (n: number): Promise<Received> => {
      await waitFor(() => receiver.to('/rotated').length > n);
      return receiver.to('/rotated')[n] as Received;
    };
    const first = await nth(0);
    const { secret: fresh } = (await api.call('POST', `/${id}/rotate-secret`)).body.data;
    // Nothing but its end is written about an attempt in flight, and it cannot be replayed.
    assert.equal((await api.replay(ping.id)).status, 400);
    answer.resolve();
    new Webhook(old).verify(first.body, first.headers);
    const retry = async (n: number) => {
      await api.settled(
        id,
        1,
        ({ status, attempts, next_attempt_at }) =>
          status === 'failed' && attempts === n && next_attempt_at !== null,
      );
      await skipWait(id);
      return nth(n);
    };
    const second = await retry(1);
    assert.equal(second.headers['webhook-signature']?.split(' ').length, 2);
    for (const each of [old, fresh]) new Webhook(each).verify(second.body, second.headers);
    const hex = createHmac('sha256', fresh).update(second.body).digest('hex');
    assert.equal(second.headers['x-service-signature'], `sha256=${hex}`);
    await sql`update webhook set previous_secret_until = previous_secret_until - interval '23:59:00' where id = ${id}`;
    const third = await retry(2);
    for (const each of [old, fresh]) new Webhook(each).verify(third.body, third.headers);
    await sql`update webhook set previous_secret_until = previous_secret_until - interval '1 minute' where id = ${id}`;
    const fourth = await retry(3);
    assert.throws(() => new Webhook(old).verify(fourth.body, fourth.headers));
    new Webhook(fresh).verify(fourth.body, fourth.headers);
  });
});
