import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { waitFor } from '../support/waitFor.ts';
import { webhookSetup } from '../support/webhooks/webhookSetup.ts';
import { EventSource, endpointBody, type WebhookApi, webhookApi } from '../support/webhooks/webhooks.ts';

/** A pod counts what waits when it has made so many deliveries of an endpoint. */
const STEP = 1_000;
const QUOTA = 300;
const LATER = 50;
const DEAD_URL = 'https://127.0.0.1:1/';

describe('an endpoint whose deliveries pile up', () => {
  const setup = webhookSetup(600_000);
  let stranger: WebhookApi;
  before(async () => {
    const { admin, pod, sql } = setup;
    await sql`update plan set max_waiting_per_webhook = ${QUOTA}`;
    await admin.account('stranger@example.com');
    await admin.device('stranger@example.com', '350000000000002');
    stranger = webhookApi(pod.api, (await admin.key('stranger@example.com')).key);
  });

  test('is paused, the others get everything, and after it is resumed it gets what it lacks, once', async () => {
    const { api, pod, receiver, source, sql } = setup;
    const flooded = await api.make(endpointBody(DEAD_URL));
    await api.make(endpointBody(`${receiver.url}/own`, { events: ['alarm'] }));
    await stranger.make(endpointBody(`${receiver.url}/foreign`));
    const foreign = new EventSource('350000000000002', Date.now() - 86_400_000);
    for (let sent = 0; sent < STEP; sent += STEP / 4) await source.emit(pod, STEP / 4);
    const paused = async () => (await api.call('GET', `/${flooded.id}`)).body.data.paused;
    await waitFor(async () => (await paused())?.reason === 'endpoint_quota');
    // An event for each endpoint, and another one for the paused one alone.
    await pod.points(Array.from({ length: LATER }, (_, n) => ({ ...source.point(), alarm: `alarm ${n}` })));
    await foreign.emit(pod, LATER);
    const events = new Set(
      (await sql`select id from fleet_event where device_imei = ${source.imei}`).map(({ id }) => id),
    );
    assert.equal(events.size, STEP + 2 * LATER, 'every point was taken');
    await waitFor(() => receiver.to('/own').length >= LATER && receiver.to('/foreign').length >= LATER);
    const [made] = await sql<{ count: number }[]>`
      select count(*)::int as count from webhook_delivery where webhook_id = ${flooded.id}`;
    assert.equal(made?.count, STEP, 'nothing was made for it after the pause');
    const leftOut = (await api.call('GET', `/${flooded.id}/left-out`)).body.data;
    assert.ok(leftOut.events >= 2 * LATER && leftOut.is_complete);
    assert.match(await metricsOf(pod.ingest), /^fleet_webhook_paused 1$/m);

    await api.change(flooded.id, { url: `${receiver.url}/flooded` });
    assert.equal((await api.call('POST', `/${flooded.id}/resume`, {})).status, 200);
    // Two minutes pass, and the retries are due.
    await sql`update fleet_event set recorded_at = recorded_at - interval '2 minutes'`;
    await sql`update webhook_left_out set from_at = from_at - interval '2 minutes', to_at = to_at - interval '2 minutes'`;
    await sql`update webhook_delivery set next_attempt_at = clock_timestamp() where next_attempt_at is not null`;
    await waitFor(() => receiver.to('/flooded').length >= events.size);
    const received = receiver.to('/flooded').map(({ body }) => JSON.parse(body).data.fleet_event_id);
    assert.equal(received.length, events.size, 'once');
    assert.deepEqual(new Set(received), events);
  });
});

async function metricsOf(ingest: string): Promise<string> {
  let text = '';
  // Counted every five seconds.
  await waitFor(async () => {
    text = await (await fetch(`${ingest}/metrics`)).text();
    return !text.includes('fleet_webhook_paused 0');
  });
  return text;
}
