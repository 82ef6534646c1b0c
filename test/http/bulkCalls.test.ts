import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Pod, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { runs } from '../support/torture.ts';

const SEED = Number(process.env['FLEET_SEED'] ?? 7);
const POINTS = runs(10);
const DEVICES = 60;
const AREAS = 40;
const OWNER = 'owner@example.com';
const STRANGER = 'stranger@example.com';
const NEAREST = '/api/v3/devices/nearest/batch';
const CONTAINING = '/api/v3/areas/containing/batch';

const random = seededRandom(SEED);
const between = (low: number, high: number): number => low + random() * (high - low);
const oneOf = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;

/** A place in a town that has devices and areas, on the antimeridian, at a pole, or anywhere. */
function anyPlace(): { lat: number; lng: number } {
  const [lat, lng] = oneOf([
    () => [between(41.8, 42), between(12.4, 12.6)],
    () => [between(-17, -16), random() < 0.5 ? between(179.9, 180) : between(-180, -179.9)],
    () => [90, between(-180, 180)],
    () => [between(-90, 90), between(-180, 180)],
  ] as const)();
  return { lat: Number((lat as number).toFixed(6)), lng: Number((lng as number).toFixed(6)) };
}

let pod: Pod;
let key: string;
let strangersKey: string;
let narrowKey: string;

before(async () => {
  const database = await createDatabase();
  const admin = adminOf(database.url);
  for (const email of [OWNER, STRANGER]) await admin.account(email);
  ({ key } = await admin.key(OWNER));
  ({ key: strangersKey } = await admin.key(STRANGER));
  ({ key: narrowKey } = await admin.key(OWNER, { scopes: 'read_events' }));
  const imeis = Array.from({ length: DEVICES }, (_, n) => String(350_000_000_000_000 + n));
  await admin.importDevices(
    OWNER,
    imeis.map((imei) => ({ imei })),
  );
  pod = await startPod(database.url);
  const points = imeis.map((imei) => {
    const { lat, lng } = anyPlace();
    return { imei, recorded_at: Date.now(), latitude: lat, longitude: lng };
  });
  assert.equal((await pod.points(points)).accepted, DEVICES);
  const features = Array.from({ length: AREAS }, (_, n) => {
    const { lat, lng } = anyPlace();
    return {
      type: 'Feature',
      geometry: { type: 'Point', coordinates: [lng, Math.max(-89, Math.min(89, lat))] },
      properties: {
        name: `Area ${n}`,
        radius: Math.round(between(1_000, 300_000)),
        ...(n % 2 === 0 && { external_id: `a:${n}` }),
      },
    };
  });
  const imported = await post('/api/v3/areas/import', { type: 'FeatureCollection', features });
  assert.equal(imported.status, 201, imported.text);
});
after(() => pod.stop());

async function post(path: string, body: unknown, withKey = key): Promise<{ status: number; text: string }> {
  const response = await fetch(pod.api + path, {
    method: 'POST',
    headers: { 'X-API-Key': withKey, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

const dataOf = (text: string) => /^\{"data":(.*),"meta":/.exec(text)?.[1] ?? '';

test('a batch of nearest questions sees the devices of its caller only', async () => {
  const { text } = await post(NEAREST, { points: [{ lat: 41.9, lng: 12.5, limit: 50 }] }, strangersKey);
  assert.equal(dataOf(text), '[{"ref":null,"devices":[]}]');
});

describe(`which areas contain a point (seed ${SEED})`, () => {
  test('the single call lists what contains answers for each area, deepest inside first', async () => {
    const listed = (await pod.get('/api/v3/areas?limit=200', key)).body.data;
    for (let n = 0; n < POINTS; n++) {
      const { lat, lng } = anyPlace();
      const inside: object[] = [];
      for (const { id, name, type, external_id } of listed) {
        const one = (await pod.get(`/api/v3/areas/${id}/contains?lat=${lat}&lng=${lng}`, key)).body.data;
        if (one.inside) inside.push({ area: { id, name, type, external_id }, distance_m: one.distance_m });
      }
      const { body } = await pod.get(`/api/v3/areas/containing?lat=${lat}&lng=${lng}`, key);
      const inOrder = (inside as { area: { id: number }; distance_m: number }[]).sort(
        (a, b) => a.distance_m - b.distance_m || a.area.id - b.area.id,
      );
      assert.deepEqual(body, { data: inOrder, meta: { total: inside.length } });
    }
  });

  test('a type narrows the list, and another type is a 400', async () => {
    const around = '/api/v3/areas/containing?lat=41.9&lng=12.5';
    const { body: all } = await pod.get(around, key);
    assert.ok(all.meta.total > 0);
    assert.deepEqual((await pod.get(`${around}&type=circle`, key)).body, all);
    assert.deepEqual((await pod.get(`${around}&type=polygon`, key)).body, { data: [], meta: { total: 0 } });
    assert.equal((await pod.get(`${around}&type=square`, key)).status, 400);
  });

  test('sees the areas of its caller only', async () => {
    const { body } = await pod.get('/api/v3/areas/containing?lat=41.9&lng=12.5', strangersKey);
    assert.deepEqual(body, { data: [], meta: { total: 0 } });
  });

  const WRONG = ['', 'lat=1', 'lat=91&lng=0', 'lat=a&lng=0', 'lat=1&lng=1&lng=1'];
  for (const query of WRONG) {
    test(`"${query}" is a 400`, async () => {
      assert.equal((await pod.get(`/api/v3/areas/containing?${query}`, key)).status, 400);
    });
  }

  test('lists 200 areas and counts all', async () => {
    const features = Array.from({ length: 130 }, (_, n) => ({
      type: 'Feature',
      geometry: { type: 'Point', coordinates: [20, 50] },
      properties: { name: `Nested ${n}`, radius: 1_000 + n },
    }));
    for (let call = 0; call < 2; call++) {
      await post('/api/v3/areas/import', { type: 'FeatureCollection', features }, strangersKey);
    }
    const { body } = await pod.get('/api/v3/areas/containing?lat=50&lng=20', strangersKey);
    assert.equal(body.data.length, 200);
    assert.deepEqual(body.meta, { total: 260 });
    const depths = body.data.map((item: { distance_m: number }) => item.distance_m);
    assert.deepEqual(
      depths,
      depths.toSorted((a: number, b: number) => a - b),
    );
    const batch = await post(CONTAINING, { points: [{ ref: 'x', lat: 50, lng: 20 }] }, strangersKey);
    const [item] = JSON.parse(batch.text).data;
    assert.deepEqual([item.ref, item.areas.length, item.total], ['x', 200, 260]);
  });
});

describe('a batch as a whole', () => {
  const POINT = { lat: 41.9, lng: 12.5 };
  const WRONG: readonly [what: string, body: unknown, field: string | null, code: string][] = [
    ['a list', [POINT], null, 'INVALID_BODY'],
    ['no points', {}, 'points', 'REQUIRED'],
    ['null points', { points: null }, 'points', 'REQUIRED'],
    ['points that are no list', { points: POINT }, 'points', 'INVALID'],
    ['an empty list', { points: [] }, 'points', 'INVALID'],
    ['1 001 points', { points: Array(1_001).fill(POINT) }, 'points', 'LIMIT_REACHED'],
  ];
  for (const path of [NEAREST, CONTAINING]) {
    for (const [what, body, field, code] of WRONG) {
      test(`${path}: ${what} is a 422 that names the field`, async () => {
        const { status, text } = await post(path, body);
        assert.equal(status, 422, text);
        const { error } = JSON.parse(text);
        assert.deepEqual(
          error.details.map((each: { field: string; code: string }) => [each.field, each.code]),
          [[field, code]],
        );
      });
    }

    test(`${path}: needs the permission of the single route`, async () => {
      assert.equal((await post(path, { points: [POINT] }, narrowKey)).status, 403);
    });

    test(`${path}: an element that is no point is an error of its own`, async () => {
      const { status, text } = await post(path, {
        points: [
          7,
          { ref: {}, ...POINT },
          { ref: 'x'.repeat(101), ...POINT },
          { ref: 'x'.repeat(100), ...POINT },
        ],
      });
      assert.equal(status, 200, text);
      const items = JSON.parse(text).data;
      assert.deepEqual(
        items.map((item: { ref: unknown; error?: { code: string } }) => [item.ref, item.error?.code]),
        [
          [null, 'BAD_REQUEST'],
          [null, 'BAD_REQUEST'],
          [null, 'BAD_REQUEST'],
          ['x'.repeat(100), undefined],
        ],
      );
    });
  }

  test('nearest: limits that add up to 10 000 devices pass, one more is a 422', async () => {
    const points = Array.from({ length: 200 }, () => ({ lat: -89, lng: 0, limit: 50, max_km: 0.001 }));
    assert.equal((await post(NEAREST, { points })).status, 200);
    const { status, text } = await post(NEAREST, { points: [...points, { lat: -89, lng: 0 }] });
    assert.equal(status, 422, text);
    assert.equal(JSON.parse(text).error.details[0].code, 'LIMIT_REACHED');
  });
});
