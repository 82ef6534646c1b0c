import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type AreaGeometry, type AreaMeasures, areaMeasures, toVertices } from '../../src/areas/area.ts';
import { toShape } from '../../src/areas/shape.ts';
import type { IndexBox } from '../../src/geo/measure.ts';
import { distanceM, type LatLng } from '../../src/geo/wgs84.ts';
import { runs } from '../support/torture.ts';
import { geometryAndPositions, wrapLng } from './definitions.ts';

const at = (lat: number, lng: number): LatLng => ({ lat, lng });
const polygon = (...points: LatLng[]): AreaGeometry => ({ type: 'polygon', points: toVertices(points) });
const circle = (center: LatLng, radiusM: number): AreaGeometry => ({ type: 'circle', center, radiusM });
const track = (bufferM: number, ...points: LatLng[]): AreaGeometry => ({
  type: 'polyline',
  points: toVertices(points),
  bufferM,
});

const FIJI = polygon(at(-16, 177), at(-19, 177), at(-19, -178), at(-16, -178));
const CHUKOTKA = track(5_000, at(66, 170), at(66.5, -175), at(66, -170));

describe('what an area contains, by its rule', () => {
  const rows: readonly (readonly [
    title: string,
    geometry: AreaGeometry,
    inside: LatLng[],
    outside: LatLng[],
  ])[] = [
    ['a circle', circle(at(41.9, 12.5), 100), [at(41.9, 12.5), at(41.90089, 12.5)], [at(41.90091, 12.5)]],
    [
      'a place',
      { type: 'point', center: at(0, 0), radiusM: 0.5 },
      [at(0, 0), at(0, 4.4e-6)],
      [at(0, 4.6e-6)],
    ],
    [
      'a circle on the date line',
      circle(at(0, 180), 100_000),
      [at(0, 179.2), at(0, -179.2), at(0.8, -180)],
      [at(0, 179), at(0, -179), at(0, 0)],
    ],
    [
      'a circle on the pole',
      circle(at(90, 45), 100_000),
      [at(90, -120), at(89.2, 45), at(89.2, -135), at(89.2, 180)],
      [at(89, 45), at(-90, 45)],
    ],
    [
      'Fiji',
      FIJI,
      [at(-17, 179), at(-17, -179), at(-17, 180), at(-17, -180), at(-16, 180), at(-18, 177)],
      [at(-17, 176.99), at(-17, -177.99), at(-17, 0), at(-15.99, 180)],
    ],
    [
      'a track through Chukotka',
      CHUKOTKA,
      [at(66, 170), at(66.333, 180), at(66.333, -180), at(66, -170), at(66.04, 170)],
      [at(66.333, 0), at(67, 180), at(66, -169.8), at(66, 169.8)],
    ],
    [
      'a ring around the pole',
      polygon(at(70, 0), at(70, 120), at(70, -120)),
      [at(90, 0), at(90, 77), at(70.1, 60), at(70, 90), at(80, -179)],
      [at(69.9, 0), at(0, 0), at(-90, 0)],
    ],
    [
      'a triangle that ends on the pole',
      polygon(at(80, 0), at(80, 40), at(90, 0)),
      [at(90, 0), at(90, -150), at(89, 2), at(80, 20)],
      [at(79.9, 20), at(89, 50), at(89, -1)],
    ],
    [
      'a side along the antimeridian, under both of its names',
      polygon(at(0, 170), at(0, 180), at(10, 180), at(10, 170)),
      [at(5, 180), at(5, -180), at(0, -180), at(5, 175)],
      [at(5, -179.9), at(11, 180)],
    ],
  ];
  for (const [title, geometry, inside, outside] of rows) {
    test(title, () => {
      const shape = toShape(geometry);
      for (const { lat, lng } of inside) {
        assert.ok(shape.contains(lat, lng), `${lat} ${lng} is inside`);
        assert.ok(shape.signedDistanceM(lat, lng) <= 0, `${lat} ${lng} has no distance`);
        assert.ok(inBoxes(shape.boxes(), lat, lng), `${lat} ${lng} is in a box`);
      }
      for (const { lat, lng } of outside) {
        assert.ok(!shape.contains(lat, lng), `${lat} ${lng} is outside`);
        assert.ok(shape.signedDistanceM(lat, lng) > 0, `${lat} ${lng} has a distance`);
      }
    });
  }
});

describe('a distance is that to the boundary', () => {
  test('of a circle: to the centre, less the radius', () => {
    const shape = toShape(circle(at(41.9, 12.5), 100));
    assert.equal(shape.signedDistanceM(41.9, 12.5), -100);
    assert.equal(shape.signedDistanceM(42, 12.6), distanceM(41.9, 12.5, 42, 12.6) - 100);
  });

  test('of a polygon: exactly 0 on a vertex and on a side', () => {
    const shape = toShape(FIJI);
    for (const { lat, lng } of [at(-16, 177), at(-19, -178), at(-17, 177), at(-16, 180), at(-16, -180)]) {
      assert.equal(shape.signedDistanceM(lat, lng), 0);
    }
  });

  test('of a track: to its nearest edge, less the margin', () => {
    const shape = toShape(CHUKOTKA);
    assert.equal(shape.signedDistanceM(66, 170), -5_000);
    assert.equal(shape.signedDistanceM(66, 169), distanceM(66, 170, 66, 169) - 5_000);
  });
});

test('inside means a distance of 0 or less, within the bounds and in a box, wherever', () => {
  let inside = 0;
  const property = fc.property(geometryAndPositions, ({ geometry, positions }) => {
    const shape = toShape(geometry);
    const { bounds, center } = areaMeasures(geometry);
    if (center) assert.ok(isWithin(bounds, center), JSON.stringify({ bounds, center }));
    assert.ok(shape.boxes().length === 1 || shape.boxes().length === 2);
    assert.ok(shape.parts().length >= 1 && shape.parts().length <= 16);
    for (const { lat, lng } of positions) {
      const contained = shape.contains(lat, lng);
      const distanceM = shape.signedDistanceM(lat, lng);
      assert.equal(distanceM <= 0, contained);
      assert.equal(shape.insideDistanceM(lat, lng), contained ? distanceM : Number.POSITIVE_INFINITY);
      if (!contained) continue;
      inside++;
      assert.ok(Math.abs(lat) === 90 || isWithin(bounds, { lat, lng }), JSON.stringify({ bounds, lat, lng }));
      for (const name of Math.abs(lng) === 180 ? [180, -180] : [lng]) {
        assert.ok(shape.contains(lat, name) && inBoxes(shape.boxes(), lat, name), `${lat} ${name}`);
        assert.ok(inBoxes(shape.parts(), lat, name), `${lat} ${name} is in a part`);
      }
    }
  });
  fc.assert(property, { seed: 20_260_315, numRuns: runs(125) });
  assert.ok(inside > 750, `only ${inside} inside`);
});

test('where a polygon starts, its winding and the name of a meridian change nothing', () => {
  const property = fc.property(geometryAndPositions, fc.nat(), ({ geometry, vertices, positions }, shift) => {
    if (geometry.type !== 'polygon') return;
    const k = shift % vertices.length;
    const rotated = [...vertices.slice(k), ...vertices.slice(0, k)];
    const renamed = rotated.map(({ lat, lng }) => at(lat, Math.abs(lng) === 180 ? -lng : lng));
    const shape = toShape(geometry);
    for (const same of [rotated, rotated.toReversed(), renamed]) {
      const other = toShape(polygon(...same));
      for (const { lat, lng } of positions) {
        const names = Math.abs(lng) === 180 ? [lng, -lng] : [lng];
        for (const name of names) assert.equal(other.contains(lat, name), shape.contains(lat, lng));
        const expectedM = shape.signedDistanceM(lat, lng);
        const toleranceM = 1e-6 + Math.abs(expectedM) * (Math.abs(expectedM) > 5e6 ? 0.005 : 1e-4);
        assert.ok(Math.abs(other.signedDistanceM(lat, lng) - expectedM) <= toleranceM);
      }
    }
  });
  fc.assert(property, { seed: 20_260_315, numRuns: runs(100) });
});

const SQUARE = [at(41.9, 12.4), at(41.9, 12.5), at(42, 12.5), at(42, 12.4)];

describe('each type has the measures that the API document gives it', () => {
  const center = at(41.9, 12.5);
  const rows: readonly (readonly [
    title: string,
    geometry: AreaGeometry,
    measures: string[],
    center: LatLng | null,
  ])[] = [
    ['a circle', circle(center, 100), ['areaM2', 'perimeterM'], center],
    ['a place', { type: 'point', center, radiusM: 100 }, [], center],
    ['a track', track(50, ...SQUARE), ['lengthM'], null],
    ['a polygon', polygon(...SQUARE), ['areaM2', 'perimeterM'], at(41.95, 12.45)],
    ['a polygon over the antimeridian', FIJI, ['areaM2', 'perimeterM'], at(-17.5, 179.5)],
  ];
  for (const [title, geometry, measures, expected] of rows) {
    test(title, () => {
      const computed = areaMeasures(geometry);
      for (const figure of ['areaM2', 'perimeterM', 'lengthM'] as const) {
        assert.equal(computed[figure] !== null, measures.includes(figure), figure);
      }
      if (expected === null) assert.equal(computed.center, null);
      else {
        const { center } = computed;
        assert.ok(center && distanceM(center.lat, center.lng, expected.lat, expected.lng) < 1e-3);
      }
    });
  }
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

function inBoxes(boxes: readonly IndexBox[], lat: number, lng: number): boolean {
  return boxes.some(({ minX, minY, maxX, maxY }) => lng >= minX && lng <= maxX && lat >= minY && lat <= maxY);
}
