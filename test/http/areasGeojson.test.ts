import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Admin, adminOf } from '../support/admin.ts';
import { type AreaApi, areaApi, BODIES, CIRCLE, gist, POLYGON, TRACK } from '../support/areas.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { assertSameAreas, type WireArea } from './sameAreas.ts';

type Spot = readonly [lat: number, lng: number];
type Line = readonly (readonly [lng: number, lat: number])[];

const points = (...spots: Spot[]) => spots.map(([lat, lng]) => ({ lat, lng }));
const FIJI = points([-15.7, 176.9], [-19.2, 176.9], [-19.2, -178.2], [-15.7, -178.2], [-16.4, 179.8]);
const CHUKOTKA = points([64.7, 177.5], [66.3, 179.9], [66.9, -178.1], [67.2, -175], [66.1, -169.7]);
const ANTARCTICA = points([-70, -150], [-66, -90], [-63, -57], [-70, 0], [-66, 60], [-65, 110], [-72, 170]);

interface Case {
  readonly title: string;
  readonly body: object;
  readonly inside: readonly Spot[];
  readonly outside: readonly Spot[];
  /** West and east as they must be; undefined: not the point of this case. */
  readonly westEast?: readonly [west: number, east: number];
  readonly geometry: string;
}

const CASES: readonly Case[] = [
  {
    title: 'a polygon around Fiji',
    body: { ...POLYGON, points: FIJI },
    inside: [
      [-17, 178],
      [-17, 179.99],
      [-17, 180],
      [-17, -180],
      [-17, -179.99],
      [-17, -178.3],
      [-19.2, 180],
      [-19.2, -180],
      [-15.7, 176.9],
    ],
    outside: [
      [-17, 0],
      [-17, 176.8],
      [-17, -178.1],
      [-19.3, 180],
      [-15.8, 179.8],
      [-20, -180],
    ],
    westEast: [176.9, -178.2],
    geometry: 'MultiPolygon',
  },
  {
    title: 'the same in the other winding, from another vertex',
    body: { ...POLYGON, points: [...FIJI.slice(2), ...FIJI.slice(0, 2)].toReversed() },
    inside: [
      [-17, 178],
      [-17, 180],
      [-17, -180],
    ],
    outside: [
      [-17, 0],
      [-15.8, 179.8],
    ],
    westEast: [176.9, -178.2],
    geometry: 'MultiPolygon',
  },
  {
    title: 'a polygon that only touches the antimeridian from the west',
    body: { ...POLYGON, points: points([0, 179], [1, 180], [2, 179]) },
    inside: [
      [1, 180],
      [1, -180],
      [1, 179.5],
    ],
    outside: [
      [1, -179.9],
      [1, 178.9],
    ],
    geometry: 'Polygon',
  },
  {
    title: 'a polygon with a side on the antimeridian',
    body: { ...POLYGON, points: points([0, -180], [0, -179], [1, -179], [1, 180]) },
    inside: [
      [0.5, 180],
      [0.5, -180],
      [0.5, -179.5],
    ],
    outside: [
      [0.5, 179.9],
      [0.5, -178.9],
    ],
    geometry: 'Polygon',
  },
  {
    title: 'a polygon around a pole',
    body: { ...POLYGON, points: ANTARCTICA },
    inside: [
      [-90, 0],
      [-90, 123],
      [-89, 180],
      [-80, -180],
      [-75, 45],
    ],
    outside: [
      [-60, 0],
      [0, 0],
      [90, 0],
      [-62, 180],
    ],
    westEast: [-180, 180],
    geometry: 'Polygon',
  },
  {
    title: 'a track across Chukotka',
    body: { ...TRACK, points: CHUKOTKA, buffer_m: 5_000 },
    inside: [
      [66.3, 179.9],
      [66.33, 180],
      [66.33, -180],
      [66.9, -178.1],
      [67.2, -175],
    ],
    outside: [
      [66.3, 0],
      [66, 180],
      [66, -180],
      [64.6, 177],
      [66.1, -169],
    ],
    geometry: 'MultiLineString',
  },
  {
    title: 'a track that crosses the date line three times',
    body: { ...TRACK, points: points([10, 179], [11, -179], [12, 179], [13, -179]), buffer_m: 1_000 },
    inside: [
      [10, 179],
      [10.5, 180],
      [11.5, -180],
      [12.5, 180],
      [13, -179],
    ],
    outside: [
      [10, -179],
      [11, 179],
      [11.5, 0],
    ],
    geometry: 'MultiLineString',
  },
  {
    title: 'a circle on the date line',
    body: { ...CIRCLE, center: { lat: 20, lng: 180 }, radius_m: 50_000 },
    inside: [
      [20, 180],
      [20, -180],
      [20, 179.6],
      [20, -179.6],
      [20.4, -180],
    ],
    outside: [
      [20, 179.5],
      [20, -179.5],
      [20, 0],
    ],
    geometry: 'Point',
  },
  {
    title: 'a circle beside the date line',
    body: { ...CIRCLE, center: { lat: -20, lng: -179.9 }, radius_m: 50_000 },
    inside: [
      [-20, 179.7],
      [-20, 180],
      [-20, -179.5],
    ],
    outside: [
      [-20, 179.5],
      [-20, -179.3],
    ],
    geometry: 'Point',
  },
  {
    title: 'a circle on the pole',
    body: { ...CIRCLE, center: { lat: 90, lng: 17 }, radius_m: 50_000 },
    inside: [
      [90, 17],
      [90, -180],
      [89.6, -163],
      [89.6, 180],
      [89.6, 0],
    ],
    outside: [
      [89.5, 17],
      [89.5, -163],
      [-90, 0],
    ],
    westEast: [-180, 180],
    geometry: 'Point',
  },
  {
    title: 'a circle across the pole',
    body: { ...CIRCLE, center: { lat: 89.8, lng: 10 }, radius_m: 50_000 },
    inside: [
      [90, 0],
      [89.8, 10],
      [89.9, -170],
      [89.4, 10],
    ],
    outside: [
      [89.7, -170],
      [89.3, 10],
    ],
    westEast: [-180, 180],
    geometry: 'Point',
  },
];

describe('GeoJSON out and back', () => {
  let pod: Pod;
  let admin: Admin;
  let api: AreaApi;
  let accounts = 0;

  before(async () => {
    const database = await createDatabase();
    admin = adminOf(database.url);
    pod = await startPod(database.url);
    api = await newAccount();
  });
  after(() => pod.stop());

  async function newAccount(): Promise<AreaApi> {
    const email = `owner${++accounts}@example.com`;
    await admin.account(email);
    return areaApi(pod, (await admin.key(email)).key);
  }

  const areasOf = async (by: AreaApi): Promise<WireArea[]> => (await by.get('?limit=200')).body.data;

  /** Every ring is closed, counter-clockwise and inside ±180; no piece spans more than half the Earth. */
  function assertFollowsRfc7946(geometry: { type: string; coordinates: never }): void {
    const lines: Line[] =
      geometry.type === 'Point'
        ? [[geometry.coordinates]]
        : geometry.type === 'LineString'
          ? [geometry.coordinates]
          : geometry.type === 'MultiPolygon'
            ? (geometry.coordinates as Line[][]).flat()
            : geometry.coordinates;
    for (const line of lines) {
      for (const [n, [lng, lat]] of line.entries()) {
        assert.ok(Math.abs(lng) <= 180 && Math.abs(lat) <= 90);
        const [before, latBefore] = line[n - 1] ?? [lng, lat];
        const alongPole = Math.abs(lat) === 90 && lat === latBefore;
        assert.ok(Math.abs(lng - before) <= 180 || alongPole, `${before} to ${lng}`);
      }
      if (!geometry.type.endsWith('Polygon')) continue;
      assert.deepEqual(line[0], line.at(-1));
      const doubleArea = line
        .slice(1)
        .reduce((sum, [lng, lat], n) => sum + line[n]![0] * lat - lng * line[n]![1], 0);
      assert.ok(doubleArea > 0, 'counter-clockwise');
    }
  }

  for (const { title, body, inside, outside, westEast, geometry } of CASES) {
    test(`${title}: contains, bounds, metrics, and the same area when it comes back as ${geometry}`, async () => {
      const id = await api.make(body);
      const area: WireArea = (await api.get(`/${id}`)).body.data;
      const assertContains = async (by: AreaApi, areaId: number): Promise<void> => {
        for (const [spots, expected] of [
          [inside, true],
          [outside, false],
        ] as const) {
          for (const [lat, lng] of spots) {
            const reply = (await by.contains(areaId, lat, lng)).body.data;
            assert.equal(reply.inside, expected, `${lat} ${lng}: ${reply.distance_m}`);
            assert.equal(reply.distance_m <= 0, expected, `${lat} ${lng}: ${reply.distance_m}`);
          }
        }
      };
      await assertContains(api, id);
      const { south, west, north, east } = area.bounds;
      if (westEast !== undefined) assert.deepEqual([west, east], westEast);
      for (const [lat, lng] of inside) {
        assert.ok(south <= lat && lat <= north, `${lat} in ${south} to ${north}`);
        if (Math.abs(lat) === 90) continue; // there every longitude is the same place
        const isWithin = west <= east ? west <= lng && lng <= east : lng >= west || lng <= east;
        assert.ok(isWithin || Math.abs(lng) === 180, `${lng} in ${west} to ${east}`);
      }

      const exported = (await api.get(`/${id}?format=geojson`)).body.data;
      assert.equal(exported.geometry.type, geometry);
      assertFollowsRfc7946(exported.geometry);
      const other = await newAccount();
      const imported = await other.import(exported);
      assert.deepEqual(
        [imported.status, imported.body.data.valid, imported.body.data.warnings],
        [201, 1, []],
        imported.text,
      );
      const back = await areasOf(other);
      assertSameAreas(back, [area]);
      await assertContains(other, (back[0] as WireArea).id);

      const posted = await other.post({ geojson: exported, external_id: 'posted' });
      assert.equal(gist(posted), '201');
      assertSameAreas([{ ...posted.body.data, external_id: null }], [area]);
      const patched = await other.patch(posted.body.data.id, { geojson: exported });
      assert.equal(gist(patched), '200');
      assert.deepEqual(patched.body.data, posted.body.data);
    });
  }

  test('metrics do not know where the antimeridian is', async () => {
    for (const body of [
      { ...POLYGON, points: FIJI },
      { ...TRACK, points: CHUKOTKA },
    ]) {
      const shifted = body.points.map(({ lat, lng }) => ({ lat, lng: (lng < 0 ? lng + 360 : lng) - 60 }));
      const here = (await api.post(body)).body.data;
      const there = (await api.post({ ...body, points: shifted })).body.data;
      for (const [name, value] of Object.entries(there.metrics)) {
        if (value === null) assert.equal(here.metrics[name], null);
        else assert.ok(Math.abs(here.metrics[name] / (value as number) - 1) < 1e-9, name);
      }
    }
  });

  test('a list of 200 mixed areas, exported and imported into another account, is the same list', async () => {
    const random = seededRandom(5);
    const own = await newAccount();
    const features = Array.from({ length: 200 }, (_, n) => anyFeature(n, random));
    const made = await own.import({ type: 'FeatureCollection', features });
    assert.deepEqual([made.status, made.body.data.errors, made.body.data.created.length], [201, [], 200]);
    const areas = await areasOf(own);
    const exported = (await own.get('?limit=200&format=geojson')).body.data;
    for (const feature of exported.features) assertFollowsRfc7946(feature.geometry);

    const other = await newAccount();
    const dry = await other.import(exported, '?dry_run=true');
    assert.deepEqual([dry.body.data.valid, dry.body.data.errors, dry.body.data.warnings], [200, [], []]);
    const copied = await other.import(exported);
    assert.deepEqual([copied.status, copied.body.data.valid, copied.body.data.errors], [201, 200, []]);
    assertSameAreas(await areasOf(other), areas);

    const again = await other.import((await other.get('?limit=200&format=geojson')).body.data);
    const coded = areas.filter(({ external_id }) => external_id !== null).length;
    assert.deepEqual([again.body.data.updated.length, again.body.data.created.length], [coded, 200 - coded]);
    assertSameAreas(await areasOf(other), areas);
  });

  test('each type comes back by POST and PUT from its own Feature', async () => {
    for (const [type, body] of Object.entries(BODIES)) {
      const area = (await api.post({ ...body, dwell_seconds: 12, color: '#ABCDEF' })).body.data;
      const { geometry, properties } = (await api.get(`/${area.id}?format=geojson`)).body.data;
      const posted = (await api.post({ geojson: { type: 'Feature', geometry, properties } })).body.data;
      assertSameAreas([posted], [area]);
      const put = (await api.put(`back-${type}`, { geojson: { type: 'Feature', geometry, properties } })).body
        .data;
      assertSameAreas([{ ...put, external_id: null }], [area]);
    }
  });
});

/** Something of every type, anywhere on Earth: also across the antimeridian and near the poles. */
function anyFeature(n: number, random: () => number): object {
  const between = (min: number, max: number): number => min + random() * (max - min);
  const wrap = (lng: number): number => (lng > 180 ? lng - 360 : lng < -180 ? lng + 360 : lng);
  const [lat, lng] = [between(-80, 80), random() < 0.4 ? wrap(180 + between(-2, 2)) : between(-180, 180)];
  const star = Array.from({ length: 3 + Math.floor(random() * 40) }, (_, k) => k).map((k, _, { length }) => {
    const angle = (k / length) * 2 * Math.PI;
    const radius = between(0.5, 3);
    return [wrap(lng + radius * Math.cos(angle)), lat + radius * Math.sin(angle)];
  });
  const walk = Array.from({ length: 2 + Math.floor(random() * 30) }, (_, k) => [
    wrap(lng + k * between(0.05, 0.2)),
    lat + between(-1, 1),
  ]);
  const properties = {
    name: `Area ${n}`,
    color: random() < 0.5 ? '#A1B2c3' : undefined,
    dwell_seconds: Math.floor(between(0, 86_400)),
    external_id: random() < 0.5 ? `code/${n}` : undefined,
  };
  const geometries: [geometry: object, properties: object][] = [
    [{ type: 'Polygon', coordinates: [[...star, star[0]]] }, {}],
    [{ type: 'Polygon', coordinates: [[...star, star[0]].toReversed()] }, {}],
    [{ type: 'LineString', coordinates: walk }, { bufferDistance: between(5, 5_000) }],
    [{ type: 'Point', coordinates: [lng, lat] }, { radius: between(25, 100_000) }],
    [
      { type: 'Point', coordinates: [lng, lat] },
      { radius: between(1, 100_000), type: 'point' },
    ],
    [{ type: 'Point', coordinates: [lng, lat] }, {}],
  ];
  const [geometry, own] = geometries[n % geometries.length] as (typeof geometries)[number];
  return { type: 'Feature', geometry, properties: { ...properties, ...own } };
}
