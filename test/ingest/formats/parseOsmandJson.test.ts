import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Fix } from '../../../src/ingest/fix.ts';
import { parseOsmandJson } from '../../../src/ingest/formats/parseOsmand.ts';
import type { RejectionCode } from '../../../src/ingest/formats/parsePoint.ts';
import { runs } from '../../support/torture.ts';

const NOW = Date.UTC(2026, 2, 14, 12);
const OLDEST = NOW - 730 * 86_400_000;

const COORDS = {
  latitude: 41.9028,
  longitude: 12.4964,
  accuracy: 4.3,
  speed: 10,
  heading: 271.5,
  altitude: 37.5,
};
const LOCATION = {
  timestamp: '2026-03-14T11:59:30.250Z',
  coords: COORDS,
  is_moving: true,
  odometer: 1_234,
  event: 'motionchange',
  battery: { level: 0.88, is_charging: false },
  activity: { type: 'in_vehicle' },
  extras: {},
  _: '&id=1&lat=1&lon=1&timestamp=1&',
};
const body = (location: object = {}, coords: object = {}) => ({
  location: { ...LOCATION, coords: { ...COORDS, ...coords }, ...location },
  device_id: '352093081234501',
});

test('what the app sends becomes a fix: metres per second to km/h', () => {
  const result = parseOsmandJson(body(), NOW, OLDEST);
  assert.deepEqual(result.ok && result.value, {
    fix: {
      imei: '352093081234501',
      recordedAtMs: NOW - 29_750,
      sentAtMs: null,
      lat: 41.9028,
      lng: 12.4964,
      altitudeM: 37.5,
      speedKmh: 36,
      heading: 271.5,
      satellites: 0,
      odometerKm: null,
      ignition: null,
      alarms: [],
      rfid: null,
    },
    ignored: [],
  });
});

describe('read', () => {
  const cases: [name: string, value: unknown, expected: Partial<Fix>, ignored?: string[]][] = [
    [
      'speed and heading unknown',
      body({}, { speed: -1, heading: -1 }),
      { speedKmh: null, heading: 0 },
      ['speed_kmh', 'heading'],
    ],
    [
      'speed and heading missing',
      body({}, { speed: undefined, heading: null }),
      { speedKmh: null, heading: 0 },
    ],
    ['speed as text', body({}, { speed: '10' }), { speedKmh: null }, ['speed_kmh']],
    ['no timestamp', body({ timestamp: undefined }), { recordedAtMs: NOW }],
    ['an alarm', body({ alarm: 'sos' }), { alarms: ['sos'] }],
    ['an alarm among the extras', body({ alarm: 'fall', extras: { alarm: 'sos' } }), { alarms: ['sos'] }],
  ];
  for (const [name, value, expected, ignored = []] of cases) {
    test(name, () => {
      const result = parseOsmandJson(value, NOW, OLDEST);
      assert.ok(result.ok);
      assert.deepEqual({ ...result.value.fix, ...expected }, result.value.fix);
      assert.deepEqual(result.value.ignored, ignored);
    });
  }
});

describe('refused', () => {
  const cases: [name: string, value: unknown, code: RejectionCode][] = [
    ['null', null, 'INVALID_BODY'],
    ['no location', { device_id: '352093081234501' }, 'INVALID_BODY'],
    ['several locations', { ...body(), location: [LOCATION] }, 'INVALID_BODY'],
    ['no device', { location: LOCATION }, 'INVALID_IMEI'],
    ['no coords', body({ coords: undefined }), 'INVALID_COORDINATES'],
    ['coords as text', body({}, { latitude: '41.9' }), 'INVALID_COORDINATES'],
    ['the null island', body({}, { latitude: 0, longitude: 0 }), 'INVALID_COORDINATES'],
    ['a bad timestamp', body({ timestamp: 'now' }), 'INVALID_TIMESTAMP'],
  ];
  for (const [name, value, code] of cases) {
    test(`${name}: ${code}`, () => {
      const result = parseOsmandJson(value, NOW, OLDEST);
      assert.equal(result.ok ? 'accepted' : result.error.code, code);
    });
  }
});

test('no body makes it throw', () => {
  const part = fc.anything({ withNullPrototype: true });
  const shaped = fc.record({
    location: fc.oneof(part, fc.record({ coords: part, extras: part })),
    device_id: part,
  });
  fc.assert(
    fc.property(fc.oneof(part, shaped), (value) => {
      parseOsmandJson(value, NOW, OLDEST);
    }),
    { seed: 20_260_314, numRuns: runs(250) },
  );
});
