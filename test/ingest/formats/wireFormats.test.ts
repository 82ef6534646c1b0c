import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Fix } from '../../../src/ingest/fix.ts';
import { type OsmandParams, parseOsmand, parseOsmandJson } from '../../../src/ingest/formats/parseOsmand.ts';
import type { ParsedPoint, Rejection, RejectionCode } from '../../../src/ingest/formats/parsePoint.ts';
import { parseTraccar } from '../../../src/ingest/formats/parseTraccar.ts';
import type { Result } from '../../../src/lib/result.ts';
import { anyCharacter } from '../../support/http/anyCharacter.ts';
import { fixOf } from '../../support/ingest/fixOf.ts';
import { runs } from '../../support/torture.ts';

const NOW = Date.UTC(2026, 2, 14, 12);
const OLDEST = NOW - 730 * 86_400_000;
const IMEI = '352093081234501';
const PLACE = { lat: 41.9028, lng: 12.4964, altitudeM: 37.5, heading: 271.5 };

type Parsed = Result<ParsedPoint, Rejection>;
/** What is sent, what becomes of it, and which of its fields are ignored. */
type Read<Sent> = [name: string, sent: Sent, expected: Partial<Fix>, ignored?: string[]];
type Refused<Sent> = [name: string, sent: Sent, code: RejectionCode];

function formatTests<Sent>(
  parse: (sent: Sent) => Parsed,
  read: readonly Read<Sent>[],
  refused: readonly Refused<Sent>[],
): void {
  for (const [name, sent, expected, ignored = []] of read) {
    test(`read: ${name}`, () => {
      const result = parse(sent);
      assert.ok(result.ok);
      assert.deepEqual({ ...result.value.fix, ...expected }, result.value.fix);
      assert.deepEqual(result.value.ignored, ignored);
    });
  }
  for (const [name, sent, code] of refused) {
    test(`refused: ${name}: ${code}`, () => {
      const result = parse(sent);
      assert.equal(result.ok ? 'accepted' : result.error.code, code);
    });
  }
}

describe('the parameters of a phone', () => {
  type Changes = Record<string, string | undefined>;
  const PARAMS: OsmandParams = { id: IMEI, lat: '41.9028', lon: '12.4964' };
  /** The parameters of PARAMS with others on top; undefined takes one away. */
  const parse = (changes: Changes): Parsed => {
    const all = Object.entries({ ...PARAMS, ...changes });
    const params = Object.fromEntries(
      all.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    );
    return parseOsmand(params, NOW, OLDEST);
  };
  const at = (location: string) => ({ lat: undefined, lon: undefined, location });

  test('become a fix: knots to km/h, seconds to milliseconds', () => {
    const query =
      `id=${IMEI}&timestamp=1773489570&lat=41.9028&lon=12.4964&speed=10&bearing=271.5&altitude=37.5` +
      '&hdop=0.8&accuracy=12&batt=97.0&driverUniqueId=04A1B2C3&alarm=sos';
    const result = parseOsmand(Object.fromEntries(new URLSearchParams(query)), NOW, OLDEST);
    const values = { ...PLACE, speedKmh: 18.52, alarms: ['sos'], rfid: '04A1B2C3' };
    assert.deepEqual(result.ok && result.value, { fix: fixOf(IMEI, NOW - 30_000, values), ignored: [] });
  });

  const other = '352093081234502';
  formatTests<Changes>(
    parse,
    [
      ['deviceid beside a blank id', { id: ' ', deviceid: other }, { imei: other }],
      ['id before deviceid', { deviceid: other }, { imei: IMEI }],
      ['location with blanks', at(' 41.5 , -12.5 '), { lat: 41.5, lng: -12.5 }],
      ['location beside blank lat and lon', { lat: '', lon: '', location: '1,2' }, { lat: 1, lng: 2 }],
      ['lat and lon before location', { location: '1,2' }, { lat: 41.9028, lng: 12.4964 }],
      ['a sign and bare points', { lat: '+.5', lon: '-12.' }, { lat: 0.5, lng: -12 }],
      ['an exponent, as Java prints it', { lat: '4.5E-4', lon: '-1.0E-5' }, { lat: 0.00045, lng: -0.00001 }],
      ['no timestamp', {}, { recordedAtMs: NOW }],
      ['a blank timestamp', { timestamp: ' ' }, { recordedAtMs: NOW }],
      ['seconds with a fraction', { timestamp: '1773489599.123' }, { recordedAtMs: NOW - 877 }],
      ['milliseconds', { timestamp: '1773489599877' }, { recordedAtMs: NOW - 123 }],
      ['ISO 8601', { timestamp: '2026-03-14T11:00:00Z' }, { recordedAtMs: NOW - 3_600_000 }],
      ['ISO 8601 with a blank', { timestamp: '2026-03-14 11:00:00' }, { recordedAtMs: NOW - 3_600_000 }],
      ['heading for bearing', { heading: '90' }, { heading: 90 }],
      ['bearing before heading', { bearing: '45', heading: '90' }, { heading: 45 }],
      ['bearing unknown', { bearing: '-1.0' }, { heading: 0 }, ['heading']],
      ['speed unknown', { speed: '-1' }, { speedKmh: null }, ['speed_kmh']],
      ['speed in hex', { speed: '0x10' }, { speedKmh: null }, ['speed_kmh']],
      ['speed too long to be finite', { speed: '9'.repeat(400) }, { speedKmh: null }, ['speed_kmh']],
      ['speed blank', { speed: '' }, { speedKmh: null }],
      ['altitude no number', { altitude: '1,5' }, { altitudeM: 0 }, ['altitude_m']],
      ['hdop and batt are not looked at', { hdop: 'x', batt: 'y' }, {}],
      ['valid in other words', { valid: '1' }, {}],
    ],
    [
      ['no id', { id: undefined }, 'INVALID_IMEI'],
      ['no lat, whatever location says', { lat: undefined, location: '1,2' }, 'INVALID_COORDINATES'],
      ['lat no number', { lat: '41,9' }, 'INVALID_COORDINATES'],
      ['lat in hex', { lat: '0x29' }, 'INVALID_COORDINATES'],
      ['no coordinates at all', { lat: undefined, lon: undefined }, 'INVALID_COORDINATES'],
      ['location of one number', at('41.9'), 'INVALID_COORDINATES'],
      ['location of three numbers', at('41.9,12.5,30'), 'INVALID_COORDINATES'],
      ['location with a gap', at(',12.5'), 'INVALID_COORDINATES'],
      ['the null island', { lat: '0.0', lon: '-0' }, 'INVALID_COORDINATES'],
      ['valid False', { valid: 'False' }, 'INVALID_COORDINATES'],
      ['valid 0', { valid: '0' }, 'INVALID_COORDINATES'],
      ['a timestamp in hex', { timestamp: '0x19' }, 'INVALID_TIMESTAMP'],
      ['a timestamp beyond numbers', { timestamp: '1e999' }, 'INVALID_TIMESTAMP'],
      ['seconds ahead', { timestamp: '1773490201' }, 'FUTURE_TIMESTAMP'],
      ['seconds of 1970', { timestamp: '0' }, 'TOO_OLD'],
    ],
  );

  test('are read in time that grows with their length', () => {
    // Tens of thousands of digits and a letter: backtracking would take seconds, and a minute for these.
    const long = `${'1'.repeat(200_000)}x`;
    const result = parse({ speed: long, altitude: `.${long}`, bearing: `${long}.${long}` });
    assert.deepEqual(result.ok && result.value.ignored, ['altitude_m', 'speed_kmh', 'heading']);
  });
});

describe('the JSON of a phone', () => {
  const COORDS = {
    latitude: 41.9028,
    longitude: 12.4964,
    accuracy: 4.3,
    speed: 10,
    heading: 271.5,
    altitude: 37.5,
  };
  const LOCATION = {
    ...{ timestamp: '2026-03-14T11:59:30.250Z', coords: COORDS, is_moving: true, odometer: 1_234 },
    ...{ battery: { level: 0.88 }, activity: { type: 'in_vehicle' }, extras: {}, _: '&id=1&lat=1&lon=1&' },
  };
  const body = (location: object = {}, coords: object = {}) => ({
    location: { ...LOCATION, coords: { ...COORDS, ...coords }, ...location },
    device_id: IMEI,
  });

  test('becomes a fix: metres per second to km/h', () => {
    const result = parseOsmandJson(body(), NOW, OLDEST);
    const fix = fixOf(IMEI, NOW - 29_750, { ...PLACE, speedKmh: 36 });
    assert.deepEqual(result.ok && result.value, { fix, ignored: [] });
  });

  const unknown = { speedKmh: null, heading: 0 };
  formatTests<unknown>(
    (sent) => parseOsmandJson(sent, NOW, OLDEST),
    [
      ['speed and heading unknown', body({}, { speed: -1, heading: -1 }), unknown, ['speed_kmh', 'heading']],
      ['speed and heading missing', body({}, { speed: undefined, heading: null }), unknown],
      ['speed as text', body({}, { speed: '10' }), { speedKmh: null }, ['speed_kmh']],
      ['no timestamp', body({ timestamp: undefined }), { recordedAtMs: NOW }],
      ['an alarm', body({ alarm: 'sos' }), { alarms: ['sos'] }],
      ['an alarm among the extras', body({ alarm: 'fall', extras: { alarm: 'sos' } }), { alarms: ['sos'] }],
    ],
    [
      ['null', null, 'INVALID_BODY'],
      ['no location', { device_id: IMEI }, 'INVALID_BODY'],
      ['several locations', { ...body(), location: [LOCATION] }, 'INVALID_BODY'],
      ['no device', { location: LOCATION }, 'INVALID_IMEI'],
      ['no coords', body({ coords: undefined }), 'INVALID_COORDINATES'],
      ['coords as text', body({}, { latitude: '41.9' }), 'INVALID_COORDINATES'],
      ['a bad timestamp', body({ timestamp: 'now' }), 'INVALID_TIMESTAMP'],
    ],
  );
});

describe('a position that Traccar forwards', () => {
  const ATTRIBUTES = {
    ...{ sat: 9, ignition: true, alarm: 'tampering,lowBattery', batteryLevel: 97 },
    ...{ odometer: 120_345_678, totalDistance: 999_000.5, driverUniqueId: '04A1B2C3' },
  };
  const FIX_TIME = '2026-03-14T11:59:30.000+00:00';
  const POSITION = {
    ...{ id: 71, protocol: 'teltonika', deviceTime: FIX_TIME, fixTime: FIX_TIME, valid: true, address: null },
    ...{ latitude: 41.9028, longitude: 12.4964, altitude: 37.5, speed: 10, course: 271.5, accuracy: 0 },
  };
  const DEVICE = { id: 3, name: 'Van 12', uniqueId: IMEI, status: 'online' };
  const body = (position: object = {}, attributes: object = {}, device: unknown = DEVICE) => ({
    position: { ...POSITION, ...position, attributes: { ...ATTRIBUTES, ...attributes } },
    device,
  });

  test('becomes a fix: knots to km/h, metres to km', () => {
    const result = parseTraccar(body(), NOW, OLDEST);
    const values = {
      speedKmh: 18.52,
      satellites: 9,
      odometerKm: 120_345.678,
      ignition: true,
      rfid: '04A1B2C3',
    };
    const fix = fixOf(IMEI, NOW - 30_000, { ...PLACE, ...values, alarms: ['tampering', 'lowBattery'] });
    assert.deepEqual(result.ok && result.value, { fix, ignored: [] });
  });

  const bare = { position: { ...POSITION }, device: DEVICE };
  const nothing = { satellites: 0, odometerKm: null, ignition: null, alarms: [], rfid: null };
  formatTests<unknown>(
    (sent) => parseTraccar(sent, NOW, OLDEST),
    [
      [
        'fixTime with +0000',
        body({ fixTime: '2026-03-14T11:59:30.000+0000' }),
        { recordedAtMs: NOW - 30_000 },
      ],
      ['fixTime with Z', body({ fixTime: '2026-03-14T11:59:30.250Z' }), { recordedAtMs: NOW - 29_750 }],
      ['fixTime in another zone', body({ fixTime: '2026-03-14T13:00:00.000+0100' }), { recordedAtMs: NOW }],
      ['fixTime in milliseconds', body({ fixTime: NOW }), { recordedAtMs: NOW }],
      ['deviceTime after it', body({ deviceTime: NOW }), { recordedAtMs: NOW - 30_000, sentAtMs: NOW }],
      ['valid missing', body({ valid: undefined }), { lat: 41.9028 }],
      ['no attributes', bare, nothing],
      ['attributes null', { ...bare, position: { ...POSITION, attributes: null } }, nothing],
      ['the odometer null', body({}, { odometer: null }), { odometerKm: 999.0005 }],
      ['neither distance', body({}, { odometer: undefined, totalDistance: undefined }), { odometerKm: null }],
      ['course unknown', body({ course: -1 }), { heading: 0 }, ['heading']],
      ['speed unknown', body({ speed: -1 }), { speedKmh: null }, ['speed_kmh']],
      ['speed as text', body({ speed: '10' }), { speedKmh: null }, ['speed_kmh']],
      ['ignition as text', body({}, { ignition: 'on' }), { ignition: null }, ['ignition']],
    ],
    [
      ['null', null, 'INVALID_BODY'],
      ['text', 'position', 'INVALID_BODY'],
      ['no position', { device: DEVICE }, 'INVALID_BODY'],
      ['position null', { position: null, device: DEVICE }, 'INVALID_BODY'],
      ['no device', { position: POSITION }, 'INVALID_IMEI'],
      ['uniqueId a name', body({}, {}, { uniqueId: 'van-12' }), 'INVALID_IMEI'],
      ['valid false', body({ valid: false }), 'INVALID_COORDINATES'],
      ['no latitude', body({ latitude: undefined }), 'INVALID_COORDINATES'],
      ['no fixTime', body({ fixTime: undefined }), 'INVALID_TIMESTAMP'],
      ['a bad fixTime', body({ fixTime: '2026-03-14T11:59:30.000+0000Z' }), 'INVALID_TIMESTAMP'],
      ['fixTime ahead', body({ fixTime: '2026-03-14T12:10:00.001+0000' }), 'FUTURE_TIMESTAMP'],
      ['fixTime of 1970', body({ fixTime: '1970-01-01T00:00:00.000+00:00' }), 'TOO_OLD'],
    ],
  );
});

test('nothing that is sent makes them throw', () => {
  const part = fc.anything({ withNullPrototype: true });
  const location = fc.record({ coords: part, extras: part });
  const body = fc.oneof(
    part,
    fc.record({ location: fc.oneof(part, location), device_id: part }),
    fc.record({ position: part, device: part }),
  );
  const name = fc.constantFrom('id', 'lat', 'lon', 'location', 'timestamp', 'speed', 'alarm', '__proto__');
  const params = fc.dictionary(name, fc.string({ unit: anyCharacter }));
  fc.assert(
    fc.property(body, params, (value, changes) => {
      parseOsmandJson(value, NOW, OLDEST);
      parseTraccar(value, NOW, OLDEST);
      parseOsmand(changes, NOW, OLDEST);
      parseOsmand({ id: IMEI, lat: '1', lon: '1', ...changes }, NOW, OLDEST);
    }),
    { seed: 20_260_314, numRuns: runs(250) },
  );
});
