import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { buildRingIndex } from '../../../src/geo/edgeIndex.ts';
import { ringBounds } from '../../../src/geo/measure.ts';
import { unwrapRing } from '../../../src/geo/path.ts';
import { ringSide, type Side } from '../../../src/geo/ringSide.ts';
import type { LatLng } from '../../../src/geo/wgs84.ts';
import { runs } from '../../support/torture.ts';
import {
  exactDegrees,
  gridPoints,
  hardRings,
  lazioRings,
  missingRealData,
  parsePoints,
  polarRings,
  readReference,
  rotated,
  shifted,
  starRings,
  wrapLng,
} from '../shapes.ts';

const sideOf = (points: readonly LatLng[], lat: number, lng: number): Side =>
  ringSide(buildRingIndex(unwrapRing(points)), lat, lng);

const places: readonly (readonly [name: string, ring: string, expected: Partial<Record<Side, string>>])[] = [
  [
    'a square',
    '0 0, 4 0, 4 4, 0 4',
    {
      in: '2 2, 0.001 3.999',
      on: '0 0, 4 4, 2 0, 4 1, 0 3, 3 4',
      out: '5 2, -1 2, 2 5, 2 -1, 5 4, -1 0, 184 2',
    },
  ],
  [
    'a ray through vertices only',
    '0 0, 2 2, 4 0, 6 2, 8 0, 8 4, 0 4',
    { in: '2 3, 4 2, 6 3', on: '2 2, 4 0, 1 1', out: '4 -1, 2 1, 6 1, 2 -5' },
  ],
  [
    'over the antimeridian',
    '178 -1, -178 -1, -178 1, 178 1',
    {
      in: '180 0, -180 0, 179 0, -179 0',
      on: '178 0, -178 0.5, 180 1, -180 -1',
      out: '177 0, -177 0, 0 0, 180 2',
    },
  ],
  [
    'a side along the antimeridian',
    '-180 0, -170 0, -170 5, -180 5',
    { in: '-175 1', on: '180 2, -180 2, 180 5, -180 0', out: '175 1, 180 6, 179.999999 2' },
  ],
  [
    'around the north pole',
    '0 60, 120 60, -120 60',
    {
      in: '0 61, 60 90, 180 89, -180 60.5, -60 60.5',
      on: '60 60, 180 60, -180 60',
      out: '0 59, 180 0, 0 -90',
    },
  ],
  [
    'around the south pole',
    '0 -60, 120 -70, -120 -60',
    { in: '0 -61, 60 -90, 119 -71', on: '60 -65, 120 -70', out: '60 -64, 180 0, 0 90' },
  ],
  [
    'around the south pole, next to the meridian where the ring begins',
    '0 -50, 120 -50, -120 -50',
    {
      in: '-1e-14 -60, -5e-324 -60',
      on: '0 -50, -1e-14 -50',
      out: '-1e-14 0, -5e-324 0, -2.8e-14 -49, 5e-324 0',
    },
  ],
  [
    'around the south pole, with a cut to it',
    '-180 -84, 0 -80, 180 -84, 180 -90, -180 -90',
    { in: '180 -87, -180 -85, 0 -90, 33 -90', on: '180 -84', out: '180 -83, 0 -79' },
  ],
  [
    'the larger side of a ring, with a cut to the pole',
    '-180 -60, 0 -60, 180 -60, 180 90, 0 90, -180 90',
    { in: '180 0, 0 90, 0 -59', on: '90 -60', out: '0 -61, 0 -90' },
  ],
  [
    'a corner on the pole',
    '0 60, 90 60, 90 90, 0 90',
    { in: '45 89', on: '45 90, -120 90, 0 75, 90 75', out: '-1 89, 91 75, 180 60, 0 -90' },
  ],
  [
    'three quarters up to the pole',
    '0 60, 90 60, 180 60, -90 60, -90 90, 0 90',
    { in: '180 80, -100 61, 1 89', on: '-50 90', out: '-45 80, -1 89' },
  ],
  [
    'an overhang around the pole',
    '0 60, 120 60, -120 60, -10 60, -5 40, 20 40, 20 50, -2 50',
    { in: '10 61, 10 45, -4 51', on: '10 50, 20 45, 10 40, 10 60', out: '10 55, 10 39, 21 45' },
  ],
  [
    'a band around the Earth',
    '-180 -10, 0 -10, 180 -10, 180 10, 0 10, -180 10',
    { in: '0 0, 179 9, -179 -9', on: '5 10', out: '0 11, 180 -11' },
  ],
  [
    'the frame of a world map',
    '-180 -90, 180 -90, 180 90, -180 90',
    { in: '0 0, 100 -89, -179 89', out: '' },
  ],
];

describe('ringSide', () => {
  for (const [name, ring, expected] of places) {
    test(`in, on or out: ${name}`, () => {
      for (const points of [parsePoints(ring), parsePoints(ring).reverse(), rotated(parsePoints(ring), 2)]) {
        for (const [side, text] of Object.entries(expected)) {
          for (const { lat, lng } of text === '' ? [] : parsePoints(text)) {
            if (lng <= 180) assert.equal(sideOf(points, lat, lng), side, `${lng} ${lat}`);
          }
        }
      }
    });
  }

  test('agrees with counting in whole numbers, edge by edge, on any closed line', () => {
    const rings = fc.oneof(gridPoints(8, 4), gridPoints(30, 9), gridPoints(300, 40));
    fc.assert(
      fc.property(
        rings,
        fc.array(fc.record({ lat: fc.nat(41), lng: fc.nat(41) }), { minLength: 30 }),
        (points, queries) => {
          const index = buildRingIndex(unwrapRing(points));
          for (const { lat, lng } of queries)
            assert.equal(ringSide(index, lat, lng), countedSide(points, lat, lng));
        },
      ),
      { seed: 5, numRuns: runs(100) },
    );
  });

  test('agrees with counting where hundreds of long slanting sides lie side by side', () => {
    const combs = fc.record({
      teeth: fc.integer({ min: 3, max: 150 }),
      height: fc.integer({ min: 1, max: 60 }),
      slant: fc.integer({ min: -60, max: 60 }),
      gap: fc.integer({ min: 1, max: 400 }).map((n) => n / 1024),
    });
    const anywhere = fc.tuple(exactDegrees(-61, 61), fc.nat(1_000), exactDegrees(-1, 1));
    fc.assert(
      fc.property(combs, fc.array(anywhere, { minLength: 30 }), ({ teeth, height, slant, gap }, queries) => {
        const points = Array.from({ length: 2 * teeth }, (_, n) => ({
          lat: n % 2 === 0 ? -height : height,
          lng: (n % 2 === 0 ? 0 : slant) + n * gap,
        }));
        points.push({ lat: -height - 1, lng: 2 * teeth * gap });
        const index = buildRingIndex(unwrapRing(points));
        for (const [lat, along, beside] of queries) {
          const at = points[along % points.length]!;
          const lng = at.lng + beside;
          assert.equal(ringSide(index, lat, wrapLng(lng)), countedSide(points, lat, lng));
        }
        for (const { lat, lng } of points) assert.equal(ringSide(index, lat, wrapLng(lng)), 'on');
      }),
      { seed: 34, numRuns: runs(100) },
    );
  });

  test('does not depend on the first vertex, the winding or the place on the globe', () => {
    const offsets = fc.tuple(exactDegrees(-20, 20), exactDegrees(-20, 20));
    fc.assert(
      fc.property(
        gridPoints(60, 16),
        fc.nat(),
        exactDegrees(-180, 180),
        fc.array(offsets),
        (points, by, away, queries) => {
          const plain = buildRingIndex(unwrapRing(points));
          const turned = rotated(points, by);
          for (const [variant, degrees] of [
            [turned, 0],
            [points.toReversed(), 0],
            [turned.toReversed(), 0],
            [points, away],
            [turned.toReversed(), away],
          ] as const) {
            const index = buildRingIndex(unwrapRing(shifted(variant, degrees)));
            for (const [lat, lng] of queries) {
              const [place] = shifted([{ lat, lng }], degrees);
              assert.equal(ringSide(index, lat, place!.lng), ringSide(plain, lat, lng));
            }
          }
        },
      ),
      { seed: 6, numRuns: runs(50) },
    );
  });

  test('finds every vertex on the boundary, and nothing outside the bounds', () => {
    fc.assert(
      fc.property(
        fc.oneof(starRings(200), polarRings, hardRings),
        exactDegrees(-90, 90),
        exactDegrees(-180, 180),
        (points, lat, lng) => {
          const ring = unwrapRing(points);
          const index = buildRingIndex(ring);
          for (const vertex of ring.points) assert.equal(ringSide(index, vertex.lat, vertex.lng), 'on');
          const { south, west, north, east } = ringBounds(ring);
          const inEast = west <= east ? lng >= west && lng <= east : lng >= west || lng <= east;
          if (ringSide(index, lat, lng) !== 'out') assert.ok(inEast && lat >= south && lat <= north);
        },
      ),
      { seed: 7, numRuns: runs(100) },
    );
  });
});

interface LazioPoints {
  readonly inside: Readonly<Record<string, string>>;
  readonly outside: string;
}

describe('the municipalities of Lazio', { skip: missingRealData('lazio-municipalities.geojson') }, () => {
  const microdegrees = (text: string) =>
    text
      .split(' ')
      .map(Number)
      .flatMap((value, i, all) => (i % 2 === 0 ? [[(11e6 + value) / 1e6, (40e6 + all[i + 1]!) / 1e6]] : []));

  test('contain exactly the points that ST_Covers says', () => {
    const reference = readReference<LazioPoints>('geometry-lazio-points.json');
    const indexes = [...lazioRings()].flatMap(([name, rings]) =>
      rings.map((points) => ({ name, index: buildRingIndex(unwrapRing(points)) })),
    );
    let count = 0;
    for (const [expected, text] of [
      ...Object.entries(reference.inside),
      [null, reference.outside] as const,
    ]) {
      for (const [lng, lat] of microdegrees(text)) {
        const found = indexes
          .filter(({ index }) => ringSide(index, lat!, lng!) !== 'out')
          .map(({ name }) => name);
        assert.deepEqual(found, expected === null ? [] : [expected], `${lng} ${lat}`);
        count++;
      }
    }
    assert.equal(count, 10_500);
  });
});

/** Even and odd, by a ray to the east, in integers: exact. */
function countedSide(points: readonly LatLng[], y: number, x: number): Side {
  let inside = false;
  for (const [i, a] of points.entries()) {
    const b = points[(i + 1) % points.length]!;
    const turn = (b.lng - a.lng) * (y - a.lat) - (x - a.lng) * (b.lat - a.lat);
    const beside = Math.min(a.lng, b.lng) <= x && x <= Math.max(a.lng, b.lng);
    const level = Math.min(a.lat, b.lat) <= y && y <= Math.max(a.lat, b.lat);
    if (turn === 0 && beside && level) return 'on';
    if (a.lat > y !== b.lat > y && turn > 0 === b.lat > a.lat) inside = !inside;
  }
  return inside ? 'in' : 'out';
}
