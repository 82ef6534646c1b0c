import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EVENT_TYPES } from '../../src/events/fleetEvent.ts';
import { isSubscription, WEBHOOK_TYPES, webhookTypeOf } from '../../src/webhooks/message.ts';
import { matches } from '../../src/webhooks/subscriptions.memory.ts';

describe('webhook types', () => {
  test('are those of all fleet events, geofence ones by direction, the pause of an endpoint, and ping', () => {
    const types = EVENT_TYPES.flatMap((type) => [webhookTypeOf(type, 'entry'), webhookTypeOf(type, 'exit')]);
    assert.deepEqual(new Set([...types, 'webhook_paused', 'ping']), new Set(WEBHOOK_TYPES));
    assert.equal(webhookTypeOf('geofence', 'entry'), 'geofence_enter');
    assert.equal(webhookTypeOf('geofence', 'exit'), 'geofence_exit');
    assert.equal(webhookTypeOf('ignition_on', null), 'ignition_on');
  });

  test('are what can be subscribed to, beside the wildcard', () => {
    for (const type of [...WEBHOOK_TYPES, '*']) assert.ok(isSubscription(type));
    for (const other of ['geofence', 'geofence_entry', 'Alarm', '', '**', ' ping', null, 1, ['*']]) {
      assert.ok(!isSubscription(other));
    }
  });
});

describe('an endpoint', () => {
  test('receives the types in its list and no others', () => {
    for (const type of WEBHOOK_TYPES) {
      assert.ok(matches([type], type));
      assert.ok(matches(['alarm', type], type));
      assert.ok(
        !matches(
          WEBHOOK_TYPES.filter((other) => other !== type),
          type,
        ),
      );
    }
  });

  test('with the wildcard receives every type', () => {
    for (const type of WEBHOOK_TYPES) assert.ok(matches(['*'], type));
  });
});
