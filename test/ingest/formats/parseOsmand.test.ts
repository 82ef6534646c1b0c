import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Fix } from '../../../src/ingest/fix.ts';
import { type OsmandParams, parseOsmand } from '../../../src/ingest/formats/parseOsmand.ts';
import type { RejectionCode } from '../../../src/ingest/formats/parsePoint.ts';
import { anyCharacter } from '../../support/http/anyCharacter.ts';
import { runs } from '../../support/torture.ts';

const NOW = Date.UTC(2026, 2, 14, 12);
const OLDEST = NOW - 730 * 86_400_000;

const PARAMS: OsmandParams = { id: '352093081234501', lat: '41.9028', lon: '12.4964' };

/** The parameters of PARAMS with others on top; undefined takes one away. */
function params(changes: Record<string, string | undefined>): OsmandParams {
  const all = Object.entries({ ...PARAMS, ...changes });
  return Object.fromEntries(all.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

test('what a phone sends becomes a fix: knots to km/h, seconds to milliseconds', () => {
  const query =
    'id=352093081234501&timestamp=1773489570&lat=41.9028&lon=12.4964&speed=10&bearing=271.5&altitude=37.5' +
    '&hdop=0.8&accuracy=12&batt=97.0&driverUniqueId=04A1B2C3&alarm=sos';
  const result = parseOsmand(Object.fromEntries(new URLSearchParams(query)), NOW, OLDEST);
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
      satellites: 0,
      odometerKm: null,
      ignition: null,
      alarms: ['sos'],
      rfid: '04A1B2C3',
    },
    ignored: [],
  });
});

describe('read', () => {
  const at = (location: string) => ({ lat: undefined, lon: undefined, location });
  const cases: [
    name: string,
    changes: Record<string, string | undefined>,
    expected: Partial<Fix>,
    ignored?: string[],
  ][] = [
    ['deviceid for id', { id: undefined, deviceid: '352093081234502' }, { imei: '352093081234502' }],
    ['deviceid beside a blank id', { id: ' ', deviceid: '352093081234502' }, { imei: '352093081234502' }],
    ['id before deviceid', { deviceid: '352093081234502' }, { imei: '352093081234501' }],
    ['location', at('-33.45,-70.66'), { lat: -33.45, lng: -70.66 }],
    ['location with blanks', at(' 41.5 , 12.5 '), { lat: 41.5, lng: 12.5 }],
    ['location beside blank lat and lon', { lat: '', lon: '', location: '1,2' }, { lat: 1, lng: 2 }],
    ['lat and lon before location', { location: '1,2' }, { lat: 41.9028, lng: 12.4964 }],
    ['a sign and bare points', { lat: '+.5', lon: '-12.' }, { lat: 0.5, lng: -12 }],
    ['an exponent, as Java prints it', { lat: '4.5E-4', lon: '-1.0E-5' }, { lat: 0.00045, lng: -0.00001 }],
    ['no timestamp', {}, { recordedAtMs: NOW }],
    ['a blank timestamp', { timestamp: ' ' }, { recordedAtMs: NOW }],
    ['seconds', { timestamp: '1773489600' }, { recordedAtMs: NOW }],
    ['seconds with a fraction', { timestamp: '1773489599.123' }, { recordedAtMs: NOW - 877 }],
    ['milliseconds', { timestamp: '1773489599877' }, { recordedAtMs: NOW - 123 }],
    ['ISO 8601', { timestamp: '2026-03-14T11:00:00Z' }, { recordedAtMs: NOW - 3_600_000 }],
    ['ISO 8601 with a blank', { timestamp: '2026-03-14 11:00:00' }, { recordedAtMs: NOW - 3_600_000 }],
    ['heading for bearing', { heading: '90' }, { heading: 90 }],
    ['bearing before heading', { bearing: '45', heading: '90' }, { heading: 45 }],
    ['bearing unknown', { bearing: '-1.0' }, { heading: 0 }, ['heading']],
    ['speed unknown', { speed: '-1' }, { speedKmh: null }, ['speed_kmh']],
    ['speed no number', { speed: 'fast' }, { speedKmh: null }, ['speed_kmh']],
    ['speed in hex', { speed: '0x10' }, { speedKmh: null }, ['speed_kmh']],
    ['speed infinite', { speed: 'Infinity' }, { speedKmh: null }, ['speed_kmh']],
    ['speed too long to be finite', { speed: '9'.repeat(400) }, { speedKmh: null }, ['speed_kmh']],
    ['speed blank', { speed: '' }, { speedKmh: null }],
    ['altitude no number', { altitude: '1,5' }, { altitudeM: 0 }, ['altitude_m']],
    ['hdop and batt are not looked at', { hdop: 'x', batt: 'y' }, {}],
    ['valid', { valid: 'true' }, {}],
    ['valid in other words', { valid: '1' }, {}],
    ['valid blank', { valid: ' ' }, {}],
  ];
  for (const [name, changes, expected, ignored = []] of cases) {
    test(name, () => {
      const result = parseOsmand(params(changes), NOW, OLDEST);
      assert.ok(result.ok);
      assert.deepEqual({ ...result.value.fix, ...expected }, result.value.fix);
      assert.deepEqual(result.value.ignored, ignored);
    });
  }
});

describe('refused', () => {
  const at = (location: string) => ({ lat: undefined, lon: undefined, location });
  const cases: [name: string, changes: Record<string, string | undefined>, code: RejectionCode][] = [
    ['no id', { id: undefined }, 'INVALID_IMEI'],
    ['a blank id', { id: '  ' }, 'INVALID_IMEI'],
    ['an id of six digits', { id: '123456' }, 'INVALID_IMEI'],
    ['no lat', { lat: undefined }, 'INVALID_COORDINATES'],
    ['no lat, whatever location says', { lat: undefined, location: '1,2' }, 'INVALID_COORDINATES'],
    ['lat no number', { lat: '41,9' }, 'INVALID_COORDINATES'],
    ['lat in hex', { lat: '0x29' }, 'INVALID_COORDINATES'],
    ['lat out of range', { lat: '90.1' }, 'INVALID_COORDINATES'],
    ['no coordinates at all', { lat: undefined, lon: undefined }, 'INVALID_COORDINATES'],
    ['location of one number', at('41.9'), 'INVALID_COORDINATES'],
    ['location of three numbers', at('41.9,12.5,30'), 'INVALID_COORDINATES'],
    ['location with a gap', at(',12.5'), 'INVALID_COORDINATES'],
    ['the null island', { lat: '0.0', lon: '-0' }, 'INVALID_COORDINATES'],
    ['valid false', { valid: 'false' }, 'INVALID_COORDINATES'],
    ['valid False', { valid: 'False' }, 'INVALID_COORDINATES'],
    ['valid 0', { valid: '0' }, 'INVALID_COORDINATES'],
    ['a bad timestamp', { timestamp: 'now' }, 'INVALID_TIMESTAMP'],
    ['a timestamp in hex', { timestamp: '0x19' }, 'INVALID_TIMESTAMP'],
    ['a timestamp beyond numbers', { timestamp: '1e999' }, 'INVALID_TIMESTAMP'],
    ['seconds ahead', { timestamp: '1773490201' }, 'FUTURE_TIMESTAMP'],
    ['seconds of 1970', { timestamp: '0' }, 'TOO_OLD'],
    ['a negative timestamp', { timestamp: '-5' }, 'TOO_OLD'],
  ];
  for (const [name, changes, code] of cases) {
    test(`${name}: ${code}`, () => {
      const result = parseOsmand(params(changes), NOW, OLDEST);
      assert.equal(result.ok ? 'accepted' : result.error.code, code);
    });
  }
});

test('no parameters make it throw', () => {
  const name = fc.constantFrom(
    'id',
    'lat',
    'lon',
    'location',
    'timestamp',
    'speed',
    'bearing',
    'alarm',
    '__proto__',
  );
  fc.assert(
    fc.property(fc.dictionary(name, fc.string({ unit: anyCharacter })), (changes) => {
      parseOsmand(changes, NOW, OLDEST);
      parseOsmand({ ...PARAMS, ...changes }, NOW, OLDEST);
    }),
    { seed: 20_260_314, numRuns: runs(250) },
  );
});

test('a number is read in time that grows with its length', () => {
  // Tens of thousands of digits and a letter: backtracking would take seconds, and a minute for these.
  const long = `${'1'.repeat(200_000)}x`;
  const result = parseOsmand(
    params({ speed: long, altitude: `.${long}`, bearing: `${long}.${long}` }),
    NOW,
    OLDEST,
  );
  assert.deepEqual(result.ok && result.value.ignored, ['altitude_m', 'speed_kmh', 'heading']);
});
