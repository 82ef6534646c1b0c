import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import geodesic from 'geographiclib-geodesic';
import { toVertices } from '../../src/areas/area.ts';
import { toShape } from '../../src/areas/shape.ts';
import { buildRingIndex } from '../../src/geo/edgeIndex.ts';
import {
  type Bounds,
  circleBounds,
  corridorBounds,
  type IndexBox,
  indexBoxes,
  ringBounds,
} from '../../src/geo/measure.ts';
import { unwrapLine, unwrapRing } from '../../src/geo/path.ts';
import { ringSide } from '../../src/geo/ringSide.ts';
import { distanceM } from '../../src/geo/wgs84.ts';
import { runs } from '../support/torture.ts';
import { parsePoints, starRings, wrapLng } from './shapes.ts';

const degrees = (min: number, max: number) => fc.double({ min, max, noNaN: true });
const lats = fc.oneof(degrees(-90, 90), degrees(88.9, 90), degrees(-90, -88.9), fc.constantFrom(-90, 0, 90));
const lngs = fc.oneof(
  degrees(-180, 180),
  degrees(179.5, 180),
  degrees(-180, -179.5),
  fc.constantFrom(-180, 180),
);
const radii = fc.oneof(degrees(1, 100), degrees(100, 5000), degrees(5000, 100_000));

/** "south west north east" */
function parseBounds(text: string): Bounds {
  const [south = 0, west = 0, north = 0, east = 0] = text.split(' ').map(Number);
  return { south, west, north, east };
}

const rings: readonly (readonly [name: string, points: string, expected: string])[] = [
  ['an ordinary ring', '10 5, 12 6, 11 8', '5 10 8 12'],
  ['over the antimeridian', '178.1 -17, -179.3 -16, 179 -15', '-17 178.1 -15 -179.3'],
  ['from its east side, to the last digit', '-60.1 1, 179.7 2, -60.3 3, -100 0', '0 179.7 3 -60.1'],
  ['beside the antimeridian in the east', '180 0, -170 0, 180 5', '0 -180 5 -170'],
  ['beside it in the west', '-180 0, 170 0, -180 5', '0 170 5 180'],
  ['around the north pole', '0 60, 120 65, -120 70', '60 -180 90 180'],
  ['around the south pole', '0 -60, 120 -65, -120 -70', '-90 -180 -60 180'],
  ['a sector', '0 60, 90 60, 90 90, 0 90', '60 0 90 90'],
  ['a band', '-180 -10, 0 -10, 180 -10, 180 10, 0 10, -180 10', '-10 -180 10 180'],
  ['from another meridian', '0 -9, 120 -9, -120 -9, 0 -9, 0 9, -120 9, 120 9, 0 9', '-9 -180 9 180'],
];

describe('ringBounds', () => {
  for (const [name, points, expected] of rings) {
    test(`bounds of a ring: ${name}`, () =>
      assert.deepEqual(ringBounds(unwrapRing(parsePoints(points))), parseBounds(expected)));
  }
});

describe('circleBounds', () => {
  test('bounds of a circle hold every position of it', () => {
    fc.assert(
      fc.property(
        lats,
        lngs,
        radii,
        fc.array(fc.tuple(degrees(0, 360), degrees(0, 1)), { minLength: 12 }),
        (lat, lng, radiusM, rays) => {
          const bounds = circleBounds({ lat, lng }, radiusM);
          for (const [azimuth, share] of [...rays, ...CARDINAL]) {
            const { lat2, lon2 } = geodesic.Geodesic.WGS84.Direct(lat, lng, azimuth, radiusM * share);
            if (distanceM(lat, lng, lat2 as number, lon2 as number) > radiusM) continue;
            assertHolds(bounds, lat2 as number, wrapLng(lon2 as number));
          }
        },
      ),
      { seed: 11, numRuns: runs(75) },
    );
  });

  test('bounds of a circle are at most two millionths of its radius and 2 mm too large', () => {
    for (const radiusM of [50, 1000, 100_000]) {
      for (const lat of [0, 42, -66, 80]) {
        const { south, west, north, east } = circleBounds({ lat, lng: 10 }, radiusM);
        const to = (azimuth: number) => geodesic.Geodesic.WGS84.Direct(lat, 10, azimuth, radiusM);
        const tolerance = (2e-6 * radiusM + 0.002) / 110_000;
        assert.ok(
          Math.abs(north - (to(0).lat2 as number)) < tolerance &&
            Math.abs(south - (to(180).lat2 as number)) < tolerance,
        );
        const reach = Math.max(...Array.from({ length: 3601 }, (_, k) => to(60 + k / 100).lon2 as number));
        const wide = tolerance / Math.cos((lat * Math.PI) / 180);
        assert.ok(east - reach > 0 && east - reach < 2 * wide, `${lat} ${radiusM}: ${east} ${reach}`);
        assert.ok(Math.abs(10 - west - (east - 10)) < 1e-12);
      }
    }
  });

  test('bounds of a circle around a pole span all longitudes', () => {
    const whole = { west: -180, north: 90, east: 180 };
    assert.deepEqual(pick(circleBounds({ lat: 89.9, lng: 12 }, 20_000)), whole);
    assert.deepEqual(pick(circleBounds({ lat: 90, lng: 12 }, 50)), whole);
    assert.equal(circleBounds({ lat: -90, lng: 0 }, 50).south, -90);
    assert.ok(circleBounds({ lat: 89.9, lng: 12 }, 20_000).south < 89.73);
  });

  test('bounds of a circle over the antimeridian have west greater than east', () => {
    const bounds = circleBounds({ lat: -17, lng: 180 }, 1000);
    assert.ok(bounds.west > 179.9 && bounds.east < -179.9);
    assert.deepEqual(circleBounds({ lat: -17, lng: -180 }, 1000), bounds);
  });
});

describe('corridorBounds', () => {
  test('bounds of a corridor hold every position within its margin', () => {
    const corner = fc.tuple(degrees(-1, 1), degrees(-1, 1));
    const place = fc.record({ lat: lats, lng: lngs, size: fc.constantFrom(0.001, 0.1, 5, 60) });
    fc.assert(
      fc.property(
        place,
        fc.array(corner, { minLength: 2, maxLength: 6 }),
        degrees(5, 5000),
        (at, corners, bufferM) => {
          const points = corners.map(([y, x]) => ({
            lat: Math.max(-90, Math.min(90, at.lat + at.size * y)),
            lng: wrapLng(at.lng + at.size * x),
          }));
          const path = unwrapLine(points);
          const shape = toShape({ type: 'polyline', points: toVertices(points), bufferM });
          const bounds = corridorBounds(path, bufferM);
          for (let i = 1; i < path.lngs.length; i++) {
            for (let k = 0; k <= 36; k++) {
              const t = (k % 7) / 6;
              const lat = path.lats[i - 1]! + t * (path.lats[i]! - path.lats[i - 1]!);
              const lng = path.lngs[i - 1]! + t * (path.lngs[i]! - path.lngs[i - 1]!);
              const { lat2, lon2 } = geodesic.Geodesic.WGS84.Direct(lat, lng, k * 10, bufferM * 0.9999999);
              const position = [lat2 as number, wrapLng(lon2 as number)] as const;
              if (shape.contains(...position)) assertHolds(bounds, ...position);
            }
          }
        },
      ),
      { seed: 12, numRuns: runs(30) },
    );
  });

  test('bounds of a corridor that meet behind the Earth span all longitudes', () => {
    const around = unwrapLine(parsePoints('-179.99 10, 0 10, 179.99 10'));
    const { west, east } = corridorBounds(around, 5000);
    assert.deepEqual([west, east], [-180, 180]);
  });
});

describe('indexBoxes', () => {
  const cases: readonly (readonly [name: string, bounds: string, boxes: number])[] = [
    ['one box', '0 10 5 20', 1],
    ['two over the antimeridian', '0 170 5 -170', 2],
    ['two beside it, which has two names', '0 170 5 180', 2],
    ['two beside it in the east', '0 -180 5 -170', 2],
    ['two for a line along it', '0 -180 5 -180', 2],
    ['one for all longitudes', '0 -180 5 180', 1],
    ['one at a pole, which has all longitudes', '60 10 90 20', 1],
    ['one at the other pole', '-90 170 -60 -170', 1],
  ];
  for (const [name, text, count] of cases) {
    test(`index boxes: ${name}`, () => {
      const bounds = parseBounds(text);
      const boxes = indexBoxes(bounds);
      assert.equal(boxes.length, count);
      const { south, north } = bounds;
      for (const lng of [bounds.west, bounds.east]) {
        for (const lat of [south, (south + north) / 2, north]) {
          assert.ok(found(boxes, lat, lng) && found(boxes, lat, Math.abs(lng) === 180 ? -lng : lng));
          if (Math.abs(lat) === 90) assert.ok(found(boxes, lat, 77));
        }
      }
      for (const { minX, minY, maxX, maxY } of boxes)
        assert.ok(minX >= -180 && maxX <= 180 && minX < maxX && minY < maxY);
    });
  }

  test('index boxes hold every position inside a polygon', () => {
    fc.assert(
      fc.property(starRings(30), degrees(-1, 1), degrees(-1, 1), (points, y, x) => {
        const ring = unwrapRing(points);
        const boxes = indexBoxes(ringBounds(ring));
        const at = { lat: points[0]!.lat + 15 * y, lng: wrapLng(points[0]!.lng + 15 * x) };
        for (const { lat, lng } of [...points, at]) {
          if (ringSide(buildRingIndex(ring), lat, lng) !== 'out') assert.ok(found(boxes, lat, lng));
        }
      }),
      { seed: 13, numRuns: runs(50) },
    );
  });
});

const CARDINAL = [0, 90, 180, 270].map((azimuth) => [azimuth, 0.9999999999] as const);

const found = (boxes: readonly IndexBox[], lat: number, lng: number) =>
  boxes.some((box) => lng >= box.minX && lng <= box.maxX && lat >= box.minY && lat <= box.maxY);

const pick = ({ west, north, east }: Bounds) => ({ west, north, east });

function assertHolds({ south, west, north, east }: Bounds, lat: number, lng: number): void {
  const beside = west <= east ? lng >= west && lng <= east : lng >= west || lng <= east;
  assert.ok(beside && lat >= south && lat <= north, `${lng} ${lat} in ${west} ${south} ${east} ${north}`);
  assert.ok(found(indexBoxes({ south, west, north, east }), lat, lng));
}
