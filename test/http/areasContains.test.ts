import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type AreaApi,
  type AreaPod,
  CIRCLE,
  gist,
  PLACE,
  POLYGON,
  startAreaPod,
  TRACK,
} from '../support/areas.ts';

const UNKNOWN_ID = Number.MAX_SAFE_INTEGER;

let house: AreaPod;
let api: AreaApi;
before(async () => {
  house = await startAreaPod();
  api = await house.newAccount();
});
after(() => house.pod.stop());

describe('contains', () => {
  test('200: inside is negative, outside positive, in metres from the edge', async () => {
    const id = await api.make({ ...CIRCLE, center: { lat: 0, lng: 0 }, radius_m: 1_000 });
    const inside = await api.contains(id, 0, 0);
    assert.deepEqual(inside.body, { data: { inside: true, distance_m: -1_000 }, meta: {} });
    // 0.01 degrees of longitude on the equator of WGS84
    const outside = (await api.contains(id, 0, 0.01)).body.data;
    assert.equal(outside.inside, false);
    assert.ok(Math.abs(outside.distance_m - (0.01 * (Math.PI / 180) * 6_378_137 - 1_000)) < 0.1);
  });

  test('200: the whole boundary belongs to the area, at distance 0', async () => {
    const id = await api.make(POLYGON);
    const boundary: [lat: number, lng: number][] = [
      ...POLYGON.points.map(({ lat, lng }): [number, number] => [lat, lng]),
      [41.9, 12.45],
      [42, 12.45],
      [41.95, 12.4],
      [41.95, 12.5],
    ];
    for (const [lat, lng] of boundary) {
      assert.deepEqual(
        (await api.contains(id, lat, lng)).body.data,
        { inside: true, distance_m: 0 },
        `${lat} ${lng}`,
      );
    }
    for (const [lat, lng] of [
      [41.8999999999, 12.45],
      [42.0000000001, 12.45],
      [41.95, 12.3999999999],
      [41.95, 12.5000000001],
    ] as const) {
      const { inside, distance_m } = (await api.contains(id, lat, lng)).body.data;
      assert.ok(!inside && distance_m > 0 && distance_m < 0.001, `${lat} ${lng}: ${distance_m}`);
    }
  });

  test('200: places and tracks reach as far as their radius and margin', async () => {
    const place = await api.make({ ...PLACE, center: { lat: 0, lng: 0 } });
    const track = await api.make({
      ...TRACK,
      points: [
        { lat: 0, lng: 0 },
        { lat: 0, lng: 1 },
      ],
      buffer_m: 100,
    });
    const atM = (metres: number): number => metres / ((Math.PI / 180) * 6_335_439.327); // north along the meridian
    const seen = async (id: number, metres: number, lng: number): Promise<[boolean, number]> => {
      const { inside, distance_m } = (await api.contains(id, atM(metres), lng)).body.data;
      return [inside, Math.round(distance_m * 100) / 100];
    };
    assert.deepEqual(await seen(place, 40, 0), [true, -10]);
    assert.deepEqual(await seen(place, 60, 0), [false, 10]);
    assert.deepEqual(await seen(track, 90, 0.5), [true, -10]);
    assert.deepEqual(await seen(track, 110, 0.5), [false, 10]);
    assert.deepEqual(await seen(track, 0, 0.5), [true, -100]);
  });

  test('200: numbers in any decimal notation, up to the ends of their ranges', async () => {
    const id = await api.make(CIRCLE);
    for (const query of [
      'lat=90&lng=180',
      'lat=-90&lng=-180',
      'lat=%2B41.9&lng=12.',
      'lat=.5&lng=-0',
      'lat=041.90&lng=12.5&x=y',
      'lng=1&lat=2',
    ])
      assert.equal((await api.get(`/${id}/contains?${query}`)).status, 200, query);
  });

  const bad = [
    '',
    'lat=1',
    'lng=1',
    'lat=&lng=1',
    'lat=1&lng=',
    'lat=%20&lng=1',
    'lat=abc&lng=1',
    'lat=1&lng=abc',
    'lat=90.0001&lng=1',
    'lat=-91&lng=1',
    'lat=1&lng=180.0001',
    'lat=1&lng=-181',
    'lat=NaN&lng=1',
    'lat=Infinity&lng=1',
    'lat=1e1&lng=1',
    'lat=0x1&lng=1',
    'lat=1,5&lng=1',
    'lat=1&lat=1&lng=1',
    'LAT=1&LNG=1',
    'latitude=1&longitude=1',
  ];
  for (const query of bad) {
    test(`400: ${query === '' ? 'no parameters' : query}, also where there is no such area`, async () => {
      const id = await api.make(PLACE);
      for (const target of [id, UNKNOWN_ID])
        assert.equal(gist(await api.get(`/${target}/contains?${query}`)), '400 BAD_REQUEST');
    });
  }
});
