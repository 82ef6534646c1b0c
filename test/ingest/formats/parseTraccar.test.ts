import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Fix } from '../../../src/ingest/fix.ts';
import type { RejectionCode } from '../../../src/ingest/formats/parsePoint.ts';
import { parseTraccar } from '../../../src/ingest/formats/parseTraccar.ts';
import { runs } from '../../support/torture.ts';

const NOW = Date.UTC(2026, 2, 14, 12);
const OLDEST = NOW - 730 * 86_400_000;

const ATTRIBUTES = {
  sat: 9,
  ignition: true,
  alarm: 'tampering,lowBattery',
  odometer: 120_345_678,
  totalDistance: 999_000.5,
  driverUniqueId: '04A1B2C3',
  batteryLevel: 97,
};
const POSITION = {
  id: 71,
  deviceId: 3,
  protocol: 'teltonika',
  serverTime: '2026-03-14T11:59:31.000+00:00',
  deviceTime: '2026-03-14T11:59:30.000+00:00',
  fixTime: '2026-03-14T11:59:30.000+00:00',
  valid: true,
  latitude: 41.9028,
  longitude: 12.4964,
  altitude: 37.5,
  speed: 10,
  course: 271.5,
  address: null,
  accuracy: 0,
};
const DEVICE = { id: 3, name: 'Van 12', uniqueId: '352093081234501', status: 'online' };

function body(position: object = {}, attributes: object = {}, device: unknown = DEVICE): unknown {
  return { position: { ...POSITION, ...position, attributes: { ...ATTRIBUTES, ...attributes } }, device };
}

test('a forwarded position becomes a fix: knots to km/h, metres to km', () => {
  const result = parseTraccar(body(), NOW, OLDEST);
  assert.deepEqual(result.ok && result.value, {
    fix: {
      imei: '352093081234501',
      recordedAtMs: NOW - 30_000,
      sentAtMs: null,
      lat: 41.9028,
      lng: 12.4964,
      altitudeM: 37.5,
      speedKmh: 18.52,
      heading: 271.5,
      satellites: 9,
      odometerKm: 120_345.678,
      ignition: true,
      alarms: ['tampering', 'lowBattery'],
      rfid: '04A1B2C3',
    },
    ignored: [],
  });
});

describe('read', () => {
  const bare = { position: { ...POSITION }, device: DEVICE };
  const cases: [name: string, value: unknown, expected: Partial<Fix>, ignored?: string[]][] = [
    ['fixTime with +0000', body({ fixTime: '2026-03-14T11:59:30.000+0000' }), { recordedAtMs: NOW - 30_000 }],
    ['fixTime with +00:00', body({ fixTime: '2026-03-14T11:59:30+00:00' }), { recordedAtMs: NOW - 30_000 }],
    ['fixTime with Z', body({ fixTime: '2026-03-14T11:59:30.250Z' }), { recordedAtMs: NOW - 29_750 }],
    ['fixTime in another zone', body({ fixTime: '2026-03-14T13:00:00.000+0100' }), { recordedAtMs: NOW }],
    ['fixTime in milliseconds', body({ fixTime: NOW }), { recordedAtMs: NOW }],
    ['valid missing', body({ valid: undefined }), { lat: 41.9028 }],
    ['no attributes', bare, { satellites: 0, odometerKm: null, ignition: null, alarms: [], rfid: null }],
    ['attributes null', { ...bare, position: { ...POSITION, attributes: null } }, { satellites: 0 }],
    ['the odometer missing', body({}, { odometer: undefined }), { odometerKm: 999.0005 }],
    ['the odometer null', body({}, { odometer: null }), { odometerKm: 999.0005 }],
    ['neither distance', body({}, { odometer: undefined, totalDistance: undefined }), { odometerKm: null }],
    ['course unknown', body({ course: -1 }), { heading: 0 }, ['heading']],
    ['speed unknown', body({ speed: -1 }), { speedKmh: null }, ['speed_kmh']],
    ['speed missing', body({ speed: undefined }), { speedKmh: null }],
    ['speed as text', body({ speed: '10' }), { speedKmh: null }, ['speed_kmh']],
    ['ignition as text', body({}, { ignition: 'on' }), { ignition: null }, ['ignition']],
    ['no alarm', body({}, { alarm: undefined }), { alarms: [] }],
  ];
  for (const [name, value, expected, ignored = []] of cases) {
    test(name, () => {
      const result = parseTraccar(value, NOW, OLDEST);
      assert.ok(result.ok);
      assert.deepEqual({ ...result.value.fix, ...expected }, result.value.fix);
      assert.deepEqual(result.value.ignored, ignored);
    });
  }
});

describe('refused', () => {
  const cases: [name: string, value: unknown, code: RejectionCode][] = [
    ['null', null, 'INVALID_BODY'],
    ['text', 'position', 'INVALID_BODY'],
    ['no position', { device: DEVICE }, 'INVALID_BODY'],
    ['position null', { position: null, device: DEVICE }, 'INVALID_BODY'],
    ['position a number', { position: 5, device: DEVICE }, 'INVALID_BODY'],
    ['no device', { position: POSITION }, 'INVALID_IMEI'],
    ['device text', body({}, {}, '352093081234501'), 'INVALID_IMEI'],
    ['no uniqueId', body({}, {}, { id: 3 }), 'INVALID_IMEI'],
    ['uniqueId a name', body({}, {}, { uniqueId: 'van-12' }), 'INVALID_IMEI'],
    ['valid false', body({ valid: false }), 'INVALID_COORDINATES'],
    ['no latitude', body({ latitude: undefined }), 'INVALID_COORDINATES'],
    ['the null island', body({ latitude: 0, longitude: 0 }), 'INVALID_COORDINATES'],
    ['no fixTime', body({ fixTime: undefined }), 'INVALID_TIMESTAMP'],
    ['a bad fixTime', body({ fixTime: '2026-03-14T11:59:30.000+0000Z' }), 'INVALID_TIMESTAMP'],
    ['fixTime ahead', body({ fixTime: '2026-03-14T12:10:00.001+0000' }), 'FUTURE_TIMESTAMP'],
    ['fixTime of 1970', body({ fixTime: '1970-01-01T00:00:00.000+00:00' }), 'TOO_OLD'],
  ];
  for (const [name, value, code] of cases) {
    test(`${name}: ${code}`, () => {
      const result = parseTraccar(value, NOW, OLDEST);
      assert.equal(result.ok ? 'accepted' : result.error.code, code);
    });
  }
});

test('no body makes it throw', () => {
  const part = fc.anything({ withNullPrototype: true });
  fc.assert(
    fc.property(fc.oneof(part, fc.record({ position: part, device: part })), (value) => {
      parseTraccar(value, NOW, OLDEST);
    }),
    { seed: 20_260_314, numRuns: runs(250) },
  );
});
