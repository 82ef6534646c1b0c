import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { isImei } from '../../../src/devices/device.ts';
import type { Fix } from '../../../src/ingest/fix.ts';
import { parsePoint, type RejectionCode } from '../../../src/ingest/formats/parsePoint.ts';
import { anyCharacter } from '../../support/http/anyCharacter.ts';
import { fixOf } from '../../support/ingest/fixOf.ts';
import { runs } from '../../support/torture.ts';

const SEED = { seed: 20_260_314 };
const NOW = Date.UTC(2026, 2, 14, 12);
const OLDEST = NOW - 730 * 86_400_000;
const MINUTE = 60_000;

const POINT = {
  imei: '352093081234501',
  recorded_at: '2026-03-14T11:59:30Z',
  latitude: 41.9028,
  longitude: 12.4964,
};
const FULL = {
  ...POINT,
  altitude_m: 37.5,
  speed_kmh: 48.2,
  heading: 271,
  satellites: 11,
  odometer_km: 120_345.678,
  ignition: true,
  alarm: 'tampering, lowBattery',
  rfid: '04A1B2C3',
};

function codeOf(value: unknown): RejectionCode | 'accepted' {
  const parsed = parsePoint(value, NOW, OLDEST);
  return parsed.ok ? 'accepted' : parsed.error.code;
}

function parsed(changes: object): { fix: Fix; ignored: readonly string[] } {
  const result = parsePoint({ ...FULL, ...changes }, NOW, OLDEST);
  assert.ok(result.ok);
  return result.value;
}

test('a full point becomes a fix', () => {
  const values = {
    lat: 41.9028,
    lng: 12.4964,
    altitudeM: 37.5,
    speedKmh: 48.2,
    heading: 271,
    satellites: 11,
  };
  const more = {
    odometerKm: 120_345.678,
    ignition: true,
    alarms: ['tampering', 'lowBattery'],
    rfid: '04A1B2C3',
  };
  assert.deepEqual(parsed({}), { fix: fixOf(POINT.imei, NOW - 30_000, { ...values, ...more }), ignored: [] });
});

test('what is missing is 0 or unknown, and null is missing', () => {
  const bare = parsePoint(POINT, NOW, OLDEST);
  const fix = fixOf(POINT.imei, NOW - 30_000, { lat: 41.9028, lng: 12.4964, speedKmh: null });
  assert.deepEqual(bare.ok && bare.value, { fix, ignored: [] });
  const nulls = { altitude_m: null, speed_kmh: null, heading: null, satellites: null };
  const moreNulls = { odometer_km: null, ignition: null, alarm: null, rfid: null };
  assert.deepEqual(parsePoint({ ...POINT, ...nulls, ...moreNulls }, NOW, OLDEST), bare);
});

describe('a point is rejected with the code of its first error', () => {
  const cases: [name: string, value: unknown, code: RejectionCode][] = [
    ['no value', undefined, 'INVALID_BODY'],
    ['null', null, 'INVALID_BODY'],
    ['text', JSON.stringify(POINT), 'INVALID_BODY'],
    ['an array', [POINT], 'INVALID_BODY'],
    ['an empty object', {}, 'INVALID_IMEI'],
    ['imei null', { ...POINT, imei: null }, 'INVALID_IMEI'],
    ['imei a number', { ...POINT, imei: 352093081234501 }, 'INVALID_IMEI'],
    ['imei of 13 digits', { ...POINT, imei: '3520930812345' }, 'INVALID_IMEI'],
    ['imei with a blank', { ...POINT, imei: '352093081234501 ' }, 'INVALID_IMEI'],
    ['imei with a letter', { ...POINT, imei: '35209308123450a' }, 'INVALID_IMEI'],
    ['imei in other digits', { ...POINT, imei: '٣٥٢٠٩٣٠٨١٢٣٤٥٠١' }, 'INVALID_IMEI'],
    ['latitude missing', { ...POINT, latitude: undefined }, 'INVALID_COORDINATES'],
    ['longitude null', { ...POINT, longitude: null }, 'INVALID_COORDINATES'],
    ['latitude text', { ...POINT, latitude: '41.9' }, 'INVALID_COORDINATES'],
    ['longitude infinite', { ...POINT, longitude: Number.POSITIVE_INFINITY }, 'INVALID_COORDINATES'],
    ['latitude past the pole', { ...POINT, latitude: 90.0000001 }, 'INVALID_COORDINATES'],
    ['longitude past 180', { ...POINT, longitude: 180.0000001 }, 'INVALID_COORDINATES'],
    ['the null island', { ...POINT, latitude: 0, longitude: 0 }, 'INVALID_COORDINATES'],
    ['time missing', { ...POINT, recorded_at: undefined }, 'INVALID_TIMESTAMP'],
    ['time not a date', { ...POINT, recorded_at: 'yesterday' }, 'INVALID_TIMESTAMP'],
    ['time that never was', { ...POINT, recorded_at: '2026-02-30T00:00:00Z' }, 'INVALID_TIMESTAMP'],
    ['time digits in a string', { ...POINT, recorded_at: String(NOW) }, 'INVALID_TIMESTAMP'],
    ['time NaN', { ...POINT, recorded_at: Number.NaN }, 'INVALID_TIMESTAMP'],
    ['time a Date', { ...POINT, recorded_at: new Date(NOW) }, 'INVALID_TIMESTAMP'],
    ['more than 10 min ahead', { ...POINT, recorded_at: NOW + 10 * MINUTE + 1 }, 'FUTURE_TIMESTAMP'],
    ['just too old', { ...POINT, recorded_at: OLDEST - 1 }, 'TOO_OLD'],
    ['seconds for milliseconds', { ...POINT, recorded_at: NOW / 1_000 }, 'TOO_OLD'],
    ['several errors: the imei first', { imei: 'x', latitude: 'x', recorded_at: 'x' }, 'INVALID_IMEI'],
    ['then the coordinates', { ...POINT, latitude: 'x', recorded_at: 'x' }, 'INVALID_COORDINATES'],
  ];
  for (const [name, value, code] of cases) {
    test(`${name}: ${code}`, () => assert.equal(codeOf(value), code));
  }
});

describe('at the edge a point is accepted', () => {
  const cases: [name: string, value: object, expected: Partial<Fix>][] = [
    ['imei of 14 digits', { imei: '35209308123450' }, { imei: '35209308123450' }],
    ['imei of 17 digits', { imei: '35209308123450123' }, { imei: '35209308123450123' }],
    ['the north pole and the antimeridian', { latitude: 90, longitude: -180 }, { lat: 90, lng: -180 }],
    ['Greenwich away from the equator', { latitude: 51.5, longitude: -0 }, { lat: 51.5, lng: 0 }],
    ['10 min ahead', { recorded_at: NOW + 10 * MINUTE }, { recordedAtMs: NOW + 10 * MINUTE }],
    ['as old as any plan keeps', { recorded_at: OLDEST }, { recordedAtMs: OLDEST }],
    ['a part of a millisecond', { recorded_at: NOW - 0.4 }, { recordedAtMs: NOW - 1 }],
    ['an offset', { recorded_at: '2026-03-14T13:00:00+01:00' }, { recordedAtMs: NOW }],
    ['speed -0', { speed_kmh: -0 }, { speedKmh: 0 }],
    ['heading 360', { heading: 360 }, { heading: 360 }],
    ['below the sea', { altitude_m: -430.5 }, { altitudeM: -430.5 }],
    ['ignition off', { ignition: false }, { ignition: false }],
    ['alarm empty', { alarm: '' }, { alarms: [] }],
    ['alarm twice', { alarm: 'sos,, sos ,tow,sos' }, { alarms: ['sos', 'tow'] }],
    ['alarm like a property', { alarm: '__proto__,constructor' }, { alarms: ['__proto__', 'constructor'] }],
    ['rfid blank', { rfid: '  ' }, { rfid: null }],
    ['rfid of 200 characters', { rfid: 'x'.repeat(200) }, { rfid: 'x'.repeat(200) }],
    ['rfid in another script', { rfid: 'شاحنة\u200f 7\u00a0é' }, { rfid: 'شاحنة\u200f 7\u00a0é' }],
    ['rfid outside the basic plane', { rfid: 'tag 🚚' }, { rfid: 'tag 🚚' }],
    ['unknown fields', { speed: 'x', toString: 5 }, {}],
  ];
  for (const [name, changes, expected] of cases) {
    test(name, () => {
      const { fix, ignored } = parsed(changes);
      assert.deepEqual(ignored, []);
      assert.deepEqual({ ...fix, ...expected }, fix);
    });
  }
});

describe('an impossible optional value is as good as none and is named', () => {
  const missing = { altitude_m: 0, speed_kmh: null, heading: 0, satellites: 0, odometer_km: null };
  const texts = { ignition: null, alarm: [], rfid: null };
  const values: Record<string, unknown[]> = {
    altitude_m: ['37', true, Number.NaN, Number.POSITIVE_INFINITY, 100_001, -1e9, {}],
    speed_kmh: [-0.1, -1, '48', Number.NaN, Number.POSITIVE_INFINITY, 1e6, [], false],
    heading: [-1, 360.1, 361, '90', 'N', Number.NaN, {}],
    satellites: [-1, 7.5, '8', Number.NaN, 1e9, true],
    odometer_km: [-0.001, '12', Number.POSITIVE_INFINITY, 1e12, []],
    ignition: [0, 1, 'true', 'on', {}],
    alarm: [5, ['sos'], 'x'.repeat(201), 'a\u0000b', 'sos,\ud800', 'so\u009bs', 'sos,\u202esos'],
    rfid: [{}, 'x'.repeat(201), '\udc00tag', 'tag\u0000', 'two\nlines', '\u007f!', '\u0080', '04\u2066A1'],
  };
  const nameInFix: Record<string, keyof Fix> = {
    altitude_m: 'altitudeM',
    speed_kmh: 'speedKmh',
    odometer_km: 'odometerKm',
    alarm: 'alarms',
  };
  for (const [field, impossible] of Object.entries(values)) {
    for (const value of impossible) {
      test(`${field}: ${JSON.stringify(value)?.slice(0, 30) ?? String(value)} (${typeof value})`, () => {
        const { fix, ignored } = parsed({ [field]: value });
        assert.deepEqual(ignored, [field]);
        const inFix = nameInFix[field] ?? (field as keyof Fix);
        assert.deepEqual(fix[inFix], { ...missing, ...texts }[field]);
        assert.deepEqual(
          { ...fix, [inFix]: null },
          { ...parsed({}).fix, [inFix]: null },
          'no other field changes',
        );
      });
    }
  }
});

test('whatever comes in, the answer is a sound fix or a documented code', () => {
  const anything = fc.anything({
    withNullPrototype: true,
    withBigInt: true,
    withDate: true,
    withSparseArray: true,
  });
  const pointLike = fc.record(
    {
      imei: fc.oneof(fc.constant(POINT.imei), anything),
      recorded_at: fc.oneof(fc.constant(NOW), fc.constant(POINT.recorded_at), anything),
      latitude: fc.oneof(fc.double(), fc.double({ min: -90, max: 90, noNaN: true }), anything),
      longitude: fc.oneof(fc.double(), fc.double({ min: -180, max: 180, noNaN: true }), anything),
      altitude_m: fc.oneof(fc.double(), anything),
      speed_kmh: fc.oneof(fc.double(), anything),
      heading: fc.oneof(fc.double({ min: -10, max: 400 }), anything),
      satellites: fc.oneof(fc.integer(), fc.double(), anything),
      odometer_km: fc.oneof(fc.double(), anything),
      ignition: fc.oneof(fc.boolean(), anything),
      alarm: fc.oneof(
        fc.string({ unit: anyCharacter }),
        fc.constantFrom('a,b', '\ud800', 'a,\u0000'),
        anything,
      ),
      rfid: fc.oneof(fc.string({ unit: anyCharacter, maxLength: 300 }), anything),
    },
    { requiredKeys: [] },
  );
  const codes = [
    'INVALID_BODY',
    'INVALID_IMEI',
    'INVALID_COORDINATES',
    'INVALID_TIMESTAMP',
    'FUTURE_TIMESTAMP',
    'TOO_OLD',
  ];
  let accepted = 0;
  fc.assert(
    fc.property(
      fc.oneof({ weight: 1, arbitrary: anything }, { weight: 4, arbitrary: pointLike }),
      (value) => {
        const result = parsePoint(value, NOW, OLDEST);
        if (!result.ok) {
          assert.ok(codes.includes(result.error.code), result.error.code);
          return;
        }
        accepted++;
        const { fix, ignored } = result.value;
        assert.ok(isImei(fix.imei));
        assert.ok(
          Number.isInteger(fix.recordedAtMs) &&
            fix.recordedAtMs >= OLDEST &&
            fix.recordedAtMs <= NOW + 10 * MINUTE,
        );
        assert.ok(Math.abs(fix.lat) <= 90 && Math.abs(fix.lng) <= 180 && (fix.lat !== 0 || fix.lng !== 0));
        assert.ok(Number.isFinite(fix.altitudeM) && fix.heading >= 0 && fix.heading <= 360);
        assert.ok(fix.speedKmh === null || (fix.speedKmh >= 0 && Number.isFinite(fix.speedKmh)));
        assert.ok(fix.odometerKm === null || (fix.odometerKm >= 0 && Number.isFinite(fix.odometerKm)));
        assert.ok(Number.isInteger(fix.satellites) && fix.satellites >= 0);
        for (const text of [...fix.alarms, fix.rfid ?? 'none']) {
          assert.ok(text !== '' && text === text.trim() && text.isWellFormed() && !text.includes('\u0000'));
        }
        assert.equal(new Set(ignored).size, ignored.length);
        for (const number of [fix.lat, fix.lng, fix.altitudeM, fix.speedKmh, fix.heading, fix.odometerKm]) {
          assert.ok(!Object.is(number, -0));
        }
      },
    ),
    { ...SEED, numRuns: runs(500) },
  );
  assert.ok(accepted > 5, `only ${accepted} accepted`);
});

describe('seconds where milliseconds are meant', () => {
  const messageOf = (recorded_at: unknown): string | null => {
    const result = parsePoint({ ...POINT, recorded_at }, NOW, OLDEST);
    return result.ok ? null : result.error.message;
  };
  test('are refused with a message that says so', () => {
    for (const seconds of [NOW / 1_000, NOW / 1_000 + 0.5, OLDEST / 1_000, NOW / 1_000 + 600]) {
      assert.match(messageOf(seconds) ?? '', /milliseconds/);
      assert.equal(codeOf({ ...POINT, recorded_at: seconds }), 'TOO_OLD');
    }
  });
  test('are not seen in what is just old', () => {
    for (const old of [OLDEST - 1, 0, 12_345, OLDEST / 1_000 - 1, '1970-01-21T00:00:00Z']) {
      assert.doesNotMatch(messageOf(old) ?? '', /seconds/);
    }
  });
});
