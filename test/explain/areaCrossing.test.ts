import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { toVertices } from '../../src/areas/area.ts';
import { type Shape, toShape } from '../../src/areas/shape.ts';
import { crosses } from '../../src/explain/areaCrossing.ts';
import { distanceM, type LatLng } from '../../src/geo/wgs84.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { runs } from '../support/torture.ts';

const circle = (lat: number, lng: number, radiusM: number): Shape =>
  toShape({ type: 'circle', center: { lat, lng }, radiusM });

function crossesArea(shape: Shape, a: LatLng, b: LatLng): boolean {
  const outside = (place: LatLng) => ({ ...place, distanceM: shape.signedDistanceM(place.lat, place.lng) });
  return inOneGo(crosses(shape, outside(a), outside(b), distanceM(a.lat, a.lng, b.lat, b.lng)));
}

describe('the way between two points', () => {
  const points = toVertices([
    { lat: 45, lng: 9 },
    { lat: 45, lng: 9.2 },
  ]);
  const road = toShape({ type: 'polyline', bufferM: 20, points });
  const near = circle(42, 12, 500);
  type Way = readonly [latA: number, lngA: number, latB: number, lngB: number];
  const cases: readonly (readonly [string, Shape, Way, boolean])[] = [
    ['just inside the edge', near, [42.1, 12.006, 41.9, 12.006], true],
    ['past it by 4 m', near, [42.01, 12.00609, 41.99, 12.00609], false],
    ['that ends before it', near, [42.1, 12, 42.0046, 12], false],
    ['of no length', near, [42.1, 12, 42.1, 12], false],
    ['over 180°', circle(-17, 180, 500), [-17, 179.9, -17, -179.9], true],
    ['that would be the long way round', circle(-17, 0, 500), [-17, 179.9, -17, -179.9], false],
    ['over the pole', circle(90, 0, 500), [89.9, 0, 89.9, 180], true],
    ['across a road of 40 m', road, [45.05, 9.1, 44.95, 9.1], true],
    ['beside a road, 10 m off its margin', road, [45.0003, 9.01, 45.0003, 9.19], false],
    ['of 900 km over a town', circle(45.47, 9.19, 5_000), [41.9, 12.5, 48.9, 5.6], true],
  ];
  for (const [name, shape, [latA, lngA, latB, lngB], expected] of cases) {
    test(`${name}: ${expected ? 'crosses' : 'does not cross'}, in both directions`, () => {
      const [a, b] = [
        { lat: latA, lng: lngA },
        { lat: latB, lng: lngB },
      ];
      assert.equal(crossesArea(shape, a, b), expected);
      assert.equal(crossesArea(shape, b, a), expected);
    });
  }

  test('crosses when, and only when, some place on it is inside', () => {
    const offset = fc.double({ min: -0.02, max: 0.02, noNaN: true });
    fc.assert(
      fc.property(
        offset,
        offset,
        offset,
        offset,
        fc.integer({ min: 50, max: 1_500 }),
        (y, x, v, u, radiusM) => {
          const shape = circle(42, 12, radiusM);
          const [a, b] = [
            { lat: 42 + y, lng: 12 + x },
            { lat: 42 + v, lng: 12 + u },
          ] as const;
          fc.pre(!shape.contains(a.lat, a.lng) && !shape.contains(b.lat, b.lng));
          let nearestM = Number.POSITIVE_INFINITY;
          for (let n = 0; n <= 4_000; n++) {
            const part = n / 4_000;
            const metres = shape.signedDistanceM(
              a.lat + part * (b.lat - a.lat),
              a.lng + part * (b.lng - a.lng),
            );
            nearestM = Math.min(nearestM, metres);
          }
          // Nearer than that, the straight line of the chart is not the way over the ground.
          fc.pre(Math.abs(nearestM) > 3);
          assert.equal(crossesArea(shape, a, b), nearestM < 0);
        },
      ),
      { numRuns: runs(60) },
    );
  });
});
