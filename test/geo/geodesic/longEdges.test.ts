import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type AreaGeometry, toVertices } from '../../../src/areas/area.ts';
import { type Shape, toShape } from '../../../src/areas/shape.ts';
import { buildEdgeIndex, type EdgeIndex } from '../../../src/geo/edgeIndex.ts';
import { ReachBox } from '../../../src/geo/edgeProjection.ts';
import type { IndexBox } from '../../../src/geo/measure.ts';
import { nearestEdgeM, nearestEdgeWithinM } from '../../../src/geo/nearestEdge.ts';
import { type Path, unwrapLine } from '../../../src/geo/path.ts';
import type { LatLng } from '../../../src/geo/wgs84.ts';
import { runs } from '../../support/torture.ts';
import { nearestBySampling, nearestOfAll } from '../nearestBySampling.ts';
import { turnedLng } from '../shapes.ts';

// Tracks whose edges are thousands of kilometres long, to and fro: every box and every capsule of them is the Earth.

/** Multiples of a millionth, since an edge of 1e-300 degrees makes no sense. */
const between = (min: number, max: number) =>
  fc.integer({ min: Math.ceil(min * 1e6), max: Math.floor(max * 1e6) }).map((n) => n / 1e6);
const unit = between(-1, 1);
const clampLat = (lat: number) => Math.max(-90, Math.min(90, lat));

/** To and fro between two lines, each a step further: steps from millimetres to some degrees, any direction. */
const zigzags = (edges: number) =>
  fc
    .record({
      from: fc.record({ lat: between(-89.9, 89.9), lng: between(-180, 180) }),
      to: fc.record({
        lat: fc.oneof(between(-89.9, 89.9), fc.constantFrom(-90, 80, 90)),
        east: between(-175, 175),
      }),
      step: fc
        .tuple(unit, unit, between(-8, 0.6))
        .map(([y, x, exponent]) => [y * 10 ** exponent, x * 10 ** exponent]),
    })
    .map(({ from, to, step: [north = 0, east = 0] }) =>
      Array.from({ length: edges + 1 }, (_, n) => ({
        lat: clampLat((n % 2 === 0 ? from.lat : to.lat) + n * north),
        lng: turnedLng(from.lng + (n % 2 === 0 ? 0 : to.east) + n * east),
      })),
    );

/** Edges from anywhere to anywhere. */
const scribbles = (edges: number) =>
  fc.array(
    fc.record({
      lat: between(-90, 90),
      lng: fc.oneof(between(-180, 180), fc.constantFrom(-180, 180, 179.999)),
    }),
    { minLength: edges + 1, maxLength: edges + 1, size: 'max' },
  );

const longTracks = (edges: number) => fc.oneof(zigzags(edges), scribbles(edges));

/** On an edge, or some way from it: a fraction of the track, and offsets of millimetres to half of the Earth. */
const beside = fc.tuple(between(0, 0.999), unit, unit, between(-8, 1.8));

function placeBeside({ lngs, lats }: Path, [where, y, x, exponent]: readonly number[]): LatLng {
  const at = where! * (lngs.length - 1);
  const [edge, t] = [Math.floor(at), at % 1];
  const size = 10 ** exponent!;
  return {
    lat: clampLat(lats[edge]! + t * (lats[edge + 1]! - lats[edge]!) + size * y!),
    lng: turnedLng(lngs[edge]! + t * (lngs[edge + 1]! - lngs[edge]!) + size * x!),
  };
}

describe('long edges', () => {
  test('the nearest point of long edges is the one that GeographicLib finds on them', () => {
    fc.assert(
      fc.property(longTracks(20), fc.array(beside, { minLength: 3, maxLength: 3 }), (points, places) => {
        const path = unwrapLine(points);
        const edges = buildEdgeIndex(path);
        for (const each of places) {
          const { lat, lng } = placeBeside(path, each);
          assertNear(nearestEdgeM(edges, lat, lng), nearestBySampling(path, lat, lng), { lat, lng });
        }
      }),
      { seed: 27, numRuns: runs(6), endOnFailure: true },
    );
  });

  test('of two thousand long edges the nearest is found, as if each were by itself', () => {
    fc.assert(
      fc.property(longTracks(2_000), fc.array(beside, { minLength: 6, maxLength: 6 }), (points, places) => {
        const path = unwrapLine(points);
        const edges = buildEdgeIndex(path);
        for (const each of places) {
          const { lat, lng } = placeBeside(path, each);
          assertNear(nearestEdgeM(edges, lat, lng), nearestOfAll(path, lat, lng), { lat, lng });
        }
      }),
      { seed: 28, numRuns: runs(2), endOnFailure: true },
    );
  });

  test('a limited search finds what is within its limit, and nothing else', () => {
    fc.assert(
      fc.property(
        longTracks(30),
        fc.array(beside, { minLength: 10, maxLength: 10 }),
        fc.constantFrom(5, 50, 5_000, 300_000),
        (points, places, limitM) => {
          const path = unwrapLine(points);
          const edges = buildEdgeIndex(path);
          for (const each of places) {
            const { lat, lng } = placeBeside(path, each);
            const leastM = nearestOfAll(path, lat, lng);
            const foundM = nearestEdgeWithinM(edges, lat, lng, limitM);
            if (leastM > limitM * (1 + 1e-5)) assert.ok(foundM > limitM);
            else if (leastM < limitM)
              assert.ok(Math.abs(foundM - leastM) <= 1e-6 + 2e-5 * leastM, `${foundM} ${leastM}`);
          }
        },
      ),
      { seed: 29, numRuns: runs(12), endOnFailure: true },
    );
  });

  test('a track contains what is within its margin, and its distances agree', () => {
    let inside = 0;
    fc.assert(
      fc.property(
        longTracks(24),
        fc.array(beside, { minLength: 12, maxLength: 12 }),
        fc.constantFrom(5, 50, 5_000),
        (points, places, bufferM) => {
          const shape = trackOf(points, bufferM);
          const path = unwrapLine(points);
          for (const each of places) {
            const { lat, lng } = placeBeside(path, each);
            const expectedM = nearestOfAll(path, lat, lng) - bufferM;
            const signedM = shape.signedDistanceM(lat, lng);
            assert.equal(shape.contains(lat, lng), signedM <= 0);
            assert.equal(shape.insideDistanceM(lat, lng), signedM <= 0 ? signedM : Number.POSITIVE_INFINITY);
            if (Math.abs(expectedM) > 1e-6 + 2e-5 * bufferM) assert.equal(signedM <= 0, expectedM <= 0);
            if (signedM > 0) continue;
            inside++;
            assert.ok(isIn(shape.boxes(), lat, lng) && isIn(shape.parts(), lat, lng));
          }
        },
      ),
      { seed: 30, numRuns: runs(25), endOnFailure: true },
    );
    assert.ok(inside > 40, `only ${inside} inside`);
  });
});

describe('the box of a search', () => {
  test('leaves out most runs of edges to and fro, whatever their direction', () => {
    const directions: readonly (readonly [string, (n: number) => LatLng])[] = [
      ['along meridians', (n) => ({ lat: n % 2 === 0 ? -80 : 80, lng: -170 + n * 0.1 })],
      ['along parallels', (n) => ({ lat: n * 0.02, lng: n % 2 === 0 ? -80 : 80 })],
      ['slanting', (n) => ({ lat: n % 2 === 0 ? -60 : 60, lng: (n % 2 === 0 ? -100 : 50) + n * 0.01 })],
      [
        'over 180°',
        (n) => ({ lat: n % 2 === 0 ? -60 : 60, lng: turnedLng((n % 2 === 0 ? 130 : 200) + n * 0.01) }),
      ],
    ];
    for (const [name, at] of directions) {
      const path = unwrapLine(Array.from({ length: 2_001 }, (_, n) => at(n)));
      const edges = buildEdgeIndex(path);
      for (const place of [
        [0.1234, 0, 0, 0],
        [0.7654, 0.001, 0.001, 0],
      ]) {
        const { lat, lng } = placeBeside(path, place);
        const box = new ReachBox();
        box.reset(lat, lng, 5_000);
        const met = runsOfFour(edges).filter((run) => box.meets(edges, run)).length;
        assert.ok(met >= 1 && met <= 12, `${name}: ${met} of 500`);
      }
    }
  });
});

/** What nearestEdgeM promises, and what a search for the lowest of all samples can tell. */
function assertNear(actualM: number, expectedM: number, { lat, lng }: LatLng): void {
  const share = expectedM <= 50_000 ? 1e-5 : expectedM <= 8e6 ? 5e-4 : 0.0034;
  const isNear = Math.abs(actualM - expectedM) <= 1e-3 + share * expectedM;
  assert.ok(isNear, `${lat} ${lng}: ${actualM} instead of ${expectedM}`);
}

function trackOf(points: readonly LatLng[], bufferM: number): Shape {
  const geometry: AreaGeometry = { type: 'polyline', points: toVertices(points), bufferM };
  return toShape(geometry);
}

function isIn(boxes: readonly IndexBox[], lat: number, lng: number): boolean {
  return boxes.some(({ minX, minY, maxX, maxY }) => lng >= minX && lng <= maxX && lat >= minY && lat <= maxY);
}

const runsOfFour = (edges: EdgeIndex) =>
  Array.from({ length: edges.levels[1]! - edges.levels[0]! }, (_, k) => edges.levels[0]! + k);
