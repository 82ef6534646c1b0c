import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type DeviceEvent,
  deviceEventData,
  deviceEventMessage,
  EVENT_TYPES,
  type GeofenceEvent,
  geofenceEventData,
  geofenceEventMessage,
  parseEventTypeFilter,
} from '../../src/events/fleetEvent.ts';

const position = { lat: 41.9, lng: 12.5 };
const parkedAtMs = Date.UTC(2026, 2, 14, 12);

test('every event has its position, what its type needs and a sentence', () => {
  const cases: [event: DeviceEvent, data: object, message: string][] = [
    [{ type: 'ignition_on', position }, { ignition: true }, 'Van 12 switched its ignition on'],
    [{ type: 'ignition_off', position }, { ignition: false }, 'Van 12 switched its ignition off'],
    [
      { type: 'parking_start', position, parkedAtMs },
      { parked_at: '2026-03-14T12:00:00.000Z' },
      'Van 12 has parked',
    ],
    [
      { type: 'parking_end', position, parkedAtMs },
      { parked_at: '2026-03-14T12:00:00.000Z' },
      'Van 12 is on its way again',
    ],
    [
      { type: 'tamper_alert', position, alarm: 'removing' },
      { alarm: 'removing' },
      'Van 12 reports tampering: removing',
    ],
    [{ type: 'alarm', position, alarm: 'sos' }, { alarm: 'sos' }, 'Van 12 raised an alarm: sos'],
    [{ type: 'rfid', position, rfid: '04A1' }, { rfid: '04A1' }, 'Van 12 read the tag 04A1'],
  ];
  for (const [event, data, message] of cases) {
    assert.deepEqual(deviceEventData(event), { position: { lat: 41.9, lng: 12.5 }, ...data });
    assert.equal(deviceEventMessage(event, 'Van 12'), message);
  }
});

const FACTS = {
  worldId: 3,
  areaId: 12,
  areaName: 'Depot Nord',
  enteredAtMs: Date.UTC(2026, 2, 14, 12, 0, 0, 500),
  dwellSeconds: 60,
  position: { lat: 41.9, lng: 12.5 },
  occurredAtMs: Date.UTC(2026, 2, 14, 12, 2),
};
const ENTRY: GeofenceEvent = { direction: 'entry', ...FACTS };
const EXIT: GeofenceEvent = { direction: 'exit', staySeconds: 119.5, ...FACTS };
const DATA = {
  position: { lat: 41.9, lng: 12.5 },
  areaId: 12,
  areaName: 'Depot Nord',
  enteredAt: '2026-03-14T12:00:00.500Z',
  dwellSeconds: 60,
};

describe('a geofence event', () => {
  test('has the area, the first point inside and the threshold; on exits how long it lasted', () => {
    assert.deepEqual(geofenceEventData(ENTRY), { ...DATA, event: 'entry' });
    assert.deepEqual(geofenceEventData(EXIT), { ...DATA, event: 'exit', staySeconds: 119.5 });
  });

  test('reads as a sentence', () => {
    assert.equal(geofenceEventMessage(ENTRY, 'Van 12'), 'Van 12 entered Depot Nord');
    assert.equal(geofenceEventMessage(EXIT, 'Van 12'), 'Van 12 left Depot Nord');
  });
});

test('a filter is an event type, or an alias of one direction of geofence events', () => {
  for (const type of EVENT_TYPES) assert.deepEqual(parseEventTypeFilter(type), { type });
  for (const [alias, direction] of [
    ['geofence_enter', 'entry'],
    ['geofence_entry', 'entry'],
    ['geofence_exit', 'exit'],
  ] as const)
    assert.deepEqual(parseEventTypeFilter(alias), { type: 'geofence', direction });
  for (const text of ['', ' ', 'Geofence', 'geofence ', 'geofence,rfid', 'ping', 'toString', '*', 'ignition'])
    assert.equal(parseEventTypeFilter(text), null, text);
});
