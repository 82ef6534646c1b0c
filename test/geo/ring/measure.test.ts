import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import geodesic from 'geographiclib-geodesic';
import { circleMeasures, pathLengthM, ringCentroid, ringMeasures } from '../../../src/geo/measure.ts';
import { unwrapLine, unwrapRing } from '../../../src/geo/path.ts';
import type { LatLng } from '../../../src/geo/wgs84.ts';
import { runs } from '../../support/torture.ts';
import {
  missingRealData,
  parsePoints,
  polarRings,
  readReference,
  realBoundaries,
  rotated,
  starRings,
  toPoints,
} from '../shapes.ts';

interface Figures {
  readonly areaM2: number;
  readonly perimeterM: number;
}

interface Reference {
  readonly polygons: readonly {
    readonly name: string;
    readonly points: string;
    readonly geodesic: Figures;
    readonly straight: Figures;
    readonly centroid: LatLng;
  }[];
  readonly tracks: readonly {
    readonly name: string;
    readonly points: string;
    readonly geodesicM: number;
    readonly straightM: number;
  }[];
}

const reference = readReference<Reference>('geometry-measures.json');
const EARTH_M2 = 510_065_621_724_088;

describe('measures agree with PostGIS', () => {
  for (const { name, points, geodesic: plain, straight, centroid } of reference.polygons) {
    test(`area, perimeter and centroid: ${name}`, () => {
      const ring = unwrapRing(parsePoints(points));
      const { areaM2, perimeterM } = ringMeasures(ring);
      assertClose(areaM2, straight.areaM2, 2e-9);
      assertClose(perimeterM, straight.perimeterM, 1e-10);
      // Next to a pole a parallel is far from a geodesic.
      const tolerance = ring.lats[0]! > 88 ? 0.002 : 0.001;
      assertClose(areaM2, plain.areaM2, tolerance);
      assertClose(perimeterM, plain.perimeterM, tolerance);
      const { lat, lng } = ringCentroid(ring);
      assert.ok(
        Math.abs(lat - centroid.lat) < 1e-11 && Math.abs(lng - centroid.lng) < 1e-11,
        `${lng} ${lat}`,
      );
    });
  }

  for (const { name, points, geodesicM, straightM } of reference.tracks) {
    test(`length: ${name}`, () => {
      const lengthM = pathLengthM(unwrapLine(parsePoints(points)));
      assertClose(lengthM, straightM, 1e-10);
      assertClose(lengthM, geodesicM, 0.001);
    });
  }
});

describe('measures of large shapes follow edges that are straight in longitude and latitude', () => {
  test('an octant, a hemisphere, the Earth', () => {
    assertClose(area('0 0, 90 0, 90 90, 0 90'), EARTH_M2 / 8, 1e-12);
    assertClose(area('-180 0, -90 0, 0 0, 90 0, 180 0, 180 90, -180 90'), EARTH_M2 / 2, 1e-12);
    assertClose(area('-180 -90, 180 -90, 180 90, -180 90'), EARTH_M2, 1e-12);
  });

  test('both sides of a ring around a pole make up the Earth', () => {
    const smaller = area('-180 60, -60 70, 60 50, 180 60');
    const larger = area('-180 60, -60 70, 60 50, 180 60, 180 -90, -180 -90');
    assertClose(smaller + larger, EARTH_M2, 1e-12);
    assertClose(area('-180 60, -60 70, 60 50, 180 60, 180 90, -180 90'), smaller, 1e-12);
  });

  test('a meridian from pole to pole, a parallel, an edge into a pole', () => {
    assertClose(length('10 -90, 10 90'), 20003931.4586254, 1e-10);
    assertClose(length('-90 60, 90 60'), Math.PI * 3197104.587, 1e-9);
    assertClose(length('0 80, 170 90'), bySmallSteps('0 80, 170 90'), 1e-6);
  });

  test('as GeographicLib measures them in small steps', () => {
    fc.assert(
      fc.property(fc.oneof(starRings(7), polarRings), (points) => {
        const dense = densified(unwrapRing(points));
        const polygon = geodesic.Geodesic.WGS84.Polygon(false);
        for (const { lat, lng } of dense) polygon.AddPoint(lat, lng);
        const { area: areaM2, perimeter } = polygon.Compute(false, true) as {
          area: number;
          perimeter: number;
        };
        const measured = ringMeasures(unwrapRing(points));
        const smaller = Math.min(Math.abs(areaM2), EARTH_M2 - Math.abs(areaM2));
        assertClose(measured.areaM2, smaller, 1e-5);
        assertClose(measured.perimeterM, perimeter, 1e-5);
      }),
      { seed: 14, numRuns: runs(10) },
    );
  });
});

describe('measures', () => {
  test('do not depend on the first vertex or the winding', () => {
    fc.assert(
      fc.property(fc.oneof(starRings(50), polarRings), fc.nat(), (points, by) => {
        const expected = ringMeasures(unwrapRing(points));
        for (const variant of [rotated(points, by), rotated(points, by).reverse()]) {
          const ring = unwrapRing(variant);
          const { areaM2, perimeterM } = ringMeasures(ring);
          assertClose(areaM2, expected.areaM2, 1e-11);
          assertClose(perimeterM, expected.perimeterM, 1e-12);
          const [a, b] = [ringCentroid(ring), ringCentroid(unwrapRing(points))];
          assert.ok(Math.abs(a.lat - b.lat) < 1e-9);
        }
      }),
      { seed: 15, numRuns: runs(20) },
    );
  });

  test('of a circle are those of a polygon of many points on it', () => {
    for (const [lat, radiusM] of [
      [0, 25],
      [42, 1000],
      [-66, 100_000],
      [89.9, 50_000],
    ] as const) {
      const polygon = geodesic.Geodesic.WGS84.Polygon(false);
      for (let k = 0; k < 7200; k++) {
        const { lat2, lon2 } = geodesic.Geodesic.WGS84.Direct(lat, 10, -k / 20, radiusM);
        polygon.AddPoint(lat2 as number, lon2 as number);
      }
      const { area: areaM2, perimeter } = polygon.Compute(false, true) as { area: number; perimeter: number };
      const circle = circleMeasures(lat, radiusM);
      assertClose(circle.areaM2, Math.abs(areaM2), 1e-6);
      assertClose(circle.perimeterM, perimeter, 1e-6);
    }
  });
});

describe('the centroid', () => {
  test('of a ring around a pole is the middle of its area on the sphere', () => {
    const cap = ringCentroid(unwrapRing(parsePoints('0 60, 90 60, 180 60, -90 60')));
    assert.ok(cap.lat > 89.999999);
    // A cap of 10° around 85° north on the meridian of 30° east.
    const points = Array.from({ length: 360 }, (_, k) => {
      const { lat2, lon2 } = geodesic.Geodesic.WGS84.Direct(85, 30, k, 1_110_000);
      return { lat: lat2 as number, lng: lon2 as number };
    });
    for (const variant of [points, points.toReversed()]) {
      const { lat, lng } = ringCentroid(unwrapRing(variant));
      assert.ok(Math.abs(lat - 85) < 0.02 && Math.abs(lng - 30) < 0.1, `${lng} ${lat}`);
      const mirrored = ringCentroid(unwrapRing(variant.map((p) => ({ lat: -p.lat, lng: p.lng }))));
      assert.ok(Math.abs(mirrored.lat + lat) < 1e-9 && Math.abs(mirrored.lng - lng) < 1e-9);
    }
  });

  test('over the antimeridian has a longitude from -180 to 180', () => {
    const { lat, lng } = ringCentroid(unwrapRing(parsePoints('179 0, -177 0, -177 2, 179 2')));
    assert.ok(Math.abs(lng + 179) < 1e-12 && Math.abs(lat - 1) < 1e-12);
  });
});

describe('real boundaries', { skip: missingRealData('boundaries.json.gz') }, () => {
  test('measure as PostGIS measures them', () => {
    for (const { name, rings, ref } of realBoundaries().municipalities) {
      if (rings.length > 1) continue;
      const ring = unwrapRing(toPoints(rings[0]!.slice(0, -1)));
      const { areaM2, perimeterM } = ringMeasures(ring);
      assertClose(areaM2, ref.area, 3e-5, name);
      assertClose(perimeterM, ref.perimeter, 3e-5, name);
      const { lat, lng } = ringCentroid(ring);
      assert.ok(Math.hypot(lat - ref.centroid[1], lng - ref.centroid[0]) < 1e-6, name);
    }
  });
});

const area = (text: string) => ringMeasures(unwrapRing(parsePoints(text))).areaM2;
const length = (text: string) => pathLengthM(unwrapLine(parsePoints(text)));

/** Points so close together on the edges that geodesics between them are straight in longitude and latitude too. */
function densified(
  { lngs, lats }: { lngs: readonly number[]; lats: readonly number[] },
  stepDegrees = 0.05,
): LatLng[] {
  const points: LatLng[] = [];
  for (let i = 1; i < lngs.length; i++) {
    const [dLat, dLng] = [lats[i]! - lats[i - 1]!, lngs[i]! - lngs[i - 1]!];
    const steps = Math.max(20, Math.ceil(Math.max(Math.abs(dLat), Math.abs(dLng)) / stepDegrees));
    for (let k = 0; k < steps; k++)
      points.push({ lat: lats[i - 1]! + (k / steps) * dLat, lng: lngs[i - 1]! + (k / steps) * dLng });
  }
  return points;
}

function bySmallSteps(text: string): number {
  const path = unwrapLine(parsePoints(text));
  const points = [...densified(path, 0.01), { lat: path.lats.at(-1)!, lng: path.lngs.at(-1)! }];
  return points.slice(1).reduce((sum, to, i) => {
    const from = points[i]!;
    return sum + (geodesic.Geodesic.WGS84.Inverse(from.lat, from.lng, to.lat, to.lng).s12 as number);
  }, 0);
}

function assertClose(actual: number, expected: number, relative: number, message = ''): void {
  assert.ok(Math.abs(actual / expected - 1) <= relative, `${message} ${actual} instead of ${expected}`);
}
