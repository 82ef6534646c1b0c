import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  type AreaGeometry,
  type AreaMeasures,
  areaMeasures,
  compileShape,
  toVertices,
} from '../../src/areas/area.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';
import { runs } from '../support/torture.ts';
import { geometryAndPositions, wrapLng } from './definitions.ts';

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

describe('bounds hold all that is inside', () => {
  test('whatever it is, its radius and margin included', () => {
    let inside = 0;
    const property = fc.property(geometryAndPositions, ({ geometry, positions }) => {
      const shape = compileShape(geometry);
      const { bounds, center } = areaMeasures(geometry);
      for (const position of positions.filter(({ lat, lng }) => shape.contains(lat, lng))) {
        inside++;
        const isSpanned = Math.abs(position.lat) === 90 || isWithin(bounds, position);
        assert.ok(isSpanned, JSON.stringify({ bounds, position }));
      }
      if (center) assert.ok(isWithin(bounds, center), JSON.stringify({ bounds, center }));
    });
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
