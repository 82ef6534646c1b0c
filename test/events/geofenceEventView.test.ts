import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type GeofenceEvent, geofenceEventData, geofenceEventMessage } from '../../src/events/fleetEvent.ts';

const facts = {
  worldId: 3,
  areaId: 12,
  areaName: 'Depot Nord',
  enteredAtMs: Date.UTC(2026, 2, 14, 12, 0, 0, 500),
  dwellSeconds: 60,
  position: { lat: 41.9, lng: 12.5 },
  occurredAtMs: Date.UTC(2026, 2, 14, 12, 2),
};
const ENTRY: GeofenceEvent = { direction: 'entry', ...facts };
const EXIT: GeofenceEvent = { direction: 'exit', staySeconds: 119.5, ...facts };
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
