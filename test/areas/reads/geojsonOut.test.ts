import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  type AreaDefinition,
  type AreaGeometry,
  areaMeasures,
  toLatLngs,
  toVertices,
} from '../../../src/areas/area.ts';
import { completeDraft, mergeDraft, parseDraft, type ValidArea } from '../../../src/areas/areaDraft.ts';
import { type AreaFeature, areaFeature } from '../../../src/areas/geojson.ts';
import { resolveImport } from '../../../src/areas/import/importAreas.ts';
import { planImport } from '../../../src/areas/import/importPlan.ts';
import { unwrapRing } from '../../../src/geo/path.ts';
import type { LatLng } from '../../../src/geo/wgs84.ts';
import { runs } from '../../support/torture.ts';
import { anyDefinition } from '../definitions.ts';
import { NO_QUOTA } from '../import/importing.ts';

const at = (lat: number, lng: number): LatLng => ({ lat, lng });
const define = (geometry: AreaGeometry): AreaDefinition => ({
  name: 'A',
  color: '#102030',
  geometry,
  externalId: 'x:1',
  dwellSeconds: 60,
});
const polygon = (...points: LatLng[]) => define({ type: 'polygon', points: toVertices(points) });
const track = (...points: LatLng[]) => define({ type: 'polyline', points: toVertices(points), bufferM: 70 });
const disc = (type: 'circle' | 'point', center: LatLng, radiusM: number) => define({ type, center, radiusM });

/** As it arrives at the other end. */
function exported(definition: AreaDefinition): AreaFeature {
  const measures = areaMeasures(definition.geometry);
  return JSON.parse(JSON.stringify(areaFeature({ id: 7, definition, measures, createdAtMs: 0 })));
}

function imported(body: unknown): ValidArea {
  const plan = run(planImport(body));
  assert.ok(plan.ok);
  const outcome = run(resolveImport(plan.value, new Map(), NO_QUOTA));
  assert.deepEqual(outcome.errors, []);
  assert.deepEqual(outcome.warnings, []);
  const [write] = outcome.writes;
  assert.ok(write && outcome.writes.length === 1, 'one area comes back');
  return write.area;
}

function run<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

describe('the geometry of a polygon is', () => {
  test('closed counter-clockwise rings, none longer than the map is wide', () => {
    const isPolygon = anyDefinition.filter(({ geometry }) => geometry.type === 'polygon');
    const property = fc.property(isPolygon, (definition) => {
      const { geometry } = exported(definition);
      assert.ok(geometry.type === 'Polygon' || geometry.type === 'MultiPolygon');
      const polygons = geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.coordinates;
      assert.ok(polygons.length > (geometry.type === 'Polygon' ? 0 : 1));
      for (const [ring, ...holes] of polygons) {
        assert.ok(ring && holes.length === 0 && ring.length >= 4);
        assert.deepEqual(ring[0], ring.at(-1));
        assert.ok(signedArea(ring) > 0);
        for (const [i, [lng, lat]] of ring.slice(1).entries()) {
          const alongPole = Math.abs(lat) === 90 && ring[i]![1] === lat;
          assert.ok(
            alongPole || Math.abs(lng - ring[i]![0]) <= 180,
            'a reader that knows no antimeridian sees the same',
          );
        }
      }
    });
    fc.assert(property, { seed: 20_260_315, numRuns: runs(75) });
  });
});

describe('what was exported can be imported', () => {
  const rows: readonly (readonly [title: string, definition: AreaDefinition])[] = [
    ['a place larger than any other circle', disc('point', at(41.9, 12.5), 100_000)],
    ['a circle on the pole', disc('circle', at(-90, -180), 100_000)],
    [
      'a track to and fro over the antimeridian',
      track(at(0, 179), at(1, -179), at(2, 179), at(3, -179), at(4, 179)),
    ],
    ['a track with a vertex on the antimeridian', track(at(0, 179), at(1.5, 180), at(2, -179))],
    ['a track along the antimeridian', track(at(0, 180), at(1, 180), at(2, -179))],
    ['Fiji with slanting sides', polygon(at(-16, 177), at(-19, 177.3), at(-19.4, -178), at(-15.2, -178.7))],
    [
      'a comb over the antimeridian',
      polygon(
        at(0, 178),
        at(0, -178),
        at(1, -178),
        at(1, 179),
        at(2, 179),
        at(2, -178),
        at(3, -178),
        at(3, 178),
      ),
    ],
    [
      'a polygon with vertices on the antimeridian',
      polygon(at(0, 178), at(0, 180), at(1, -178), at(2, 180), at(2, 178)),
    ],
    ['a polygon with a side on the antimeridian', polygon(at(0, 170), at(0, 180), at(10, 180), at(10, 170))],
    ['a polygon east of the antimeridian', polygon(at(0, -180), at(0, -170), at(10, -170), at(10, -180))],
    ['a ring with a vertex on the antimeridian', polygon(at(70, 0), at(70, 120), at(75, 180), at(70, -120))],
    [
      'Antarctica with a seam',
      polygon(
        at(-90, -180),
        at(-70, -180),
        at(-65, -90),
        at(-72, 0),
        at(-65, 90),
        at(-70, 180),
        at(-90, 180),
      ),
    ],
    ['the world', polygon(at(-90, -180), at(-90, 180), at(90, 180), at(90, -180))],
    [
      'a belt around the Earth',
      polygon(at(-10, -180), at(-10, 0), at(-10, 180), at(10, 180), at(10, 0), at(10, -180)),
    ],
  ];
  for (const [title, definition] of rows) {
    test(title, () => assertReturns(definition));
  }

  test('a vertex on the straight way over the antimeridian cannot be told from a cut, nor is it missed', () => {
    const { definition, measures } = imported(exported(track(at(0, 179), at(1, 180), at(2, -179))));
    assert.deepEqual(definition, track(at(0, 179), at(2, -179)));
    const { lengthM } = areaMeasures(track(at(0, 179), at(1, 180), at(2, -179)).geometry);
    assert.ok(Math.abs((measures.lengthM ?? 0) / (lengthM ?? 1) - 1) < 1e-12);
  });

  test('whatever it is', () => {
    fc.assert(fc.property(anyDefinition, assertReturns), { seed: 20_260_315, numRuns: runs(150) });
  });
});

/** By import, by POST and by PATCH of itself, the same area comes back. */
function assertReturns(definition: AreaDefinition): void {
  const feature = exported(definition);
  const body = { type: 'FeatureCollection', features: [feature] };
  assertSame(imported(body), definition);
  const draft = parseDraft({ geojson: feature });
  assert.ok(draft.ok);
  for (const result of [completeDraft(draft.value), mergeDraft(definition, draft.value)]) {
    assert.ok(result.ok, JSON.stringify(result));
    assertSame(result.value, definition);
  }
}

function assertSame({ definition, measures }: ValidArea, expected: AreaDefinition): void {
  assert.deepEqual({ ...definition, geometry: null }, { ...expected, geometry: null });
  assert.deepEqual(canonical(definition.geometry), canonical(expected.geometry));
  const expectedMeasures = areaMeasures(expected.geometry);
  for (const metric of ['areaM2', 'perimeterM', 'lengthM'] as const) {
    const [actualM, expectedM] = [measures[metric], expectedMeasures[metric]];
    if (expectedM === null) assert.equal(actualM, null);
    else
      assert.ok(
        Math.abs((actualM ?? Number.NaN) - expectedM) <= 1e-9 * expectedM,
        `${metric} ${actualM} ${expectedM}`,
      );
  }
  assert.deepEqual(measures.bounds, expectedMeasures.bounds);
}

/** A polygon may start anywhere and turn either way, a seam is not a side, and the antimeridian has two names. */
function canonical(geometry: AreaGeometry): unknown {
  if (!('points' in geometry)) return geometry;
  const given = toLatLngs(geometry.points);
  const isPolygon = geometry.type === 'polygon';
  const bends = withoutStraightSeams(isPolygon ? unwrapRing(given).points : given, isPolygon);
  const points = bends.map(({ lat, lng }) => `${lat} ${lng === -180 ? 180 : lng}`);
  if (!isPolygon) return { ...geometry, points };
  const turned = [points, points.toReversed()].flatMap((list) =>
    list.map((_, k) => [...list.slice(k), ...list.slice(0, k)].join(', ')),
  );
  return turned.sort()[0];
}

/** Without the vertices on the antimeridian where the straight way from neighbour to neighbour crosses it anyway. */
function withoutStraightSeams(points: readonly LatLng[], closed: boolean): LatLng[] {
  return points.filter(({ lat, lng }, i) => {
    const before = points[closed ? (i + points.length - 1) % points.length : i - 1];
    const after = points[closed ? (i + 1) % points.length : i + 1];
    if (Math.abs(lng) < 180 || !before || !after || Math.sign(before.lng) === Math.sign(after.lng))
      return true;
    const [gap, rest] = [180 - Math.abs(before.lng), 180 - Math.abs(after.lng)];
    if (gap + rest === 0) return true;
    return Math.abs(before.lat + (gap / (gap + rest)) * (after.lat - before.lat) - lat) > 1e-9;
  });
}

function signedArea(ring: readonly (readonly [number, number])[]): number {
  return ring.slice(1).reduce((sum, [x, y], i) => sum + (ring[i]![0] * y - x * ring[i]![1]) / 2, 0);
}
