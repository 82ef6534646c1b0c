import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type Box, boxOf, isWithin, widened } from '../../../src/console/page/map/box.ts';

const share = fc.double({ min: 0, max: 1, noNaN: true });
/** A box as a map has it: its longitudes continue beyond 180. */
const mapBox: fc.Arbitrary<Box> = fc
  .tuple(fc.double({ min: -720, max: 720, noNaN: true }), share, share, share)
  .map(([west, width, a, b]) => {
    const [low, high] = [Math.min(a, b), Math.max(a, b)];
    return { west, east: west + 400 * width ** 2, south: -90 + 180 * low, north: -90 + 180 * high };
  });

/** By the rule of the API. */
function has({ west, south, east, north }: Box, lng: number, lat: number): boolean {
  const isInWidth = west <= east ? lng >= west && lng <= east : lng >= west || lng <= east;
  return isInWidth && lat >= south && lat <= north;
}

const wrapped = (lng: number): number => lng - 360 * Math.floor((lng + 180) / 360);

describe('the box of a view', () => {
  test('is one that the API reads, with all that the map shows, and the wider one has all of it', () => {
    fc.assert(
      fc.property(mapBox, share, share, (shown, dx, dy) => {
        const box = boxOf(shown);
        for (const one of [box, widened(box)]) {
          for (const lng of [one.west, one.east]) assert.ok(lng >= -180 && lng <= 180);
          assert.ok(one.south >= -90 && one.south <= one.north && one.north <= 90);
          const lng = wrapped(shown.west + (0.001 + 0.998 * dx) * (shown.east - shown.west));
          const lat = shown.south + dy * (shown.north - shown.south);
          if (shown.east - shown.west > 1e-6) assert.ok(has(one, lng, lat), `${lng} ${lat}`);
        }
        assert.ok(isWithin(box, widened(box)));
        assert.ok(
          !isWithin(widened(box), box) || box.east - box.west === 360 || shown.east - shown.west < 1e-9,
        );
      }),
    );
  });

  test('ends at 180° where it does not cross it', () => {
    const shown = { west: 0, south: 0, east: 180, north: 1 };
    assert.deepEqual(boxOf(shown), shown);
    assert.equal(widened({ ...shown, east: 120 }).east, 180);
  });

  test('is within another one when each of its corners is, and it is no wider', () => {
    fc.assert(
      fc.property(mapBox, mapBox, (a, b) => {
        const [inner, outer] = [boxOf(a), boxOf(b)];
        const corners = [inner.west, inner.east].every(
          (lng) => has(outer, lng, inner.south) && has(outer, lng, inner.north),
        );
        if (isWithin(inner, outer)) assert.ok(corners || outer.east - outer.west === 360);
      }),
    );
  });
});
