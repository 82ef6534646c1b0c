import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Admin, adminOf } from '../support/admin.ts';
import { manualClock } from '../support/manualClock.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { waitFor } from '../support/waitFor.ts';

const VAN = '350000000000001';
const BUS = '350000000000002';
const SILENT = '350000000000003';
const OLD = '35000000000000'; // the 14 digits that older trackers send
const LONG = '35000000000000001';
const FOREIGN = '350000000000009';
const NOW_MS = Date.now();
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

describe('devices', () => {
  const clock = manualClock(NOW_MS);
  let admin: Admin;
  let pod: Pod;
  let key: string;

  before(async () => {
    const database = await createDatabase();
    admin = adminOf(database.url);
    await admin.account('owner@example.com');
    await admin.account('other@example.com');
    ({ key } = await admin.key('owner@example.com'));
    await admin.device(
      'owner@example.com',
      VAN,
      ...['--name', 'Van 12', '--plate', 'AB 123', '--model', 'FMB920', '--groups', 'north,vans'],
    );
    await admin.importDevices('owner@example.com', [
      { imei: SILENT },
      { imei: BUS },
      { imei: LONG },
      { imei: OLD },
    ]);
    await admin.device('other@example.com', FOREIGN);
    pod = await startPod(database.url, { clock });
    await pod.points([
      {
        imei: VAN,
        recorded_at: NOW_MS - MINUTE_MS,
        latitude: 41.9,
        longitude: 12.5,
        speed_kmh: 42.5,
        altitude_m: -21.5,
        odometer_km: 1234.5,
      },
      { imei: BUS, recorded_at: NOW_MS - MINUTE_MS, latitude: 41.91, longitude: 12.51 },
      { imei: FOREIGN, recorded_at: NOW_MS - MINUTE_MS, latitude: 41.9, longitude: 12.5 },
    ]);
  });

  after(() => pod.stop());

  const imeis = ({ body }: Reply): string[] => body.data.map((device: { imei: string }) => device.imei);

  for (const version of ['v2', 'v3']) {
    const get = (path: string): Promise<Reply> => pod.get(`/api/${version}/devices${path}`, key);

    describe(`${version} 200`, () => {
      test('a device shows every documented field', async () => {
        const { status, body } = await get(`/${VAN}`);
        assert.equal(status, 200);
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
            location: {
              latitude: 41.9,
              longitude: 12.5,
              speed_kmh: 42.5,
              recorded_at: new Date(NOW_MS - MINUTE_MS).toISOString(),
            },
            updated_at: body.data.updated_at,
          },
          meta: {},
        });
      });

      test('what is not known of a device is null, its status unknown', async () => {
        const { status, body } = await get(`/${SILENT}`);
        assert.equal(status, 200);
        const { updated_at, ...rest } = body.data;
        assert.equal(new Date(updated_at).toISOString(), updated_at);
        assert.deepEqual(rest, {
          id: SILENT,
          imei: SILENT,
          name: null,
          plate: null,
          device_model: null,
          odometer_km: null,
          status: 'unknown',
          groups: [],
          location: null,
        });
      });

      test('the latest location shows every documented field, and 0 for what was not sent', async () => {
        const van = await get(`/${VAN}/location`);
        assert.equal(van.status, 200);
        const recorded_at = new Date(NOW_MS - MINUTE_MS).toISOString();
        assert.deepEqual(van.body, {
          data: { latitude: 41.9, longitude: 12.5, altitude_m: -21.5, speed_kmh: 42.5, recorded_at },
          meta: {},
        });
        assert.deepEqual((await get(`/${BUS}/location`)).body.data, {
          latitude: 41.91,
          longitude: 12.51,
          altitude_m: 0,
          speed_kmh: 0,
          recorded_at,
        });
      });

      test('the list holds the own devices by IMEI as text, each as its detail shows it', async () => {
        const reply = await get('');
        assert.deepEqual(imeis(reply), [OLD, LONG, VAN, BUS, SILENT]);
        assert.deepEqual(reply.body.meta, { pagination: { limit: 50, offset: 0, count: 5 } });
        for (const device of reply.body.data)
          assert.deepEqual((await get(`/${device.imei}`)).body.data, device);
      });

      const pages: [query: string, limit: number, offset: number][] = [
        ['limit=2', 2, 0],
        ['limit=2&offset=3', 2, 3],
        ['limit=1&offset=4', 1, 4],
        ['limit=1&offset=5', 1, 5],
        ['limit=0', 1, 0],
        ['limit=-7', 1, 0],
        ['limit=201', 200, 0],
        ['limit=200', 200, 0],
        [`limit=${'9'.repeat(400)}`, 200, 0],
        [`limit=-${'9'.repeat(400)}`, 1, 0],
        ['limit=', 50, 0],
        ['limit=%20', 50, 0],
        ['limit=abc', 50, 0],
        ['limit=0x10', 50, 0],
        ['limit=1e2', 50, 0],
        ['limit=NaN', 50, 0],
        ['limit=Infinity', 50, 0],
        ['limit=2,5', 50, 0],
        ['limit=%D9%A2', 50, 0], // an Arabic-Indic 2
        ['limit=2.9', 2, 0],
        ['limit=002', 2, 0],
        ['limit=%2B2', 2, 0],
        ['limit=0.9', 1, 0],
        ['offset=', 50, 0],
        ['offset=-1', 50, 0],
        ['offset=-0.9', 50, 0],
        ['offset=abc', 50, 0],
        ['offset=1.9', 50, 1],
        ['offset=9007199254740993', 50, Number.MAX_SAFE_INTEGER],
        [`offset=${'9'.repeat(400)}`, 50, Number.MAX_SAFE_INTEGER],
      ];
      for (const [query, limit, offset] of pages) {
        test(`the list with ${query.slice(0, 40)} is the page of ${limit} from ${offset}`, async () => {
          const reply = await get(`?${query}`);
          const expected = [OLD, LONG, VAN, BUS, SILENT].slice(offset, offset + limit);
          assert.deepEqual(imeis(reply), expected);
          assert.deepEqual(reply.body.meta.pagination, { limit, offset, count: expected.length });
        });
      }
    });

    describe(`${version} 400`, () => {
      const cases: [segment: string, code: string][] = [
        ['3500000000000', 'BAD_REQUEST'],
        ['350000000000000012', 'BAD_REQUEST'],
        ['35000000000000a', 'BAD_REQUEST'],
        ['35000000000000%20', 'BAD_REQUEST'],
        ['%2035000000000000', 'BAD_REQUEST'],
        ['35000000000000%0A', 'BAD_REQUEST'],
        ['+35000000000000', 'BAD_REQUEST'],
        ['-35000000000000', 'BAD_REQUEST'],
        ['3500000000.0000', 'BAD_REQUEST'],
        ['35000000000000%00', 'BAD_REQUEST'],
        ['35000000000000%2F', 'BAD_REQUEST'],
        ['%EF%BC%93%EF%BC%955000000000000', 'BAD_REQUEST'], // full-width digits
        ['NEAREST', 'BAD_REQUEST'],
        ['null', 'BAD_REQUEST'],
        ['%20', 'IMEI_REQUIRED'],
        ['%09%20', 'IMEI_REQUIRED'],
      ];
      for (const [segment, code] of cases) {
        test(`/devices/${segment} and all below it: ${code}`, async () => {
          for (const below of ['', '/location', '/history', '/commands']) {
            const { status, body } = await get(`/${segment}${below}`);
            assert.deepEqual([status, body.error.code], [400, code], below);
          }
        });
      }

      test('an empty segment where the IMEI belongs: IMEI_REQUIRED', async () => {
        for (const below of ['location', 'history', 'commands']) {
          const { status, body } = await get(`//${below}`);
          assert.deepEqual([status, body.error.code], [400, 'IMEI_REQUIRED'], below);
        }
      });
    });

    describe(`${version} 404`, () => {
      test('a device that does not exist cannot be told from one of another owner, by body or header', async () => {
        for (const below of ['', '/location', '/history', '/commands']) {
          const foreign = await get(`/${FOREIGN}${below}`);
          const missing = await get(`/350000000000099${below}`);
          assert.deepEqual([foreign.status, foreign.body.error.code], [404, 'DEVICE_NOT_FOUND'], below);
          assert.deepEqual([missing.status, missing.text], [foreign.status, foreign.text], below);
          assert.deepEqual(headersOf(missing), headersOf(foreign), below);
          assert.doesNotMatch(foreign.text, /350000/);
        }
      });

      for (const imei of ['35000000000099', '350000000000099', '3500000000000099', '35000000000000099']) {
        test(`${imei.length} digits are an IMEI: it is looked up`, async () => {
          const { status, body } = await get(`/${imei}`);
          assert.deepEqual([status, body.error.code], [404, 'DEVICE_NOT_FOUND']);
        });
      }

      test('a device without a position has no location', async () => {
        const { status, body } = await get(`/${SILENT}/location`);
        assert.deepEqual([status, body.error.code], [404, 'LOCATION_NOT_FOUND']);
      });
    });
  }

  describe('status', () => {
    const cases: [speedKmh: number, ageMs: number, status: string][] = [
      [5, 0, 'moving'],
      [5, 10 * MINUTE_MS, 'moving'],
      [5, 10 * MINUTE_MS + 1, 'offline'],
      [130, 24 * HOUR_MS, 'offline'],
      [4.999, 0, 'parked'],
      [0, 10 * MINUTE_MS + 1, 'parked'],
      [0, 24 * HOUR_MS, 'parked'],
      [0, 24 * HOUR_MS + 1, 'offline'],
      [5, -10 * MINUTE_MS, 'moving'],
      [0, -10 * MINUTE_MS, 'parked'],
    ];
    for (const [n, [speedKmh, ageMs, status]] of cases.entries()) {
      test(`${speedKmh} km/h, ${ageMs} ms ago: ${status} in detail, list and nearest`, async () => {
        const sentAtMs = NOW_MS + (n + 1) * 100 * HOUR_MS;
        clock.set(sentAtMs);
        const recordedAtMs = sentAtMs - Math.min(ageMs, 0);
        await pod.points([
          { imei: BUS, recorded_at: recordedAtMs, latitude: 10, longitude: 10, speed_kmh: speedKmh },
        ]);
        clock.set(recordedAtMs + ageMs);
        const detail = await pod.get(`/api/v2/devices/${BUS}`, key);
        const list = await pod.get('/api/v3/devices?limit=1&offset=3', key);
        const nearest = await pod.get('/api/v2/devices/nearest?lat=10&lng=10', key);
        const seen = [detail.body.data, list.body.data[0], nearest.body.data[0]];
        assert.deepEqual(
          seen.map((device) => [device.imei, device.status]),
          [BUS, BUS, BUS].map((imei) => [imei, status]),
        );
      });
    }
  });

  describe('updated_at', () => {
    const updatedAt = async (): Promise<string> =>
      (await pod.get(`/api/v2/devices/${LONG}`, key)).body.data.updated_at;
    const point = (recorded_at: number) => ({ imei: LONG, recorded_at, latitude: 1, longitude: 1 });
    // Edits carry the database's time, so the server's clock of this test runs ahead of it.
    const start = NOW_MS + 5_000 * HOUR_MS;

    test('is the server time of the last point that moved the device; late and repeated points leave it alone', async () => {
      clock.set(start);
      await pod.points([point(start - 5 * MINUTE_MS)]);
      const moved = new Date(start).toISOString();
      assert.equal(await updatedAt(), moved);
      clock.set(start + MINUTE_MS);
      const summary = await pod.points([point(start - 5 * MINUTE_MS), point(start - 6 * MINUTE_MS)]);
      assert.deepEqual([summary.accepted, summary.late, summary.duplicates], [1, 1, 1]);
      assert.equal(await updatedAt(), moved);
    });

    test('is the time of the last edit when that is later', async () => {
      const before = (await pod.get(`/api/v2/devices/${SILENT}`, key)).body.data;
      await admin.importDevices('owner@example.com', [{ imei: SILENT, name: 'Trailer' }]);
      await waitFor(
        async () => (await pod.get(`/api/v2/devices/${SILENT}`, key)).body.data.name === 'Trailer',
      );
      const edited = (await pod.get(`/api/v2/devices/${SILENT}`, key)).body.data;
      assert.ok(Date.parse(edited.updated_at) > Date.parse(before.updated_at));
    });
  });
});

function headersOf({ headers }: Reply): [string, string][] {
  return [...headers].filter(([name]) => name !== 'date');
}
