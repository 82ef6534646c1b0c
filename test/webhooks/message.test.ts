import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EVENT_TYPES } from '../../src/events/fleetEvent.ts';
import {
  fleetEventBody,
  fleetEventWebhookId,
  newDeliveryIdStart,
  newEventId,
  WEBHOOK_TYPES,
  webhookTypeOf,
} from '../../src/webhooks/delivery.ts';

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

  test('is the same text again after its way through UTF-8', () => {
    const body = fleetEventBody(message);
    assert.equal(Buffer.from(body, 'utf8').toString('utf8'), body);
    assert.ok(body.isWellFormed());
  });
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
    assert.match(newDeliveryIdStart(), /^dlv_[0-9a-f]{24}$/);
    assert.equal(new Set(Array.from({ length: 50 }, newDeliveryIdStart)).size, 50);
  });
});

test('types are those of all fleet events, geofence ones by direction, the pause of an endpoint, and ping', () => {
  const types = EVENT_TYPES.flatMap((type) => [webhookTypeOf(type, 'entry'), webhookTypeOf(type, 'exit')]);
  assert.deepEqual(new Set([...types, 'webhook_paused', 'ping']), new Set(WEBHOOK_TYPES));
  assert.equal(webhookTypeOf('geofence', 'entry'), 'geofence_enter');
  assert.equal(webhookTypeOf('geofence', 'exit'), 'geofence_exit');
});
