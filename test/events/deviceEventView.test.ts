import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DeviceEvent, deviceEventData, deviceEventMessage } from '../../src/events/fleetEvent.ts';

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
