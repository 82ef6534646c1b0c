import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MINUTE_MS } from '../../src/lib/time.ts';
import { faceOf } from '../support/http/application.ts';
import { readBothVersions } from '../support/http/readBothVersions.ts';
import { manualClock } from '../support/manualClock.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import type { Reply } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';

const VAN = '350000000000001';
const BUS = '350000000000002';
const SILENT = '350000000000003';
const OLD = '35000000000000'; // the 14 digits that older trackers send
const LONG = '35000000000000001';
const FOREIGN = '350000000000009';
const IMEIS = [OLD, LONG, VAN, BUS, SILENT]; // in the order of the list
const BELOW = ['', '/location', '/history', '/commands'];
const NOW_MS = Date.now();
const HOUR_MS = 60 * MINUTE_MS;

const clock = manualClock(NOW_MS);
const devices = [
  { imei: VAN, name: 'Van 12', plate: 'AB 123', device_model: 'FMB920', groups: ['north', 'vans'] },
  ...[SILENT, BUS, LONG, OLD].map((imei) => ({ imei })),
];
const owner = ownerPod({ clock, devices }, async ({ pod, admin }) => {
  await admin.account('other@example.com');
  await admin.device('other@example.com', FOREIGN);
  const point = { recorded_at: NOW_MS - MINUTE_MS, latitude: 41.9, longitude: 12.5 };
  await pod.points([
    { ...point, imei: VAN, speed_kmh: 42.5, altitude_m: -21.5, odometer_km: 1234.5 },
    { ...point, imei: BUS },
    { ...point, imei: FOREIGN },
  ]);
});

const { pod, admin } = owner;
const get = (path: string): Promise<Reply> => readBothVersions(pod, `/devices${path}`, owner.key);
const imeisOf = ({ body }: Reply): string[] => body.data.map(({ imei }: { imei: string }) => imei);
const outcome = ({ status, body }: Reply): string => `${status} ${body.error.code}`;

describe('GET /devices/{imei}', () => {
  test('shows every documented field', async () => {
    const { body } = await get(`/${VAN}`);
    const recorded_at = new Date(NOW_MS - MINUTE_MS).toISOString();
    assert.deepEqual(body, {
      data: {
        id: VAN,
        imei: VAN,
        name: 'Van 12',
        plate: 'AB 123',
        device_model: 'FMB920',
        odometer_km: 1234.5,
        status: 'moving',
        groups: ['north', 'vans'],
        location: { latitude: 41.9, longitude: 12.5, speed_kmh: 42.5, recorded_at },
        updated_at: body.data.updated_at,
      },
      meta: {},
    });
  });

  test('shows null for what is not known, and the status unknown', async () => {
    const { updated_at, ...rest } = (await get(`/${SILENT}`)).body.data;
    assert.equal(new Date(updated_at).toISOString(), updated_at);
    const texts = { name: null, plate: null, device_model: null };
    const unknown = { odometer_km: null, status: 'unknown', groups: [], location: null };
    assert.deepEqual(rest, { id: SILENT, imei: SILENT, ...texts, ...unknown });
  });

  // The rule is a table in test/devices/deviceJson.test.ts.
  for (const [n, [speedKmh, ageMs, status]] of [
    [5, 10 * MINUTE_MS, 'moving'],
    [5, 10 * MINUTE_MS + 1, 'offline'],
    [4.999, 24 * HOUR_MS, 'parked'],
  ].entries() as ArrayIterator<[number, [number, number, string]]>) {
    test(`shows the status ${status} of ${speedKmh} km/h ${ageMs} ms ago, as list and nearest do`, async () => {
      const recordedAtMs = NOW_MS + (n + 1) * 100 * HOUR_MS;
      clock.set(recordedAtMs);
      const place = { latitude: 10, longitude: 10 };
      await pod.points([{ imei: BUS, recorded_at: recordedAtMs, ...place, speed_kmh: speedKmh }]);
      clock.set(recordedAtMs + ageMs);
      const [listed] = (await get(`?limit=1&offset=${IMEIS.indexOf(BUS)}`)).body.data;
      const [nearest] = (await get('/nearest?lat=10&lng=10')).body.data;
      for (const device of [(await get(`/${BUS}`)).body.data, listed, nearest])
        assert.deepEqual([device.imei, device.status], [BUS, status]);
    });
  }
});

describe('GET /devices/{imei}/location', () => {
  test('shows every documented field, and 0 for what was not sent', async () => {
    const place = {
      latitude: 41.9,
      longitude: 12.5,
      recorded_at: new Date(NOW_MS - MINUTE_MS).toISOString(),
    };
    assert.deepEqual((await get(`/${VAN}/location`)).body, {
      data: { ...place, altitude_m: -21.5, speed_kmh: 42.5 },
      meta: {},
    });
    const foreign = await admin.key('other@example.com');
    const { body } = await readBothVersions(pod, `/devices/${FOREIGN}/location`, foreign.key);
    assert.deepEqual(body.data, { ...place, altitude_m: 0, speed_kmh: 0 });
  });

  test('is LOCATION_NOT_FOUND for a device that has not reported', async () => {
    assert.equal(outcome(await get(`/${SILENT}/location`)), '404 LOCATION_NOT_FOUND');
  });
});

describe('GET /devices', () => {
  test('lists the devices by IMEI as text, each as its detail shows it', async () => {
    const reply = await get('');
    assert.deepEqual(imeisOf(reply), IMEIS);
    assert.deepEqual(reply.body.meta, { pagination: { limit: 50, offset: 0, count: 5 } });
    for (const device of reply.body.data) assert.deepEqual((await get(`/${device.imei}`)).body.data, device);
  });

  test('gives the page that is asked for', async () => {
    const reply = await get('?limit=2&offset=2');
    assert.deepEqual(imeisOf(reply), IMEIS.slice(2, 4));
    assert.deepEqual(reply.body.meta.pagination, { limit: 2, offset: 2, count: 2 });
  });
});

describe('an IMEI in a path', () => {
  for (const [segment, code] of [
    ['3500000000000', 'BAD_REQUEST'],
    ['35000000000000%0A', 'BAD_REQUEST'],
    ['NEAREST', 'BAD_REQUEST'],
    ['%09%20', 'IMEI_REQUIRED'],
    ['', 'IMEI_REQUIRED'],
  ] as const) {
    test(`is refused with 400 ${code} when it is "${segment}", on every route`, async () => {
      for (const below of segment === '' ? BELOW.slice(1) : BELOW)
        assert.equal(outcome(await get(`/${segment}${below}`)), `400 ${code}`, below);
    });
  }

  test('of another owner is answered with the same 404 as one that nobody has, on every route', async () => {
    for (const below of BELOW) {
      const foreign = await get(`/${FOREIGN}${below}`);
      assert.equal(outcome(foreign), '404 DEVICE_NOT_FOUND', below);
      assert.deepEqual(faceOf(await get(`/350000000000099${below}`)), faceOf(foreign));
      assert.doesNotMatch(foreign.text, /350000/);
    }
  });
});

describe('updated_at', () => {
  const updatedAt = async (imei: string): Promise<string> => (await get(`/${imei}`)).body.data.updated_at;
  const point = (recorded_at: number) => ({ imei: LONG, recorded_at, latitude: 1, longitude: 1 });

  test('is the server time of the last point that moved the device, not of late or repeated ones', async () => {
    // Edits have the time of the database, so the clock of this test runs ahead of it.
    const startMs = NOW_MS + 5_000 * HOUR_MS;
    clock.set(startMs);
    await pod.points([point(startMs - 5 * MINUTE_MS)]);
    const moved = new Date(startMs).toISOString();
    assert.equal(await updatedAt(LONG), moved);
    clock.set(startMs + MINUTE_MS);
    const summary = await pod.points([point(startMs - 5 * MINUTE_MS), point(startMs - 6 * MINUTE_MS)]);
    assert.deepEqual([summary.accepted, summary.late, summary.duplicates], [1, 1, 1]);
    assert.equal(await updatedAt(LONG), moved);
  });

  test('is the time of the last edit when that is later', async () => {
    const before = await updatedAt(SILENT);
    await admin.importDevices(OWNER, [{ imei: SILENT, name: 'Trailer' }]);
    await waitFor(async () => (await get(`/${SILENT}`)).body.data.name === 'Trailer');
    assert.ok(Date.parse(await updatedAt(SILENT)) > Date.parse(before));
  });
});
