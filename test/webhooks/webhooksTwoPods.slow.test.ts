import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { newEventId, pingBody } from '../../src/webhooks/delivery.ts';
import { type Pod, request } from '../support/pod.ts';
import { skipWithoutRedis } from '../support/redis.ts';
import { waitFor } from '../support/waitFor.ts';
import { auditDeliveries, proveAudit } from '../support/webhooks/deliveryProof.ts';
import { deleteAll, skipWait, webhookSetup } from '../support/webhooks/webhookSetup.ts';
import { EventSource, endpointBody, type WireDelivery, webhookApi } from '../support/webhooks/webhooks.ts';

const REPLAYS = 50;
/** What one request may take, from DNS to the last byte of the answer. */
const TIMEOUT_MS = 10_000;
const ENDPOINTS = 4;
const EVENTS = 15;
const DEAD_POD_TOKENS = 1_000;

/** Two pods that ingest and deliver, sharing Redis; what one is asked meets what the other is doing. */
describe('deliveries of two pods', { skip: skipWithoutRedis() }, () => {
  const setup = webhookSetup(60_000, 2);

  describe('while a request is in flight', { concurrency: 4 }, () => {
    before(() => auditDeliveries(setup.sql));
    after(() => proveAudit(setup.sql));

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
      const { id } = await setup.api.make(
        endpointBody(`${setup.receiver.url}/slow`, { retry_policy: 'none' }),
      );
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

  /** The delivery of an endpoint once it is delivered; nobody waits for the minutes between its attempts. */
  const deliveredSoon = async (id: number) => {
    let found: WireDelivery[] = [];
    await waitFor(async () => {
      await skipWait(setup, id);
      found = await setup.api.deliveries(id);
      return found.every(({ status }) => status === 'delivered');
    });
    return found;
  };

  test('a lease that was taken away: the late result changes nothing and is counted as fenced', async () => {
    await deleteAll(setup);
    const fenced = async () => {
      const counts = [setup.pod, setup.otherPod].map(async (pod) => {
        const { text } = await request(`${pod.ingest}/metrics`);
        return Number(/fleet_webhook_attempts_total\{outcome="fenced"\} (\d+)/.exec(text)?.[1] ?? 0);
      });
      return (await Promise.all(counts)).reduce((sum, count) => sum + count);
    };
    const fencedBefore = await fenced();
    const answer = Promise.withResolvers<void>();
    setup.receiver.behave([{ status: 200, after: answer.promise }, 500, 500], '/fenced');
    const { id } = await setup.api.make(endpointBody(`${setup.receiver.url}/fenced`, { max_retries: 2 }));
    await setup.api.ping(id);
    await waitFor(() => setup.receiver.to('/fenced').length === 1);
    // As if the pod had slept past its lease.
    await setup.sql`update webhook set leased_until = clock_timestamp() - interval '1 second' where id = ${id}`;
    await setup.api.change(id, {});
    await setup.api.deliveriesWhen(id, 1, ({ status }) => status === 'failed');
    await skipWait(setup, id);
    const [cutOff] = await setup.api.deliveriesWhen(id, 1, ({ status }) => status === 'exhausted');
    assert.deepEqual([cutOff?.attempts, cutOff?.last_error], [2, 'http_500']);
    answer.resolve();
    await waitFor(async () => (await fenced()) > fencedBefore);
    assert.deepEqual(await setup.api.deliveries(id), [cutOff]);
    assert.deepEqual(
      setup.receiver.to('/fenced').map(({ headers }) => headers['x-service-delivery-attempt']),
      ['1', '2'],
    );
  });

  test('never two in flight to one endpoint, each event once and in its order; one that hangs holds up nobody', async () => {
    await deleteAll(setup);
    setup.receiver.behave(['hang'], '/hanging');
    await setup.api.make(endpointBody(`${setup.receiver.url}/hanging`));
    // Slow enough that other pods come by while a request is in flight.
    const slow = () => ({ status: 200, after: new Promise((resolve) => setTimeout(resolve, 5)) });
    const ids: number[] = [];
    for (let n = 0; n < ENDPOINTS; n++) {
      setup.receiver.behave(slow, `/endpoint/${n}`);
      ids.push((await setup.api.make(endpointBody(`${setup.receiver.url}/endpoint/${n}`))).id);
    }
    for (let n = 0; n < EVENTS; n++) await setup.source.emit(n % 2 === 0 ? setup.pod : setup.otherPod);
    for (const [n, id] of ids.entries()) {
      await setup.api.deliveriesWhen(id, EVENTS, ({ status }) => status === 'delivered');
      assert.equal(setup.receiver.maxInFlight(`/endpoint/${n}`), 1);
      const eventIds = setup.receiver
        .to(`/endpoint/${n}`)
        .map(({ body }) => JSON.parse(body).data.fleet_event_id);
      assert.deepEqual(
        eventIds,
        [...new Set(eventIds)].sort((a, b) => a - b),
      );
      assert.equal(eventIds.length, EVENTS);
    }
    assert.equal(setup.receiver.maxInFlight('/hanging'), 1);
  });

  test('an attempt whose pod died counts and is made again, even where it used up the budget', async () => {
    await deleteAll(setup);
    const rules = [{}, { max_retries: 1 }, { retry_policy: 'none' }] as const;
    const ids: number[] = [];
    for (const [n, others] of rules.entries()) {
      const { id } = await setup.api.make(
        endpointBody(`${setup.receiver.url}/died/${n}`, { ...others, active: false }),
      );
      ids.push(id);
      const eventId = newEventId();
      const body = pingBody(eventId, id, Date.now());
      // What a pod leaves behind that was killed after it had counted the attempt.
      await setup.sql`
        insert into webhook_delivery
          (id, webhook_id, account_id, event_id, event_type, body, attempts, spent, next_attempt_at, attempt_token)
        select 'dlv_' || md5(id::text), id, account_id, ${eventId}, 'ping', ${body}, 1, 1, null, ${DEAD_POD_TOKENS}
        from webhook where id = ${id}`;
      await setup.sql`
        update webhook set fencing_token = ${DEAD_POD_TOKENS}, active = true,
          leased_until = clock_timestamp() + interval '300 milliseconds' where id = ${id}`;
    }
    for (const [n, id] of ids.entries()) {
      const [delivery] = await deliveredSoon(id);
      assert.equal(delivery?.attempts, 2);
      const again = setup.receiver
        .to(`/died/${n}`)
        .map(({ headers }) => headers['x-service-delivery-attempt']);
      assert.deepEqual(again, ['2']);
    }
  });

  test('sessions of Postgres cut while requests are in flight: their results are kept, nothing stays in flight', async () => {
    await deleteAll(setup);
    const answer = Promise.withResolvers<void>();
    setup.receiver.behave([{ status: 200, after: answer.promise }], '/cut');
    const { id } = await setup.api.make(endpointBody(`${setup.receiver.url}/cut`, { retry_policy: 'none' }));
    await setup.api.ping(id);
    await waitFor(() => setup.receiver.to('/cut').length === 1);
    await setup.sql`alter table webhook_delivery rename to away`;
    answer.resolve();
    // The result cannot be written now; its pod must not give the lease back as if it had been.
    await waitFor(
      async () => (await setup.sql`select from webhook where leased_until < clock_timestamp()`).length > 0,
    );
    await setup.sql`alter table away rename to webhook_delivery`;
    const [again] = await deliveredSoon(id);
    assert.equal(again?.attempts, 2, 'nobody knows what became of the first attempt');
    const { id: second } = await setup.api.make(
      endpointBody(`${setup.receiver.url}/cut2`, { retry_policy: 'none' }),
    );
    const late = Promise.withResolvers<void>();
    setup.receiver.behave([{ status: 200, after: late.promise }], '/cut2');
    await setup.api.ping(second);
    await waitFor(() => setup.receiver.to('/cut2').length === 1);
    await setup.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`;
    late.resolve();
    const isFinished = async () =>
      (await setup.sql`select from webhook_delivery where webhook_id = ${second} and status = 'delivered'`)
        .length === 1;
    await waitFor(isFinished);
    assert.equal(setup.receiver.to('/cut2').length, 1);
  });

  test('Redis emptied, and lost: deliveries go on', async () => {
    await deleteAll(setup);
    const { id } = await setup.api.make(endpointBody(`${setup.receiver.url}/redis`));
    await setup.source.emit(setup.pod, 3);
    await setup.redis?.restart();
    await setup.source.emit(setup.otherPod, 3);
    await setup.redis?.stop();
    await setup.source.emit(setup.pod, 3);
    await setup.api.deliveriesWhen(id, 9, ({ status }) => status === 'delivered');
    assert.equal(setup.receiver.maxInFlight('/redis'), 1);
    assert.equal(setup.receiver.to('/redis').length, 9);
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
