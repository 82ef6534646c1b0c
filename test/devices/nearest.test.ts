import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { readBothVersions } from '../support/http/readBothVersions.ts';
import { ownerPod } from '../support/ownerPod.ts';
import type { Reply } from '../support/pod.ts';

const VAN = '350000000000001';
const BUS = '350000000000002';
const NOW_MS = Date.now();

describe('GET /devices/nearest', () => {
  const owner = ownerPod({
    devices: [
      { imei: VAN, name: 'Van 12', plate: 'AB 123', device_model: 'FMB920', groups: ['north'] },
      { imei: BUS },
      { imei: '350000000000003', name: 'without a position' },
    ],
  });
  const { pod, admin } = owner;
  let strangerKey: string;
  before(async () => {
    await admin.account('stranger@example.com');
    ({ key: strangerKey } = await admin.key('stranger@example.com'));
    const point = { recorded_at: NOW_MS, latitude: 41.9 };
    await pod.points([
      { ...point, imei: VAN, longitude: 12.5, speed_kmh: 42 },
      { ...point, imei: BUS, longitude: 12.6 },
    ]);
  });

  const get = (query: string, reader = owner.key): Promise<Reply> =>
    readBothVersions(pod, `/devices/nearest?${query}`, reader);
  const imeisOf = ({ body }: Reply): string[] => body.data.map((item: { imei: string }) => item.imei);

  test('shows every documented field of an item, and no other', async () => {
    const recorded_at = new Date(NOW_MS).toISOString();
    const location = { latitude: 41.9, longitude: 12.5, speed_kmh: 42, recorded_at };
    const own = { id: VAN, imei: VAN, name: 'Van 12', plate: 'AB 123', status: 'moving', location };
    assert.deepEqual((await get('lat=41.9&lng=12.5')).body, {
      data: [{ ...own, distance_km: 0 }],
      meta: { query: { lat: 41.9, lng: 12.5, limit: 1, max_km: null }, distance: 'straight_line_km' },
    });
  });

  // The bus is 8.297 km away; a third device has no position and is never found.
  const accepted: [query: string, limit: number, maxKm: number | null, found: string[]][] = [
    ['limit=2', 2, null, [VAN, BUS]],
    ['limit=0', 1, null, [VAN]],
    ['limit=51', 50, null, [VAN, BUS]],
    ['limit=x', 1, null, [VAN]],
    ['limit=5&max_km=%20', 5, null, [VAN, BUS]],
    ['limit=5&max_km=8.2', 5, 8.2, [VAN]],
    ['limit=5&max_km=8.3', 5, 8.3, [VAN, BUS]],
    ['limit=5&max_km=0.000000001', 5, 1e-9, [VAN]],
    ['limit=5&max_km=1000000.5', 5, 1_000_000.5, [VAN, BUS]],
    [`limit=5&max_km=${'9'.repeat(300)}`, 5, Number('9'.repeat(300)), [VAN, BUS]],
  ];
  for (const [query, limit, max_km, found] of accepted) {
    test(`finds ${found.length} for ${query.slice(0, 40)}`, async () => {
      const reply = await get(`lat=41.9&lng=12.5&${query}`);
      assert.deepEqual(imeisOf(reply), found);
      assert.deepEqual(reply.body.meta.query, { lat: 41.9, lng: 12.5, limit, max_km });
    });
  }

  test('reaches the other side of the Earth with a radius of more than half the circumference', async () => {
    for (const maxKm of ['', 'max_km=20038', 'max_km=50000'])
      assert.equal((await get(`lat=-41.9&lng=-167.5&limit=5&${maxKm}`)).body.data.length, 2, maxKm);
    assert.deepEqual((await get('lat=-41.9&lng=-167.5&limit=5&max_km=19000')).body.data, []);
  });

  test('is empty when no device is within max_km, and when none has a position', async () => {
    assert.deepEqual((await get('lat=0&lng=0&max_km=1')).body.data, []);
    assert.deepEqual((await get('lat=41.9&lng=12.5', strangerKey)).body.data, []);
  });

  const rejected: Record<string, readonly string[]> = {
    COORDINATES_REQUIRED: [
      ...['', 'lat=41.9', 'lng=12.5', 'lat=&lng=12.5', 'lat=41.9&lng=%20', 'lat&lng', 'Lat=41.9&Lng=12.5'],
      ...['latitude=41.9&longitude=12.5', 'lat=99&max_km=-1'],
    ],
    INVALID_COORDINATES: [
      ...['lat=90.0000001&lng=0', 'lat=-90.0000001&lng=0', 'lat=0&lng=180.0000001', 'lat=0&lng=-180.0000001'],
      ...['lat=abc&lng=12.5', 'lat=41,9&lng=12.5', 'lat=NaN&lng=12.5', `lat=${'9'.repeat(400)}&lng=12.5`],
      ...['lat=1e1&lng=12.5', 'lat=%2041.9&lng=12.5', 'lat=41.9%00&lng=12.5', 'lat=99&lng=12.5&max_km=-1'],
    ],
    BAD_REQUEST: [
      ...['0', '-1', 'abc', 'Infinity', '9'.repeat(400), '1e3'].map((km) => `lat=41.9&lng=12.5&max_km=${km}`),
      'lat=41.9&lat=41.9&lng=12.5',
    ],
  };
  for (const [code, queries] of Object.entries(rejected)) {
    test(`answers 400 ${code} to ${queries.length} queries such as ${queries[1]}`, async () => {
      for (const query of queries) {
        const { status, body } = await get(query);
        assert.deepEqual([status, body.error.code], [400, code], query);
      }
    });
  }
});
