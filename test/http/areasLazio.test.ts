import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { toVertices } from '../../src/areas/area.ts';
import { compileShape, type Shape } from '../../src/areas/shape.ts';
import { missingRealData, realBoundaries } from '../geometry/shapes.ts';
import { type Admin, adminOf } from '../support/admin.ts';
import { type AreaApi, areaApi, POLYGON } from '../support/areas.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { assertSameAreas, type WireArea } from './sameAreas.ts';

const FILE = 'lazio-municipalities.geojson';
const FEATURES_PER_CALL = 200;
/** Every so many of the reference points also goes through HTTP. */
const HTTP_STRIDE = 25;

interface Municipality {
  readonly properties: { readonly name: string; readonly istat: string };
  readonly geometry: { readonly type: 'Polygon' | 'MultiPolygon'; readonly coordinates: readonly unknown[] };
}

/** Points with the municipality that PostGIS says they are in; null: in none. */
function referencePoints(): { lat: number; lng: number; name: string | null }[] {
  const path = join(import.meta.dirname, '..', 'data', 'geometry-lazio-points.json');
  const { inside, outside } = JSON.parse(readFileSync(path, 'utf8')) as {
    inside: Record<string, string>;
    outside: string;
  };
  return [...Object.entries(inside), [null, outside] as const].flatMap(([name, text]) => {
    const numbers = text.split(' ').map(Number);
    return numbers.flatMap((value, n) =>
      n % 2 === 0 ? [{ name, lng: (11e6 + value) / 1e6, lat: (40e6 + numbers[n + 1]!) / 1e6 }] : [],
    );
  });
}

describe('the municipalities of Lazio', { skip: missingRealData(FILE) }, () => {
  let pod: Pod;
  let admin: Admin;
  let api: AreaApi;
  let municipalities: Municipality[];
  let areas: WireArea[] = [];
  const parts = new Map<string, number>();

  before(async () => {
    const path = join(process.env['FLEET_TEST_DATA'] as string, FILE);
    municipalities = (JSON.parse(readFileSync(path, 'utf8')) as { features: Municipality[] }).features;
    for (const { properties, geometry } of municipalities)
      parts.set(properties.name, geometry.type === 'Polygon' ? 1 : geometry.coordinates.length);
    const database = await createDatabase();
    admin = adminOf(database.url);
    pod = await startPod(database.url);
    api = await newAccount('owner@example.com');
  });
  after(() => pod.stop());

  async function newAccount(email: string): Promise<AreaApi> {
    await admin.account(email);
    return areaApi(pod, (await admin.key(email)).key);
  }

  const callsOf = <T>(values: readonly T[]): T[][] =>
    Array.from({ length: Math.ceil(values.length / FEATURES_PER_CALL) }, (_, n) =>
      values.slice(n * FEATURES_PER_CALL, (n + 1) * FEATURES_PER_CALL),
    );

  // biome-ignore lint/suspicious/noExplicitAny: areas or Features, as asked for
  async function listOf(by: AreaApi, format: 'json' | 'geojson'): Promise<any[]> {
    const items: object[] = [];
    for (;;) {
      const { body } = await by.get(`?limit=200&offset=${items.length}&format=${format}`);
      items.push(...(format === 'json' ? body.data : body.data.features));
      if (items.length >= body.meta.total) return items;
    }
  }

  test('are imported in calls of 200 features: every Polygon is valid, every MultiPolygon split and named', async (t) => {
    for (const features of callsOf(municipalities)) {
      const dry = await api.import({ type: 'FeatureCollection', features }, '?dry_run=true');
      const real = await api.import({ type: 'FeatureCollection', features });
      assert.equal(real.status, 201);
      assert.deepEqual(real.body.data.errors, []);
      assert.deepEqual(
        dry.body.data.created,
        real.body.data.created.map(({ index }: { index: number }) => ({ index })),
      );
      const expected = features.flatMap(({ properties }, index) =>
        Array(parts.get(properties.name)).fill(index),
      );
      assert.deepEqual(
        real.body.data.created.map(({ index }: { index: number }) => index),
        expected,
      );
    }
    areas = await listOf(api, 'json');
    const names = municipalities.flatMap(({ properties: { name } }) => {
      const count = parts.get(name) as number;
      return count === 1 ? [name] : Array.from({ length: count }, (_, k) => `${name} (${k + 1})`);
    });
    assert.deepEqual(
      areas.map(({ name }) => name),
      names,
    );
    const multis = [...parts.values()].filter((count) => count > 1);
    t.diagnostic(
      `${municipalities.length} features, ${multis.length} of several parts, made ${areas.length} areas`,
    );
    assert.deepEqual([municipalities.length, multis.length], [378, 22]);
  });

  test('exported as GeoJSON and imported into another account, are the same areas', async () => {
    const other = await newAccount('other@example.com');
    for (const features of callsOf(await listOf(api, 'geojson'))) {
      const reply = await other.import({ type: 'FeatureCollection', features });
      assert.deepEqual(
        [reply.status, reply.body.data.valid, reply.body.data.errors],
        [201, features.length, []],
      );
    }
    assertSameAreas(await listOf(other, 'json'), areas);
  });

  const ownerOf = (name: string): string => name.replace(/ \(\d+\)$/, '');

  test('contain, each by its shape in memory, exactly the points that PostGIS says', () => {
    const shapes: { name: string; shape: Shape; area: WireArea }[] = areas.map((area) => ({
      name: ownerOf(area.name),
      area,
      shape: compileShape({
        name: area.name,
        color: area.color,
        externalId: null,
        dwellSeconds: 0,
        geometry: { type: 'polygon', points: toVertices(area.points) },
      }),
    }));
    const points = referencePoints();
    for (const { lat, lng, name } of points) {
      const found = shapes.filter(({ shape }) => shape.contains(lat, lng));
      assert.deepEqual(
        found.map((one) => one.name),
        name === null ? [] : [name],
        `${lat} ${lng}`,
      );
      for (const { area } of found) {
        const { south, west, north, east } = area.bounds;
        assert.ok(south <= lat && lat <= north && west <= lng && lng <= east, 'bounds cover it');
      }
    }
    assert.ok(points.length >= 10_000);
  });

  test('answer so over HTTP', async () => {
    for (const { lat, lng, name } of referencePoints().filter((_, n) => n % HTTP_STRIDE === 0)) {
      const near = areas.filter(
        ({ bounds }) =>
          bounds.south <= lat && lat <= bounds.north && bounds.west <= lng && lng <= bounds.east,
      );
      const inside: string[] = [];
      for (const area of near) {
        const { data } = (await api.contains(area.id, lat, lng)).body;
        assert.equal(data.inside, data.distance_m <= 0);
        if (data.inside) inside.push(ownerOf(area.name));
      }
      assert.deepEqual(inside, name === null ? [] : [name], `${lat} ${lng}`);
    }
  });
});

describe('real outlines at the antimeridian and far south', {
  skip: missingRealData('boundaries.json.gz'),
}, () => {
  test('come back from GeoJSON as they were', async (t) => {
    const database = await createDatabase(t);
    const admin = adminOf(database.url);
    const pod = await startPod(database.url, { t });
    const apis: AreaApi[] = [];
    for (const email of ['owner@example.com', 'other@example.com']) {
      await admin.account(email);
      apis.push(areaApi(pod, (await admin.key(email)).key));
    }
    const [api, other] = apis as [AreaApi, AreaApi];
    for (const { name, points } of realBoundaries().outlines) await api.make({ ...POLYGON, name, points });
    const areas: WireArea[] = (await api.get('?limit=200')).body.data;
    const exported = (await api.get('?limit=200&format=geojson')).body.data;
    const reply = await other.import(exported);
    assert.deepEqual([reply.body.data.valid, reply.body.data.errors], [areas.length, []]);
    assertSameAreas((await other.get('?limit=200')).body.data, areas);
  });
});
