import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVENT_TYPES, parseEventTypeFilter } from '../../src/events/fleetEvent.ts';

test('every event type is a filter for itself', () => {
  for (const type of EVENT_TYPES) assert.deepEqual(parseEventTypeFilter(type), { type });
});

test('the aliases select one direction of geofence events', () => {
  assert.deepEqual(parseEventTypeFilter('geofence_enter'), { type: 'geofence', direction: 'entry' });
  assert.deepEqual(parseEventTypeFilter('geofence_entry'), { type: 'geofence', direction: 'entry' });
  assert.deepEqual(parseEventTypeFilter('geofence_exit'), { type: 'geofence', direction: 'exit' });
});

test('any other text is no filter', () => {
  for (const text of [
    '',
    ' ',
    'Geofence',
    'geofence ',
    'geofence,rfid',
    'ping',
    'toString',
    '*',
    'ignition',
  ]) {
    assert.equal(parseEventTypeFilter(text), null, text);
  }
});
