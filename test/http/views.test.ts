import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventView } from '../../src/http/views.ts';

test('a geofence event names its area by areaId on v3, and by geofenceId and nothing else on v2', () => {
  const event = {
    id: 7,
    type: 'geofence',
    message: 'Van 12 entered Depot',
    imei: '350000000000001',
    data: { areaId: 3, areaName: 'Depot', event: 'entry', position: { lat: 1, lng: 2 } },
    read: false,
    occurredAtMs: 0,
  } as const;
  const shown = {
    id: 7,
    type: 'geofence',
    message: 'Van 12 entered Depot',
    device_imei: '350000000000001',
    read: false,
    occurred_at: '1970-01-01T00:00:00.000Z',
  };
  const { areaId, ...rest } = event.data;
  assert.deepEqual(eventView(event, 'v3'), { ...shown, data: event.data });
  assert.deepEqual(eventView(event, 'v2'), { ...shown, data: { ...rest, geofenceId: areaId } });
});
