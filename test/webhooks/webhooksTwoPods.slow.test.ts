import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newEventId, pingBody } from '../../src/webhooks/message.ts';
import { request } from '../support/pod.ts';
import { skipWithoutRedis } from '../support/redis.ts';
import { waitFor } from '../support/waitFor.ts';
import { webhookSetup } from '../support/webhooks/webhookSetup.ts';
import { endpointBody } from '../support/webhooks/webhooks.ts';

const ENDPOINTS = 4;
const EVENTS = 15;
const DEAD_POD_TOKENS = 1_000;

/** Two pods that ingest and deliver, sharing Redis. */
describe('deliveries of two pods', { skip: skipWithoutRedis() }, () => {
  const setup = webhookSetup(1, 2);

  const deleteAll = async (): Promise<void> => {
    for (const { id } of (await setup.api.call('GET', '?limit=200')).body.data)
      await setup.api.call('DELETE', `/${id}`);
  };

  test('never two in flight to one endpoint, each event once and in its order; one that hangs holds up nobody', async () => {
    await deleteAll();
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

  test('a lease that was taken away: the late result changes nothing and is counted as fenced', async () => {
    await deleteAll();
    const answer = Promise.withResolvers<void>();
    setup.receiver.behave([{ status: 200, after: answer.promise }, 500, 500], '/fenced');
    const { id } = await setup.api.make(endpointBody(`${setup.receiver.url}/fenced`, { max_retries: 2 }));
    await setup.api.ping(id);
    await waitFor(() => setup.receiver.to('/fenced').length === 1);
    // As if the pod had slept past its lease.
    await setup.sql`update webhook set leased_until = clock_timestamp() - interval '1 second' where id = ${id}`;
    await setup.api.change(id, {});
    const [cutOff] = await setup.api.deliveriesWhen(id, 1, ({ status }) => status === 'exhausted');
    assert.deepEqual([cutOff?.attempts, cutOff?.last_error], [2, 'http_500']);
    answer.resolve();
    const fenced = async () => {
      const texts = await Promise.all(
        [setup.pod, setup.otherPod].map(async (pod) => (await request(`${pod.ingest}/metrics`)).text),
      );
      return texts.some((text) => /fleet_webhook_attempts_total\{outcome="fenced"\} 1\b/.test(text));
    };
    await waitFor(fenced);
    assert.deepEqual(await setup.api.deliveries(id), [cutOff]);
    assert.deepEqual(
      setup.receiver.to('/fenced').map(({ headers }) => headers['x-service-delivery-attempt']),
      ['1', '2'],
    );
  });

  test('an attempt whose pod died counts and is made again, even where it used up the budget', async () => {
    await deleteAll();
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
      const [delivery] = await setup.api.deliveriesWhen(id, 1, ({ status }) => status === 'delivered');
      assert.equal(delivery?.attempts, 2);
      const again = setup.receiver
        .to(`/died/${n}`)
        .map(({ headers }) => headers['x-service-delivery-attempt']);
      assert.deepEqual(again, ['2']);
    }
  });

  test('sessions of Postgres cut while requests are in flight: their results are kept, nothing stays in flight', async () => {
    await deleteAll();
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
    const [again] = await setup.api.deliveriesWhen(id, 1, ({ status }) => status === 'delivered');
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
    await deleteAll();
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
