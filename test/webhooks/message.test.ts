import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  fleetEventBody,
  fleetEventWebhookId,
  isDeliveryId,
  newDeliveryIds,
  newEventId,
  pingBody,
} from '../../src/webhooks/message.ts';

const AT_MS = Date.UTC(2026, 2, 1, 12, 0, 0, 5);

describe('the body of a fleet event', () => {
  const message = {
    id: 'evt_0123456789abcdef0123456789abcdef',
    type: 'geofence_enter',
    createdAtMs: AT_MS,
    fleetEventId: 9_007_199_254_740_991,
    occurredAtMs: AT_MS - 1500,
    device: { imei: '356307042441013', name: 'Città 🚚 \ud800', plate: null },
    data: { position: { lat: 41.9, lng: 12.5 }, areaId: 7, event: 'entry' },
  } as const;

  test('says what the event says, and beyond it its id, device and time', () => {
    assert.deepEqual(JSON.parse(fleetEventBody(message)), {
      id: message.id,
      type: 'geofence_enter',
      created_at: '2026-03-01T12:00:00.005Z',
      data: {
        position: { lat: 41.9, lng: 12.5 },
        areaId: 7,
        event: 'entry',
        fleet_event_id: 9_007_199_254_740_991,
        device: { imei: '356307042441013', name: 'Città 🚚 \ud800', plate: null },
        occurred_at: '2026-03-01T11:59:58.505Z',
      },
    });
  });

  test('is the same text again after its way through UTF-8', () => {
    const body = fleetEventBody(message);
    assert.equal(Buffer.from(body, 'utf8').toString('utf8'), body);
    assert.ok(body.isWellFormed());
  });
});

test('the body of a ping names its endpoint', () => {
  const body = JSON.parse(pingBody('evt_1', 12, AT_MS));
  assert.deepEqual(
    { ...body, data: { ...body.data, message: typeof body.data.message } },
    {
      id: 'evt_1',
      type: 'ping',
      created_at: '2026-03-01T12:00:00.005Z',
      data: { message: 'string', webhook_id: 12 },
    },
  );
});

describe('ids', () => {
  test('of a fleet event are stable, and different for every event and installation', () => {
    const id = fleetEventWebhookId('a', 1);
    assert.match(id, /^evt_[0-9a-f]{32}$/);
    assert.equal(fleetEventWebhookId('a', 1), id);
    const ids = ['a', 'b', 'a:1'].flatMap((name) => [1, 2, 11].map((n) => fleetEventWebhookId(name, n)));
    assert.equal(new Set(ids).size, ids.length);
  });

  test('of other events and of deliveries are random', () => {
    assert.match(newEventId(), /^evt_[0-9a-f]{32}$/);
    assert.equal(new Set(Array.from({ length: 50 }, () => newDeliveryIds(2)).flat()).size, 100);
  });

  test('of deliveries made together rise', () => {
    const ids = newDeliveryIds(300);
    assert.deepEqual(ids.toSorted(), ids);
  });

  test('of deliveries are known by their form', () => {
    assert.ok(newDeliveryIds(20).every(isDeliveryId));
    for (const text of [
      '',
      'dlv_',
      `evt_${'0'.repeat(32)}`,
      `dlv_${'0'.repeat(31)}`,
      `dlv_${'A'.repeat(32)}`,
      `dlv_${'0'.repeat(32)}\n`,
    ]) {
      assert.ok(!isDeliveryId(text), JSON.stringify(text));
    }
  });
});
