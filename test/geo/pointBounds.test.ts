import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { pointBounds } from '../../src/history/packing.sql.ts';

const lats = fc.double({ min: -90, max: 90, noNaN: true });
const lngs = fc.oneof(
  fc.double({ min: -180, max: 180, noNaN: true }),
  fc.double({ min: 179, max: 180, noNaN: true }),
  fc.double({ min: -180, max: -179, noNaN: true }),
  fc.constantFrom(-180, 180, 0, -0),
);
const widthOf = (west: number, east: number): number => (west <= east ? east - west : east - west + 360);

test('the bounds hold every position, and are as narrow as the widest gap between two allows', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(lats, lngs), { minLength: 1, maxLength: 20 }), (points) => {
      const bounds = pointBounds(
        Float64Array.from(points, ([lat]) => lat),
        Float64Array.from(points, ([, lng]) => lng),
      );
      const { south, west, north, east } = bounds;
      for (const [lat, lng] of points) {
        assert.ok(lat >= south && lat <= north);
        assert.ok(west <= east ? lng >= west && lng <= east : lng >= west || lng <= east);
      }
      const plain = Math.max(...points.map(([, lng]) => lng)) - Math.min(...points.map(([, lng]) => lng));
      assert.ok(widthOf(west, east) <= plain);
      const around = points.map(([, lng]) => (lng < 0 ? lng + 360 : lng));
      const crossing = Math.max(...around) - Math.min(...around);
      assert.ok(widthOf(west, east) <= crossing + 1e-9 || plain <= crossing);
    }),
  );
});

test('a drive over 180° has a narrow box that crosses it', () => {
  assert.deepEqual(pointBounds(Float64Array.of(-17, -16.9), Float64Array.of(179.9, -179.8)), {
    south: -17,
    west: 179.9,
    north: -16.9,
    east: -179.8,
  });
});
