import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AreaApi, areaPod, BODIES, gist, POLYGON, TRACK } from '../../support/http/areas.ts';
import { assertSameAreas, type WireArea } from '../sameAreas.ts';

// What becomes of every kind of geometry at the antimeridian and the poles is proven in test/areas (shape.test.ts,
// geojsonOut.test.ts); here it goes through the routes.

type Line = readonly (readonly [lng: number, lat: number])[];

const points = (...spots: (readonly [lat: number, lng: number])[]) =>
  spots.map(([lat, lng]) => ({ lat, lng }));
const FIJI = points([-15.7, 176.9], [-19.2, 176.9], [-19.2, -178.2], [-15.7, -178.2], [-16.4, 179.8]);
const CHUKOTKA = points([64.7, 177.5], [66.3, 179.9], [66.9, -178.1], [67.2, -175], [66.1, -169.7]);

const service = areaPod();
const { api } = service;

const areasOf = async (by: AreaApi): Promise<WireArea[]> => (await by.get('?limit=200')).body.data;

/** Every ring is closed, counter-clockwise and inside ±180; no piece spans more than half the Earth. */
function assertFollowsRfc7946({ type, coordinates }: { type: string; coordinates: never }): void {
  const lines: Line[] =
    type === 'Point'
      ? [[coordinates]]
      : type === 'LineString'
        ? [coordinates]
        : type === 'MultiPolygon'
          ? (coordinates as Line[][]).flat()
          : coordinates;
  for (const line of lines) {
    for (const [n, [lng, lat]] of line.entries()) {
      assert.ok(Math.abs(lng) <= 180 && Math.abs(lat) <= 90);
      const [before, latBefore] = line[n - 1] ?? [lng, lat];
      const alongPole = Math.abs(lat) === 90 && lat === latBefore;
      assert.ok(Math.abs(lng - before) <= 180 || alongPole, `${before} to ${lng}`);
    }
    if (!type.endsWith('Polygon')) continue;
    assert.deepEqual(line[0], line.at(-1));
    const corners = line.slice(1);
    const doubleArea = corners.reduce((sum, [lng, lat], n) => sum + line[n]![0] * lat - lng * line[n]![1], 0);
    assert.ok(doubleArea > 0, 'counter-clockwise');
  }
}

const CROSSING: [
  title: string,
  body: object,
  geometry: string,
  inside: [number, number][],
  outside: [number, number],
][] = [
  [
    'a polygon',
    { ...POLYGON, points: FIJI },
    'MultiPolygon',
    [
      [-17, 178],
      [-17, 180],
      [-17, -180],
      [-17, -178.3],
    ],
    [-17, 0],
  ],
  [
    'a track',
    { ...TRACK, points: CHUKOTKA, buffer_m: 5_000 },
    'MultiLineString',
    [
      [66.3, 179.9],
      [66.33, 180],
      [66.33, -180],
    ],
    [66.3, 0],
  ],
];
for (const [title, body, geometry, inside, outside] of CROSSING) {
  test(`${title} over the antimeridian is exported as ${geometry}, and is the same area when that is sent back`, async () => {
    const area: WireArea = (await api.get(`/${await api.make(body)}`)).body.data;
    assert.ok(area.bounds.west > area.bounds.east);
    const exported = (await api.get(`/${area.id}?format=geojson`)).body.data;
    assert.equal(exported.geometry.type, geometry);
    assertFollowsRfc7946(exported.geometry);

    const other = await service.newAccount();
    const imported = await other.import(exported);
    assert.deepEqual([imported.status, imported.body.data.warnings], [201, []], imported.text);
    const [back] = (await areasOf(other)) as [WireArea];
    assertSameAreas([back], [area]);
    for (const [lat, lng] of inside)
      assert.equal((await other.contains(back.id, lat, lng)).body.data.inside, true);
    assert.equal((await other.contains(back.id, ...outside)).body.data.inside, false);

    const posted = await other.post({ geojson: exported });
    assertSameAreas([posted.body.data], [area]);
    const patched = await other.patch(posted.body.data.id, { geojson: exported });
    assert.equal(gist(patched), '200');
    assert.deepEqual(patched.body.data, posted.body.data);
  });
}

test('a list of areas of every type, exported and imported into another account, is the same list', async () => {
  const [own, other] = [await service.newAccount(), await service.newAccount()];
  for (const [n, body] of [...Object.values(BODIES), ...CROSSING.map(([, body]) => body)].entries())
    await own.make({ ...body, dwell_seconds: n, external_id: n % 2 === 0 ? `code/${n}` : null });
  const areas = await areasOf(own);
  const exported = (await own.get('?limit=200&format=geojson')).body.data;
  for (const { geometry } of exported.features) assertFollowsRfc7946(geometry);
  const copied = await other.import(exported);
  assert.deepEqual([copied.status, copied.body.data.errors, copied.body.data.warnings], [201, [], []]);
  assertSameAreas(await areasOf(other), areas);
  const again = await other.import((await other.get('?limit=200&format=geojson')).body.data);
  assert.deepEqual([again.body.data.updated.length, again.body.data.created.length], [3, 3]);
});
