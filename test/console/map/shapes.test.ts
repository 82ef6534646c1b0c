import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import geodesic from 'geographiclib-geodesic';
import type { Polygon } from 'geojson';
import {
  areaFeature,
  boundsOf,
  destination,
  distanceM,
  unwrapped,
} from '../../../src/console/page/map/areaShapes.ts';

const PLACE = fc.record({
  lng: fc.double({ min: -180, max: 180, noNaN: true }),
  lat: fc.double({ min: -80, max: 80, noNaN: true }),
});
const turn = (degrees: number): number => degrees - 360 * Math.round(degrees / 360);
const metres = (a: { lng: number; lat: number }, b: { lng: number; lat: number }) =>
  geodesic.Geodesic.WGS84.Inverse(a.lat, a.lng, b.lat, b.lng).s12 ?? Number.NaN;
const circle = { type: 'circle', buffer_m: null, points: [] } as const;

describe('a way', () => {
  test('goes on beyond 180°, through the same places', () => {
    fc.assert(
      fc.property(fc.array(PLACE), (points) => {
        const way = unwrapped(points);
        way.forEach(([lng, lat], index) => {
          assert.ok(Math.abs(turn(lng - (points[index]?.lng ?? 0))) < 1e-9 && lat === points[index]?.lat);
          if (index > 0) assert.ok(Math.abs(lng - (way[index - 1]?.[0] ?? 0)) <= 180 + 1e-9);
        });
      }),
    );
  });
  test('has bounds around all its points, and none that are narrower', () => {
    fc.assert(
      fc.property(fc.array(PLACE, { minLength: 1, maxLength: 8 }), (points) => {
        const [west, south, east, north] = boundsOf(points) as [number, number, number, number];
        const eastOf = (from: number, lng: number) => (((lng - from) % 360) + 360 + 1e-9) % 360;
        const widths = points.map(({ lng: from }) => Math.max(...points.map(({ lng }) => eastOf(from, lng))));
        assert.ok(Math.abs(east - west - Math.min(...widths)) < 1e-6);
        for (const { lng, lat } of points)
          assert.ok(eastOf(west, lng) <= east - west + 1e-6 && lat >= south && lat <= north);
      }),
    );
    assert.equal(boundsOf([]), null);
    // With an east that rounding puts a little to the west of west, a map shows the whole world.
    for (const lng of [12.4837313, -179.9999999, 180, 0.1 + 0.2])
      assert.deepEqual(boundsOf([{ lat: 41.9, lng }]), [lng, 41.9, lng, 41.9]);
  });
});

test('a circle is one on the ellipsoid, within half a per cent, across 180° too', () => {
  fc.assert(
    fc.property(PLACE, fc.double({ min: 10, max: 100_000, noNaN: true }), (center, radius_m) => {
      const feature = areaFeature({ ...circle, center, radius_m }, {});
      for (const [lng = 0, lat = 0] of (feature as { geometry: Polygon }).geometry.coordinates[0] ?? [])
        assert.ok(Math.abs(metres(center, { lng, lat }) / radius_m - 1) < 0.006);
    }),
  );
});

test('a place in a distance is that far away', () => {
  fc.assert(
    fc.property(PLACE, fc.double({ min: 1, max: 1e6, noNaN: true }), fc.nat(359), (from, far, bearing) => {
      assert.ok(Math.abs(distanceM(from, destination(from, far, bearing)) / far - 1) < 1e-6);
    }),
  );
});

test('what is not yet an area is drawn as far as it goes', () => {
  const points = [{ lng: 0, lat: 0 }, { lng: 1, lat: 0 }, { lng: 1, lat: 1 }]; // biome-ignore format: one line
  const drawn = (type: 'polygon' | 'polyline', count: number) =>
    areaFeature(
      { type, center: { lng: 0, lat: 0 }, radius_m: null, buffer_m: 50, points: points.slice(0, count) },
      {},
    )?.geometry.type;
  assert.deepEqual(
    [drawn('polygon', 1), drawn('polygon', 2), drawn('polygon', 3), drawn('polyline', 3)],
    [undefined, 'LineString', 'Polygon', 'LineString'],
  );
});
