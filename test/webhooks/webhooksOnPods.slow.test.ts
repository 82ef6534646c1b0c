import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { startPod } from '../support/pod.ts';
import type { Received } from '../support/webhooks/receiver.ts';
import { gapsOf, WEBHOOK_OWNER, webhookSetup } from '../support/webhooks/webhookSetup.ts';
import { endpointBody, type MadeWebhook, webhookApi, webhookEnv } from '../support/webhooks/webhooks.ts';

const MINUTE_MS = 1;
const POLICIES = ['none', 'fixed', 'exponential'] as const;
const BUDGETS = [0, 1, 5, 10] as const;

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

describe('retries with short minutes against a receiver', () => {
  const setup = webhookSetup(MINUTE_MS);

  test('every policy and budget: attempts, gaps, numbers, bytes, the end in the dead letter, and a replay', async () => {
    const { api, receiver, source, pod } = setup;
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
      const [delivery] = await api.deliveriesWhen(endpoint.id, 1, ({ status }) => status === 'exhausted');
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
      const [delivery] = await api.deliveriesWhen(endpoint.id, 1, ({ status }) => status === 'delivered');
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

  test('the deliveries of an endpoint come over one connection, and over another one after each change of it', async () => {
    const { api, receiver } = setup;
    const deliver = async (id: number, path: string, count: number) => {
      const before = receiver.to(path).length;
      for (let n = 0; n < count; n++) await api.ping(id);
      await api.deliveriesWhen(id, before + count, ({ status }) => status === 'delivered');
      return [
        ...new Set(
          receiver
            .to(path)
            .slice(before)
            .map(({ connection }) => connection),
        ),
      ];
    };
    receiver.behave([200], '/kept');
    receiver.behave([200], '/other');
    const { id } = await api.make(endpointBody(`${receiver.url}/kept`));
    const other = await api.make(endpointBody(`${receiver.url}/other`));
    const [first, ...more] = await deliver(id, '/kept', 10);
    assert.deepEqual(more, []);
    const foreign = await deliver(other.id, '/other', 2);
    assert.deepEqual(await deliver(id, '/kept', 2), [first]);
    await api.change(id, { description: 'changed' });
    const changed = await deliver(id, '/kept', 2);
    assert.equal((await api.call('POST', `/${id}/rotate-secret`)).status, 200);
    const rotated = await deliver(id, '/kept', 2);
    assert.equal(new Set([first, ...foreign, ...changed, ...rotated]).size, 4, 'each has one of its own');
  });

  test('an address that is refused at delivery: failed as url_unsafe, without a packet or a retry; a replay may succeed', async () => {
    const { api, receiver, url, pod } = setup;
    const path = '/unsafe';
    receiver.behave([200], path);
    const { id } = await api.make(endpointBody(receiver.url + path, { active: true }));
    // The only pod that delivers knows of no exempt networks.
    await pod.stop();
    const strict = await startPod(url, { env: { ...webhookEnv(MINUTE_MS), WEBHOOK_ALLOW_NETS: '' } });
    const strictApi = webhookApi(strict.api, (await setup.admin.key(WEBHOOK_OWNER)).key);
    await strictApi.ping(id);
    const [delivery] = await strictApi.deliveriesWhen(id, 1, ({ status }) => status === 'failed');
    assert.deepEqual(
      [delivery?.attempts, delivery?.next_attempt_at, delivery?.last_error, delivery?.last_status_code],
      [1, null, 'url_unsafe', null],
    );
    assert.equal((await strictApi.call('POST', `/deliveries/${delivery?.id}/replay`)).status, 202);
    const [again] = await strictApi.deliveriesWhen(
      id,
      1,
      ({ status, attempts }) => status === 'failed' && attempts === 2,
    );
    assert.equal(again?.last_error, 'url_unsafe');
    await strict.stop();
    assert.equal(receiver.to(path).length, 0);
    const lenient = await startPod(url, { env: webhookEnv(MINUTE_MS) });
    const lenientApi = webhookApi(lenient.api, (await setup.admin.key(WEBHOOK_OWNER)).key);
    assert.equal((await lenientApi.replay(delivery?.id ?? '')).status, 202);
    await lenientApi.deliveriesWhen(id, 1, ({ status }) => status === 'delivered');
    assert.equal(receiver.to(path)[0]?.headers['x-service-delivery-attempt'], '3');
    await lenient.stop();
  });
});
