import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { waitFor } from '../support/waitFor.ts';
import type { Received } from '../support/webhooks/receiver.ts';
import { deleteAll, gapsOf, skipWait, webhookSetup } from '../support/webhooks/webhookSetup.ts';
import { EventSource, endpointBody, webhookApi } from '../support/webhooks/webhooks.ts';

/** A pod counts what waits when it has made so many deliveries of an endpoint. */
const STEP = 1_000;
const LATER = 50;

describe('states between attempts with real minutes', () => {
  const setup = webhookSetup(60_000);

  test('failed until the budget is used up, each time due after the documented minutes', async () => {
    const { api, receiver } = setup;
    const path = '/exponential';
    receiver.behave([500], path);
    const { id } = await api.make(endpointBody(receiver.url + path));
    await api.ping(id);
    for (const [n, gap] of gapsOf('exponential', 5).entries()) {
      const [delivery] = await api.deliveriesWhen(
        id,
        1,
        ({ status, attempts, next_attempt_at }) =>
          status === 'failed' && attempts === n + 1 && next_attempt_at !== null,
      );
      const answeredAtMs = performance.timeOrigin + (receiver.to(path)[n]?.answeredAtMs ?? 0);
      const dueAtMs = Date.parse(delivery?.next_attempt_at ?? '') - gap * 60_000;
      assert.ok(dueAtMs >= answeredAtMs - 5 && dueAtMs <= Date.now(), `attempt ${n + 1}`);
      await skipWait(setup, id);
    }
    await api.deliveriesWhen(id, 1, ({ status, attempts }) => status === 'exhausted' && attempts === 5);
  });

  test('a waiting retry holds up no later delivery, nor a replay; a delivery already failed can be replayed', async () => {
    const { api, receiver } = setup;
    receiver.behave([500, 200, 500, 200], '/later');
    const { id } = await api.make(endpointBody(`${receiver.url}/later`));
    const first = await api.ping(id);
    await api.deliveriesWhen(id, 1, ({ status }) => status === 'failed');
    const second = await api.ping(id);
    const both = await api.deliveriesWhen(
      id,
      2,
      ({ status, id: deliveryId }) => status === (deliveryId === second.id ? 'delivered' : 'failed'),
    );
    assert.equal(both.length, 2);
    assert.equal((await api.replay(first.id)).status, 202);
    await api.deliveriesWhen(
      id,
      2,
      ({ attempts, status, next_attempt_at, id: deliveryId }) =>
        deliveryId === second.id || (status === 'failed' && attempts === 2 && next_attempt_at !== null),
    );
    await skipWait(setup, id);
    await api.deliveriesWhen(id, 2, ({ status }) => status === 'delivered');
  });

  test('inactive: waiting deliveries are held, a replay too, new events are not queued, a ping is sent; active: all goes on', async () => {
    const { api, receiver, source, pod } = setup;
    receiver.behave([500, 500, 200], '/paused');
    const { id } = await api.make(endpointBody(`${receiver.url}/paused`));
    await source.emit(pod);
    const [held] = await api.deliveriesWhen(id, 1, ({ status }) => status === 'failed');
    await api.change(id, { active: false });
    await setup.sql`update webhook_delivery set next_attempt_at = clock_timestamp() where webhook_id = ${id}`;
    const reply = await api.replay(held?.id ?? '');
    assert.equal(reply.body.data.status, 'requeued');
    await source.emit(pod);
    const ping = await api.ping(id);
    // The endpoint was looked at: the ping went out, which was queued after what is held.
    await api.deliveriesWhen(
      id,
      2,
      ({ id: deliveryId, status }) => status === (deliveryId === ping.id ? 'failed' : 'requeued'),
    );
    assert.deepEqual(
      receiver.to('/paused').map(({ headers }) => headers['x-service-delivery-id']),
      [held?.id, ping.id],
    );
    await api.change(id, { active: true });
    await api.deliveriesWhen(
      id,
      2,
      ({ id: deliveryId, status }) => deliveryId === ping.id || status === 'delivered',
    );
  });

  test('rotation while an attempt is in flight: that one has its signature, the next is signed by both', async () => {
    const { api, receiver, sql } = setup;
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
      await api.deliveriesWhen(
        id,
        1,
        ({ status, attempts, next_attempt_at }) =>
          status === 'failed' && attempts === n && next_attempt_at !== null,
      );
      await skipWait(setup, id);
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

  test('an endpoint whose deliveries pile up is paused; others get everything, and once resumed it gets what it lacks, once', async () => {
    const { admin, api, pod, receiver, source, sql } = setup;
    await deleteAll(setup);
    await sql`update fleet_event set recorded_at = recorded_at - interval '1 hour'`;
    await sql`update plan set max_waiting_per_webhook = ${STEP - 1}`;
    await admin.account('stranger@example.com');
    await admin.device('stranger@example.com', '350000000000002');
    const stranger = webhookApi(pod.api, (await admin.key('stranger@example.com')).key);
    const flooded = await api.make(endpointBody(`${receiver.url}/flooded`));
    // Somebody has its lease, so nothing is sent.
    await sql`update webhook set leased_until = clock_timestamp() + interval '1 hour' where id = ${flooded.id}`;
    await api.make(endpointBody(`${receiver.url}/own`, { events: ['alarm'] }));
    await stranger.make(endpointBody(`${receiver.url}/foreign`));
    const foreign = new EventSource('350000000000002', Date.now() - 86_400_000);
    for (let sent = 0; sent < STEP; sent += STEP / 4) await source.emit(pod, STEP / 4);
    const paused = async () => (await api.call('GET', `/${flooded.id}`)).body.data.paused;
    await waitFor(async () => (await paused())?.reason === 'endpoint_quota');
    // An event for each endpoint, and another one for the paused one alone.
    await pod.points(Array.from({ length: LATER }, (_, n) => ({ ...source.point(), alarm: `alarm ${n}` })));
    await foreign.emit(pod, LATER);
    await waitFor(() => receiver.to('/own').length >= LATER && receiver.to('/foreign').length >= LATER);
    const made = await sql<{ event: number }[]>`
      select (body::jsonb->'data'->>'fleet_event_id')::int as event from webhook_delivery
      where webhook_id = ${flooded.id} order by 1`;
    assert.equal(made.length, STEP, 'nothing was made for it after the pause');
    const leftOut = (await api.call('GET', `/${flooded.id}/left-out`)).body.data;
    assert.ok(leftOut.events >= 2 * LATER && leftOut.is_complete);
    assert.match(await pausedMetric(pod.ingest), /^fleet_webhook_paused 1$/m);

    // Most of what waits need not be sent to prove that all comes.
    const last = made.at(-1 - LATER)?.event ?? 0;
    await sql`
      update webhook_delivery set status = 'delivered', next_attempt_at = null
      where webhook_id = ${flooded.id} and (body::jsonb->'data'->>'fleet_event_id')::int <= ${last}`;
    await sql`update webhook set leased_until = null where id = ${flooded.id}`;
    assert.equal((await api.call('POST', `/${flooded.id}/resume`, {})).status, 200);
    // Two minutes pass.
    await sql`update fleet_event set recorded_at = recorded_at - interval '2 minutes'`;
    await sql`update webhook_left_out set from_at = from_at - interval '2 minutes', to_at = to_at - interval '2 minutes'`;
    const wanted = await sql<{ id: number }[]>`
      select id from fleet_event where device_imei = ${source.imei} and id > ${last}`;
    assert.equal(wanted.length, 3 * LATER, 'every point was taken');
    await waitFor(() => receiver.to('/flooded').length >= wanted.length);
    const received = receiver.to('/flooded').map(({ body }) => JSON.parse(body).data.fleet_event_id);
    assert.deepEqual(received.toSorted(), wanted.map(({ id }) => id).toSorted(), 'once');
  });
});

async function pausedMetric(ingest: string): Promise<string> {
  let text = '';
  // Counted every five seconds.
  await waitFor(async () => {
    text = await (await fetch(`${ingest}/metrics`)).text();
    return !text.includes('fleet_webhook_paused 0');
  });
  return text;
}
