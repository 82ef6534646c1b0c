import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { corridorParts } from '../../src/geo/corridorParts.ts';
import { type Bounds, circleBounds, indexBoxes } from '../../src/geo/measure.ts';
import { unwrapLine } from '../../src/geo/path.ts';
import { distanceM, type LatLng } from '../../src/geo/wgs84.ts';
import { runs } from '../support/torture.ts';
import { parsePoints, turnedLng } from './shapes.ts';

const partsOf = (points: readonly LatLng[], bufferM = 50): Bounds[] =>
  corridorParts(unwrapLine(points), bufferM);

const holds = (parts: readonly Bounds[], lat: number, lng: number): boolean =>
  parts
    .flatMap(indexBoxes)
    .some(({ minX, minY, maxX, maxY }) => lng >= minX && lng <= maxX && lat >= minY && lat <= maxY);

describe('the parts of a corridor', () => {
  const rows: readonly (readonly [name: string, track: LatLng[], most: number])[] = [
    ['a slanting line', parsePoints('-60 -40, 80 50'), 0.13],
    ['a slanting line over 180°', parsePoints('150 -40, -130 50'), 0.13],
    [
      'a line three times around',
      Array.from({ length: 12 }, (_, n) => ({ lat: 5 * n, lng: turnedLng(100 * n) })),
      0.13,
    ],
    ['a line with a bend', parsePoints('0 0, 60 0, 60 60'), 0.01],
    [
      'to and fro on one slanting line',
      Array.from({ length: 500 }, (_, n) => ({
        lat: n % 2 === 0 ? -60 : 60,
        lng: (n % 2 === 0 ? 10 : 150) + n / 1e3,
      })),
      0.14,
    ],
  ];
  for (const [name, track, most] of rows) {
    test(`leave out most of the map around ${name}`, () => {
      const parts = partsOf(track);
      assert.ok(parts.length > 1 && parts.length <= 8, `${parts.length} parts`);
      const { lngs, lats } = unwrapLine(track);
      const whole = (Math.max(...lngs) - Math.min(...lngs)) * (Math.max(...lats) - Math.min(...lats));
      const boxes = parts.flatMap(indexBoxes);
      const share =
        boxes.reduce((sum, box) => sum + Math.abs(box.maxX - box.minX) * (box.maxY - box.minY), 0) / whole;
      assert.ok(share < most, `${share} of the whole box`);
    });
  }

  test('are one where nothing would be left out, and of what is small', () => {
    for (const track of [
      parsePoints('12.4 41.8, 12.6 42'),
      parsePoints('-170 0, 10 0'),
      parsePoints('10 -80, 10 80'),
      Array.from({ length: 900 }, (_, n) => ({ lat: n % 2 === 0 ? -80 : 80, lng: -179 + n / 3 })),
    ]) {
      assert.equal(partsOf(track).length, 1);
    }
  });

  test('hold every position within the margin, at poles and 180° too, and are at most eight', () => {
    const degrees = (most: number) =>
      fc.integer({ min: -most * 1000, max: most * 1000 }).map((n) => n / 1000);
    const corner = fc.record({
      lat: fc.oneof(degrees(90), fc.constantFrom(-90, 90, 89.99)),
      lng: fc.oneof(degrees(180), fc.constantFrom(-180, 180)),
    });
    const turning = fc
      .tuple(fc.integer({ min: -8, max: 8 }), degrees(170))
      .map(([climb, east]) =>
        Array.from({ length: 12 }, (_, n) => ({ lat: climb * n, lng: turnedLng(n * east) })),
      );
    const unit = fc.integer({ min: 0, max: 1000 }).map((n) => n / 1000);
    const place = fc.tuple(unit, unit, unit);
    fc.assert(
      fc.property(
        fc.oneof(fc.array(corner, { minLength: 2, maxLength: 12, size: 'max' }), turning),
        fc.array(place, { minLength: 20, maxLength: 20 }),
        fc.constantFrom(5, 5_000),
        (points, places, bufferM) => {
          const path = unwrapLine(points);
          const parts = corridorParts(path, bufferM);
          assert.ok(parts.length >= 1 && parts.length <= 8);
          for (const [where, north, east] of places) {
            const edge = Math.min(points.length - 2, Math.floor(where * (points.length - 1)));
            const t = Math.min(1, where * (points.length - 1) - edge);
            const at = {
              lat: path.lats[edge]! + t * (path.lats[edge + 1]! - path.lats[edge]!),
              lng: turnedLng(path.lngs[edge]! + t * (path.lngs[edge + 1]! - path.lngs[edge]!)),
            };
            const reach = circleBounds(at, bufferM);
            const height = reach.north - reach.south;
            const width = (reach.east - reach.west + 360) % 360;
            const near = { lat: reach.south + north * height, lng: turnedLng(reach.west + east * width) };
            if (distanceM(at.lat, at.lng, near.lat, near.lng) > bufferM) continue;
            const names = Math.abs(near.lng) === 180 ? [180, -180] : [near.lng];
            for (const lng of names) assert.ok(holds(parts, near.lat, lng), `${near.lat} ${lng}`);
          }
        },
      ),
      { seed: 33, numRuns: runs(300) },
    );
  });
});
