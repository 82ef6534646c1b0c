import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import geodesic from 'geographiclib-geodesic';
import {
  type AreaGeometry,
  type AreaMeasures,
  areaMeasures,
  toLatLngs,
  toVertices,
} from '../../src/areas/area.ts';
import { compileShape } from '../../src/areas/shape.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';
import { runs } from '../support/torture.ts';
import { anySoundGeometry, round, wrapLng } from './definitions.ts';

const at = (lat: number, lng: number): LatLng => ({ lat, lng });
const polygon = (...points: LatLng[]): AreaGeometry => ({ type: 'polygon', points: toVertices(points) });
const track = (...points: LatLng[]): AreaGeometry => ({
  type: 'polyline',
  points: toVertices(points),
  bufferM: 50,
});
const SQUARE = [at(41.9, 12.4), at(41.9, 12.5), at(42, 12.5), at(42, 12.4)];
const FIJI = [at(-16, 177), at(-19, 177), at(-19, -178), at(-16, -178)];

describe('each type has the measures that the API document gives it', () => {
  const center = at(41.9, 12.5);
  const rows: readonly (readonly [
    title: string,
    geometry: AreaGeometry,
    measures: string[],
    center: LatLng | null,
  ])[] = [
    ['a circle', { type: 'circle', center, radiusM: 100 }, ['areaM2', 'perimeterM'], center],
    ['a place', { type: 'point', center, radiusM: 100 }, [], center],
    ['a track', track(...SQUARE), ['lengthM'], null],
    ['a polygon', polygon(...SQUARE), ['areaM2', 'perimeterM'], at(41.95, 12.45)],
    ['a polygon over the antimeridian', polygon(...FIJI), ['areaM2', 'perimeterM'], at(-17.5, 179.5)],
  ];
  for (const [title, geometry, measures, expected] of rows) {
    test(title, () => {
      const computed = areaMeasures(geometry);
      for (const figure of ['areaM2', 'perimeterM', 'lengthM'] as const) {
        assert.equal(computed[figure] !== null, measures.includes(figure), figure);
      }
      if (expected === null) assert.equal(computed.center, null);
      else assertNear(computed.center, expected);
    });
  }
});

describe('metrics are those of GeographicLib', () => {
  const { WGS84 } = geodesic.Geodesic;
  const ring = (points: readonly LatLng[], polyline: boolean) => {
    const sum = WGS84.Polygon(polyline);
    for (const { lat, lng } of points) sum.AddPoint(lat, lng);
    return sum.Compute(false, true);
  };

  test('a polygon of 10 km', () => {
    const { area, perimeter } = ring(SQUARE, false);
    const { areaM2, perimeterM } = areaMeasures(polygon(...SQUARE));
    assertShare(areaM2, area ?? 0, 1e-4);
    assertShare(perimeterM, perimeter, 1e-4);
  });

  test('a track of 10 km', () => {
    assertShare(areaMeasures(track(...SQUARE)).lengthM, ring(SQUARE, true).perimeter, 1e-4);
  });
});

describe('bounds hold all that is inside', () => {
  const rows: readonly (readonly [title: string, geometry: AreaGeometry, bounds: AreaMeasures['bounds']])[] =
    [
      ['a polygon', polygon(...SQUARE), { south: 41.9, west: 12.4, north: 42, east: 12.5 }],
      [
        'over the antimeridian west is greater',
        polygon(...FIJI),
        { south: -19, west: 177, north: -16, east: -178 },
      ],
      [
        'around the pole all longitudes',
        polygon(at(70, 0), at(70, 120), at(71, -120)),
        { south: 70, west: -180, north: 90, east: 180 },
      ],
    ];
  for (const [title, geometry, bounds] of rows) {
    test(title, () => assert.deepEqual(areaMeasures(geometry).bounds, bounds));
  }

  test('whatever it is, its radius and margin included', () => {
    let inside = 0;
    const nudge = fc.double({ min: -1, max: 1, noNaN: true });
    const property = fc.property(
      anySoundGeometry,
      fc.array(fc.tuple(fc.nat(), nudge, nudge), { minLength: 20, maxLength: 20 }),
      (geometry, nudges) => {
        const shape = compileShape(geometry);
        const { bounds, center } = areaMeasures(geometry);
        const vertices = 'points' in geometry ? toLatLngs(geometry.points) : [geometry.center];
        const near = nudges.map(([k, north, east], i) => {
          const vertex = vertices[k % vertices.length]!;
          const reach = 10 ** -(i % 6);
          return at(
            round(Math.max(-90, Math.min(90, vertex.lat + north * reach))),
            wrapLng(vertex.lng + east * reach),
          );
        });
        for (const position of near.filter(({ lat, lng }) => shape.contains(lat, lng))) {
          inside++;
          assert.ok(
            Math.abs(position.lat) === 90 || isWithin(bounds, position),
            JSON.stringify({ bounds, position }),
          );
        }
        if (center) assert.ok(isWithin(bounds, center), JSON.stringify({ bounds, center }));
      },
    );
    fc.assert(property, { seed: 20_260_315, numRuns: runs(125) });
    assert.ok(inside > 500, `only ${inside} inside`);
  });
});

test('the centre of a sliver, whose area is lost in rounding, is within its bounds', () => {
  const property = fc.property(
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.double({ min: 1, max: 2, noNaN: true }),
    fc.constantFrom(0, 179.5),
    (lat, lng, stretch, west) => {
      const sliver = polygon(
        at(0, west),
        at(lat, wrapLng(west + lng)),
        at(lat * stretch, wrapLng(west + lng * stretch)),
      );
      const { bounds, center } = areaMeasures(sliver);
      assert.ok(center && isWithin(bounds, center), JSON.stringify({ bounds, center }));
    },
  );
  fc.assert(property, { seed: 20_260_315, numRuns: runs(250) });
});

function isWithin({ south, west, north, east }: AreaMeasures['bounds'], { lat, lng }: LatLng): boolean {
  const names = Math.abs(lng) === 180 ? [180, -180] : [lng];
  const spans = (name: number) => (west > east ? name >= west || name <= east : name >= west && name <= east);
  return lat >= south && lat <= north && names.some(spans);
}

function assertNear(actual: LatLng | null, expected: LatLng): void {
  assert.ok(actual !== null);
  assert.ok(
    Math.abs(actual.lat - expected.lat) < 1e-9 && Math.abs(actual.lng - expected.lng) < 1e-9,
    JSON.stringify(actual),
  );
}

function assertShare(actual: number | null, expected: number, share: number): void {
  assert.ok(Math.abs((actual ?? Number.NaN) / expected - 1) < share, `${actual} ${expected}`);
}
