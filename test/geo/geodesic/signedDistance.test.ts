import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { toVertices } from '../../../src/areas/area.ts';
import { type Shape, toShape } from '../../../src/areas/shape.ts';
import { buildEdgeIndex, buildRingIndex } from '../../../src/geo/edgeIndex.ts';
import { nearestEdgeM } from '../../../src/geo/nearestEdge.ts';
import { unwrapLine, unwrapRing } from '../../../src/geo/path.ts';
import { ringSide } from '../../../src/geo/ringSide.ts';
import type { LatLng } from '../../../src/geo/wgs84.ts';
import { runs } from '../../support/torture.ts';
import { assertPromise, geodesicM, nearestBySampling, nearestOfAll } from '../nearestBySampling.ts';
import {
  gridPoints,
  hardRings,
  lazioRings,
  missingRealData,
  parsePoints,
  polarRings,
  shifted,
  starRings,
  wrapLng,
} from '../shapes.ts';

const tracks: readonly (readonly [name: string, track: string, queries: string])[] = [
  ['a street', '12.5 41.9, 12.501 41.9005, 12.502 41.9004', '12.5005 41.9, 12.4 41.8, 12.501 41.9005, 13 42'],
  ['an edge of a centimetre', '12.5 41.9, 12.5000001 41.9', '12.50000005 41.9000001, 12.5 41.9, 12.6 41.9'],
  ['an edge without length', '12.5 41.9, 12.5 41.9', '12.5 41.9, 12.51 41.9'],
  [
    'along a parallel, far from the geodesic',
    '-30 60, 30 60',
    '0 60.1, 0 63, 0 70, 0 90, 0 40, 180 60, 31 60',
  ],
  ['half around a pole', '-90 89.9, 0 89.9, 90 89.9', '0 90, 180 89.95, 45 89.9001, 0 89'],
  ['over a pole', '0 89, 0 90, 120 90, 120 89', '60 89.5, -60 89.9, 0 89.5, 0 90'],
  ['over the antimeridian', '179.9 -17, -179.9 -17.1', '180 -17, -180 -17.05, 179.8 -17, -179 -17, 0 0'],
  ['half around the equator', '0 0, 90 0, 180 0', '45 0.001, 45 1, 45 45, -90 0, -90 1, -45 -80'],
  ['from pole to pole', '10 -90, 10 90', '10 0, 11 0, 100 0, -170 45, -169 0'],
  ['a road of five kilometres at 60°', '10 60, 10.07 60.03', '10.03 60.01286, 10.05 60.0215, 10.035 60.013'],
  ['on both sides of the antipode', '180 -45.3, 180 -53.96', '0 50'],
  ['long and slanting', '-75 -50, 100 60', '0 0, 12.5 5, 12.5 5.01, 90 -40, -160 10, 100 61'],
];

describe('nearestEdgeM is the distance to the nearest point that GeographicLib finds', () => {
  for (const [name, track, queries] of tracks) {
    test(`nearest point: ${name}`, () => {
      const path = unwrapLine(parsePoints(track));
      const edges = buildEdgeIndex(path);
      for (const { lat, lng } of parsePoints(queries)) {
        assertPromise(nearestEdgeM(edges, lat, lng), nearestBySampling(path, lat, lng), `${lng} ${lat}`);
      }
    });
  }

  test('nearest point: tracks of any size and place, near and far', () => {
    const scale = fc.double({ min: -5, max: 2.1, noNaN: true }).map((exponent) => 10 ** exponent);
    const unit = fc.double({ min: -0.5, max: 0.5, noNaN: true });
    const shape = fc.array(fc.tuple(unit, unit), { minLength: 2, maxLength: 8 });
    const centre = fc.record({
      lat: fc.oneof(
        fc.double({ min: -90, max: 90, noNaN: true }),
        fc.constantFrom(-90, -89.999, 0, 89.9, 90),
      ),
      lng: fc.oneof(fc.double({ min: -180, max: 180, noNaN: true }), fc.constantFrom(-180, 179.99)),
    });
    fc.assert(
      fc.property(centre, scale, shape, scale, unit, unit, (at, size, corners, away, north, east) => {
        const place = (factor: number, [y, x]: readonly [number, number]): LatLng => ({
          lat: Math.max(-90, Math.min(90, at.lat + Math.min(factor, 170) * y)),
          lng: wrapLng(at.lng + Math.min(factor, 170) * x),
        });
        const path = unwrapLine(corners.map((corner) => place(size, corner)));
        const { lat, lng } = place(away, [north, east]);
        assertPromise(
          nearestEdgeM(buildEdgeIndex(path), lat, lng),
          nearestBySampling(path, lat, lng),
          'random',
        );
      }),
      { seed: 8, numRuns: runs(12) },
    );
  });

  test('nearest point: thousands of sides that are all equally far', () => {
    const around = Array.from({ length: 2000 }, (_, i) => ({
      lat: 89,
      lng: wrapLng(((i * 170) % 360) - 180),
    }));
    const edges = buildEdgeIndex(unwrapLine(around));
    assertPromise(nearestEdgeM(edges, 90, 0), geodesicM(90, 0, 89, 0), 'the pole');
    assertPromise(nearestEdgeM(edges, 88, 5), geodesicM(88, 5, 89, 5), 'below');
  });
});

describe('nearestEdgeM', () => {
  test('the nearest edge is the one that comparing all edges finds', () => {
    const spikes = fc.array(fc.double({ min: 0.3, max: 1, noNaN: true }), {
      minLength: 9,
      maxLength: 400,
      size: 'max',
    });
    const unit = fc.double({ min: -1.5, max: 1.5, noNaN: true });
    fc.assert(
      fc.property(
        spikes,
        fc.array(fc.tuple(unit, unit), { minLength: 5, maxLength: 5 }),
        (radii, queries) => {
          const ring = unwrapRing(
            radii.map((radius, i) => {
              const angle = (2 * Math.PI * i) / radii.length;
              return { lat: 42 + 0.2 * radius * Math.sin(angle), lng: 12 + 0.2 * radius * Math.cos(angle) };
            }),
          );
          const edges = buildEdgeIndex(ring);
          for (const [y, x] of queries) {
            const [lat, lng] = [42 + 0.2 * y, 12 + 0.2 * x];
            assert.ok(Math.abs(nearestEdgeM(edges, lat, lng) - nearestOfAll(ring, lat, lng)) < 1e-6);
          }
        },
      ),
      { seed: 9, numRuns: runs(15) },
    );
  });
});

describe('the signed distance', () => {
  test('the distance of a polygon is 0 or less exactly where it contains, and counts to the boundary', () => {
    const offset = fc.double({ min: -20, max: 20, noNaN: true });
    fc.assert(
      fc.property(
        fc.oneof(gridPoints(20, 8), starRings(40), polarRings, hardRings),
        fc.array(fc.tuple(offset, offset)),
        (points, queries) => {
          const ring = unwrapRing(points);
          const index = buildRingIndex(ring);
          const shape = polygonOf(points);
          const near = queries.map(([y, x]) => ({
            lat: Math.max(-90, Math.min(90, points[0]!.lat + y)),
            lng: wrapLng(points[0]!.lng + x),
          }));
          for (const { lat, lng } of [...points, ...near]) {
            const distance = shape.signedDistanceM(lat, lng);
            const side = ringSide(index, lat, lng);
            assert.equal(Math.sign(distance), side === 'in' ? -1 : side === 'on' ? 0 : 1);
            assert.ok(Math.abs(Math.abs(distance) - nearestEdgeM(index.edges, lat, lng)) < 1e-6);
          }
        },
      ),
      { seed: 10, numRuns: runs(30) },
    );
  });

  test('the distance of a polygon does not depend on the first vertex, the winding or the place on the globe', () => {
    const points = parsePoints('0 10, 5 10, 6 14, 3 12, 0 15');
    const expected = polygonOf(points).signedDistanceM(11.5, 2.25);
    for (const degrees of [0, 90, 177, -178, 180]) {
      for (const variant of [points, points.toReversed(), [...points.slice(3), ...points.slice(0, 3)]]) {
        const actual = polygonOf(shifted(variant, degrees)).signedDistanceM(11.5, wrapLng(2.25 + degrees));
        assert.ok(expected < 0 && Math.abs(actual / expected - 1) < 1e-9, `${degrees}`);
      }
    }
  });

  test('the distance of a polygon keeps its sign next to the boundary, where it rounds to 0', () => {
    const shape = polygonOf(parsePoints('0 0, 4 0, 4 4, 0 4'));
    const [insideM, outsideM] = [
      shape.signedDistanceM(Number.MIN_VALUE, 2),
      shape.signedDistanceM(-Number.MIN_VALUE, 2),
    ];
    assert.ok(insideM < 0 && insideM > -1e-6, `${insideM}`);
    assert.ok(outsideM > 0 && outsideM < 1e-6, `${outsideM}`);
    assert.ok(Object.is(shape.signedDistanceM(0, 2), 0));
  });

  test('the distance of a polyline counts from its buffer', () => {
    const line = parsePoints('179.9 65, -179.9 65.1');
    const edges = buildEdgeIndex(unwrapLine(line));
    const distanceM = (bufferM: number, lat: number, lng: number) =>
      toShape({ type: 'polyline', points: toVertices(line), bufferM }).signedDistanceM(lat, lng);
    const offM = nearestEdgeM(edges, 65.2, 180);
    assert.ok(offM > 10_000);
    assert.equal(distanceM(50, 65.2, 180), offM - 50);
    assert.equal(distanceM(offM, 65.2, 180), 0);
    assert.equal(distanceM(50, 65.1, -179.9), -50);
  });

  test('the distance of a circle counts from its radius', () => {
    const center = { lat: -17, lng: 179.999 };
    const shape = toShape({ type: 'circle', center, radiusM: 100 });
    const offM = geodesicM(-17, 179.999, -17.01, -179.99);
    assert.ok(Math.abs(shape.signedDistanceM(-17.01, -179.99) - (offM - 100)) < 1e-6);
    assert.equal(shape.signedDistanceM(-17, 179.999), -100);
  });
});

function polygonOf(points: readonly LatLng[]): Shape {
  return toShape({ type: 'polygon', points: toVertices(points) });
}

describe('real boundaries', { skip: missingRealData('lazio-municipalities.geojson') }, () => {
  test('the distance of a real boundary is that to its nearest point, inside and outside', () => {
    const rings = [...lazioRings()]
      .filter((_, i) => i % 100 === 0)
      .map(([, [points]]) => unwrapRing(points!));
    for (const ring of rings) {
      const index = buildRingIndex(ring);
      const [vertex, opposite] = [ring.points[0]!, ring.points[ring.points.length >> 1]!];
      for (const t of [0.3, 0.7, 1.5, 4]) {
        const lat = vertex.lat + t * (opposite.lat - vertex.lat);
        const lng = vertex.lng + t * (opposite.lng - vertex.lng);
        assertPromise(
          nearestEdgeM(index.edges, lat, lng),
          nearestBySampling(ring, lat, lng),
          `${lng} ${lat}`,
        );
      }
    }
  });
});
