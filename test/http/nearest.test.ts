import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import geodesic from 'geographiclib-geodesic';
import { adminOf } from '../support/admin.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const VAN = '350000000000001';
const BUS = '350000000000002';
const NOW_MS = Date.now();

describe('nearest', () => {
  let pod: Pod;
  let key: string;
  let devicesKey: string;
  let locationsKey: string;
  let strangerKey: string;

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    await admin.account('owner@example.com');
    await admin.account('stranger@example.com');
    ({ key } = await admin.key('owner@example.com'));
    ({ key: devicesKey } = await admin.key('owner@example.com', { scopes: 'read_devices' }));
    ({ key: locationsKey } = await admin.key('owner@example.com', { scopes: 'read_locations' }));
    ({ key: strangerKey } = await admin.key('stranger@example.com'));
    await admin.importDevices('owner@example.com', [
      { imei: VAN, name: 'Van 12', plate: 'AB 123', device_model: 'FMB920', groups: ['north'] },
      { imei: BUS },
      { imei: '350000000000003', name: 'never heard of' },
    ]);
    pod = await startPod(database.url);
    await pod.points([
      { imei: VAN, recorded_at: NOW_MS, latitude: 41.9, longitude: 12.5, speed_kmh: 42 },
      { imei: BUS, recorded_at: NOW_MS, latitude: 41.9, longitude: 12.6 },
    ]);
  });

  after(() => pod.stop());

  const imeis = ({ body }: Reply): string[] => body.data.map((item: { imei: string }) => item.imei);

  for (const version of ['v2', 'v3']) {
    const get = (query: string): Promise<Reply> => pod.get(`/api/${version}/devices/nearest?${query}`, key);
    const at = (query: string): Promise<Reply> => get(`lat=41.9&lng=12.5&${query}`);

    describe(`${version} 200`, () => {
      test('an item shows every documented field and no other', async () => {
        const { status, body } = await at('');
        assert.equal(status, 200);
        assert.deepEqual(body, {
          data: [
            {
              id: VAN,
              imei: VAN,
              name: 'Van 12',
              plate: 'AB 123',
              status: 'moving',
              location: {
                latitude: 41.9,
                longitude: 12.5,
                speed_kmh: 42,
                recorded_at: new Date(NOW_MS).toISOString(),
              },
              distance_km: 0,
            },
          ],
          meta: { query: { lat: 41.9, lng: 12.5, limit: 1, max_km: null }, distance: 'straight_line_km' },
        });
      });

      test('the distance is the geodesic one in kilometres; devices without a position are left out', async () => {
        const { body } = await at('limit=50');
        assert.deepEqual(
          body.data.map((item: { name: string | null }) => item.name),
          ['Van 12', null],
        );
        const km = (geodesic.Geodesic.WGS84.Inverse(41.9, 12.5, 41.9, 12.6).s12 ?? 0) / 1000;
        assert.ok(Math.abs(body.data[1].distance_km / km - 1) <= 1e-5);
      });

      const accepted: [query: string, limit: number, maxKm: number | null, found: string[]][] = [
        ['limit=2', 2, null, [VAN, BUS]],
        ['limit=0', 1, null, [VAN]],
        ['limit=-3', 1, null, [VAN]],
        ['limit=51', 50, null, [VAN, BUS]],
        [`limit=${'9'.repeat(400)}`, 50, null, [VAN, BUS]],
        ['limit=1.99', 1, null, [VAN]],
        ['limit=', 1, null, [VAN]],
        ['limit=x', 1, null, [VAN]],
        ['limit=5&max_km=', 5, null, [VAN, BUS]],
        ['limit=5&max_km=%20', 5, null, [VAN, BUS]],
        ['limit=5&max_km=8.2', 5, 8.2, [VAN]],
        ['limit=5&max_km=8.3', 5, 8.3, [VAN, BUS]],
        ['limit=5&max_km=0.000000001', 5, 1e-9, [VAN]],
        ['limit=5&max_km=20037', 5, 20_037, [VAN, BUS]],
        ['limit=5&max_km=20038', 5, 20_038, [VAN, BUS]],
        ['limit=5&max_km=1000000.5', 5, 1_000_000.5, [VAN, BUS]],
        [`limit=5&max_km=${'9'.repeat(300)}`, 5, Number('9'.repeat(300)), [VAN, BUS]],
      ];
      for (const [query, limit, maxKm, found] of accepted) {
        test(`${query.slice(0, 40)} is used as limit ${limit}, max_km ${maxKm}`, async () => {
          const reply = await at(query);
          assert.equal(reply.status, 200);
          assert.deepEqual(imeis(reply), found);
          assert.deepEqual(reply.body.meta, {
            query: { lat: 41.9, lng: 12.5, limit, max_km: maxKm },
            distance: 'straight_line_km',
          });
        });
      }

      test('a radius wider than half the circumference reaches the other side of the Earth', async () => {
        for (const maxKm of ['', 'max_km=20038', 'max_km=50000']) {
          assert.deepEqual(imeis(await get(`lat=-41.9&lng=-167.5&limit=5&${maxKm}`)).length, 2, maxKm);
        }
        assert.deepEqual((await get('lat=-41.9&lng=-167.5&limit=5&max_km=19000')).body.data, []);
      });

      for (const [query, lat, lng] of [
        ['lat=90&lng=180', 90, 180],
        ['lat=-90.000&lng=-180.0', -90, -180],
        ['lat=-0&lng=00.5', 0, 0.5],
        ['lat=.5&lng=5.', 0.5, 5],
        ['lat=%2B41.9&lng=12.5', 41.9, 12.5],
      ] as const) {
        test(`${query} are coordinates`, async () => {
          const { status, body } = await get(query);
          assert.equal(status, 200);
          assert.deepEqual([body.meta.query.lat, body.meta.query.lng], [lat, lng]);
          assert.equal(body.data.length, 1);
        });
      }

      test('an empty list when none is within max_km, and when no device has a position', async () => {
        const far = await get('lat=0&lng=0&max_km=1');
        assert.deepEqual([far.status, far.body.data], [200, []]);
        const none = await pod.get(`/api/${version}/devices/nearest?lat=41.9&lng=12.5`, strangerKey);
        assert.deepEqual([none.status, none.body.data], [200, []]);
      });

      test('either of its two permissions opens it', async () => {
        for (const either of [devicesKey, locationsKey]) {
          const { status, body } = await pod.get(`/api/${version}/devices/nearest?lat=41.9&lng=12.5`, either);
          assert.deepEqual([status, body.data[0].imei], [200, VAN]);
        }
      });
    });

    describe(`${version} 400`, () => {
      const refused: [query: string, code: string][] = [
        ['', 'COORDINATES_REQUIRED'],
        ['lat=41.9', 'COORDINATES_REQUIRED'],
        ['lng=12.5', 'COORDINATES_REQUIRED'],
        ['lat=&lng=12.5', 'COORDINATES_REQUIRED'],
        ['lat=41.9&lng=', 'COORDINATES_REQUIRED'],
        ['lat=%20&lng=12.5', 'COORDINATES_REQUIRED'],
        ['lat&lng', 'COORDINATES_REQUIRED'],
        ['Lat=41.9&Lng=12.5', 'COORDINATES_REQUIRED'],
        ['latitude=41.9&longitude=12.5', 'COORDINATES_REQUIRED'],
        ['lat=abc', 'COORDINATES_REQUIRED'],
        ['lat=99&max_km=-1', 'COORDINATES_REQUIRED'],
        ['lat=90.0000001&lng=0', 'INVALID_COORDINATES'],
        ['lat=-90.0000001&lng=0', 'INVALID_COORDINATES'],
        ['lat=0&lng=180.0000001', 'INVALID_COORDINATES'],
        ['lat=0&lng=-180.0000001', 'INVALID_COORDINATES'],
        ['lat=0&lng=360', 'INVALID_COORDINATES'],
        ['lat=abc&lng=12.5', 'INVALID_COORDINATES'],
        ['lat=41,9&lng=12.5', 'INVALID_COORDINATES'],
        ['lat=NaN&lng=12.5', 'INVALID_COORDINATES'],
        ['lat=Infinity&lng=12.5', 'INVALID_COORDINATES'],
        [`lat=${'9'.repeat(400)}&lng=12.5`, 'INVALID_COORDINATES'],
        ['lat=0x10&lng=12.5', 'INVALID_COORDINATES'],
        ['lat=1e1&lng=12.5', 'INVALID_COORDINATES'],
        ['lat=4%201&lng=12.5', 'INVALID_COORDINATES'],
        ['lat=%2041.9&lng=12.5', 'INVALID_COORDINATES'],
        ['lat=.&lng=12.5', 'INVALID_COORDINATES'],
        ['lat=--1&lng=12.5', 'INVALID_COORDINATES'],
        ['lat=41.9.0&lng=12.5', 'INVALID_COORDINATES'],
        ['lat=null&lng=12.5', 'INVALID_COORDINATES'],
        ['lat=41.9%00&lng=12.5', 'INVALID_COORDINATES'],
        ['lat=%D9%A4&lng=12.5', 'INVALID_COORDINATES'],
        ['lat=99&lng=12.5&max_km=-1', 'INVALID_COORDINATES'],
        ['lat=41.9&lng=12.5&max_km=0', 'BAD_REQUEST'],
        ['lat=41.9&lng=12.5&max_km=0.0', 'BAD_REQUEST'],
        ['lat=41.9&lng=12.5&max_km=-1', 'BAD_REQUEST'],
        ['lat=41.9&lng=12.5&max_km=abc', 'BAD_REQUEST'],
        ['lat=41.9&lng=12.5&max_km=Infinity', 'BAD_REQUEST'],
        [`lat=41.9&lng=12.5&max_km=${'9'.repeat(400)}`, 'BAD_REQUEST'],
        ['lat=41.9&lng=12.5&max_km=1e3', 'BAD_REQUEST'],
        ['lat=41.9&lat=41.9&lng=12.5', 'BAD_REQUEST'],
        ['lat[]=41.9&lat[]=1&lng=12.5', 'BAD_REQUEST'],
      ];
      for (const [query, code] of refused) {
        test(`${query.slice(0, 40)}: ${code}`, async () => {
          const { status, body } = await get(query);
          assert.deepEqual([status, body.error.code], [400, code]);
        });
      }
    });
  }
});
