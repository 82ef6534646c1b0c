import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Pod, request } from '../support/pod.ts';
import { skipWithoutRedis } from '../support/redis.ts';
import { waitFor } from '../support/waitFor.ts';
import { auditDeliveries, proveAudit } from '../support/webhooks/deliveryProof.ts';
import { webhookSetup } from '../support/webhooks/webhookSetup.ts';
import { EventSource, endpointBody, webhookApi } from '../support/webhooks/webhooks.ts';

const REPLAYS = 50;
/** What one request may take, from DNS to the last byte of the answer. */
const TIMEOUT_MS = 10_000;

/** Two pods that share Redis; what the second is asked meets what the first is doing. */
describe('while a request is in flight', {
  skip: skipWithoutRedis(),
  concurrency: 4,
}, () => {
  after(() => proveAudit(setup.sql));
  const setup = webhookSetup(60_000, 2);
  before(() => auditDeliveries(setup.sql));

  /** An endpoint whose first request is in flight until `answer`, with a status. */
  async function startFlight(name: string, status: number, others: object = {}) {
    const path = `/${name}`;
    const held = Promise.withResolvers<void>();
    setup.receiver.behave([{ status, after: held.promise }, 200], path);
    const { id } = await setup.api.make(endpointBody(setup.receiver.url + path, others));
    const ping = await setup.api.ping(id);
    await waitFor(() => setup.receiver.to(path).length === 1);
    return { id, path, deliveryId: ping.id, answer: held.resolve };
  }
  const numbersAt = (path: string) =>
    setup.receiver.to(path).map(({ headers }) => headers['x-service-delivery-attempt']);

  test('fifty replays at once, through both pods: one is taken, one attempt is made', async () => {
    const { id, path, deliveryId, answer } = await startFlight('replayed', 500, { retry_policy: 'none' });
    const early = await Promise.all([setup.api, setup.otherApi].map((api) => api.replay(deliveryId)));
    assert.deepEqual(
      early.map(({ status }) => status),
      [400, 400],
      'not while it is in flight',
    );
    answer();
    await setup.api.deliveriesWhen(id, 1, ({ status }) => status === 'exhausted');
    const replies = await Promise.all(
      Array.from({ length: REPLAYS }, (_, n) =>
        (n % 2 === 0 ? setup.api : setup.otherApi).replay(deliveryId),
      ),
    );
    const statuses = replies.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [202, ...Array.from({ length: REPLAYS - 1 }, () => 400)]);
    const [delivery] = await setup.otherApi.deliveriesWhen(id, 1, ({ status }) => status === 'delivered');
    assert.equal(delivery?.attempts, 2);
    assert.deepEqual(numbersAt(path), ['1', '2']);
    assert.equal(setup.receiver.maxInFlight(path), 1);
  });

  test('changed: it ends as it began, and the retry goes to the new url under the new rule', async () => {
    const { id, path, answer } = await startFlight('changed', 500);
    await setup.otherApi.change(id, {
      url: `${setup.receiver.url}/changed-to`,
      retry_policy: 'fixed',
      max_retries: 1,
    });
    setup.receiver.behave([200], '/changed-to');
    answer();
    const [delivery] = await setup.otherApi.deliveriesWhen(id, 1, ({ status }) => status !== 'pending');
    assert.deepEqual([delivery?.status, delivery?.attempts], ['failed', 1], 'by the rule it began under');
    await setup.sql`update webhook_delivery set next_attempt_at = clock_timestamp() where webhook_id = ${id}`;
    await setup.otherApi.change(id, {});
    await setup.api.deliveriesWhen(id, 1, ({ status }) => status === 'delivered');
    assert.deepEqual(numbersAt('/changed-to'), ['2']);
    assert.equal(setup.receiver.to(path).length, 1);
  });

  test('deleted: nothing of it stays, whatever its receiver answers later, and nothing more is sent', async () => {
    for (const status of [200, 500]) {
      const { id, path, answer } = await startFlight(`deleted-${status}`, status);
      await setup.api.ping(id);
      assert.equal((await setup.otherApi.call('DELETE', `/${id}`)).status, 204);
      answer();
      const { id: after } = await setup.api.make(endpointBody(`${setup.receiver.url}/after-${status}`));
      await setup.api.ping(after);
      await setup.api.deliveriesWhen(after, 1, (each) => each.status === 'delivered');
      assert.equal((await setup.sql`select from webhook_delivery where webhook_id = ${id}`).length, 0);
      assert.equal(setup.receiver.to(path).length, 1);
    }
  });

  test('a receiver that hangs is left after ten seconds; another endpoint of its owner does not wait', async () => {
    setup.receiver.behave(['hang'], '/slow');
    const { id } = await setup.api.make(endpointBody(`${setup.receiver.url}/slow`, { retry_policy: 'none' }));
    await setup.api.ping(id);
    await waitFor(() => setup.receiver.to('/slow').length === 1);
    const { id: other } = await setup.otherApi.make(endpointBody(`${setup.receiver.url}/beside`));
    await setup.otherApi.ping(other);
    await setup.otherApi.deliveriesWhen(other, 1, ({ status }) => status === 'delivered');
    const [open] = await setup.otherApi.deliveries(id);
    assert.equal(open?.status, 'pending', 'the slow one is still in flight');
    const [delivery] = await setup.otherApi.deliveriesWhen(id, 1, ({ status }) => status === 'exhausted');
    assert.equal(delivery?.last_error, 'timeout');
    const tookMs = delivery?.last_duration_ms ?? 0;
    assert.ok(tookMs >= TIMEOUT_MS - 50, `${tookMs} ms`);
  });

  test('a deactivated account: what waits is held on every pod, nothing new is queued; all goes on when it is active again', async () => {
    const owner = 'leaving@example.com';
    await setup.admin.account(owner);
    await setup.admin.device(owner, '350000000000009');
    const api = webhookApi(setup.pod.api, (await setup.admin.key(owner)).key);
    const source = new EventSource('350000000000009', Date.now() - 86_400_000);
    setup.receiver.behave([500, 200], '/leaving');
    const { id } = await api.make(endpointBody(`${setup.receiver.url}/leaving`));
    await source.emit(setup.otherPod);
    await api.deliveriesWhen(id, 1, ({ status }) => status === 'failed');
    await setup.admin.run('account:deactivate', '--email', owner);
    await setup.sql`update webhook_delivery set next_attempt_at = clock_timestamp() where webhook_id = ${id}`;
    for (const pod of [setup.pod, setup.otherPod]) await source.emit(pod);
    const stored = await setup.sql`select from webhook_delivery where webhook_id = ${id}`;
    assert.equal(stored.length, 1, 'as for an inactive endpoint, new events are not queued');
    await sweptByAll([setup.pod, setup.otherPod]);
    assert.equal(setup.receiver.to('/leaving').length, 1);
    await setup.admin.run('account:activate', '--email', owner);
    await source.emit(setup.pod);
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
