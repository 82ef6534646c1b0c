import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { crossingLat, cutRing } from '../../../src/geo/antimeridianCut.ts';
import { rejoinRings } from '../../../src/geo/antimeridianRejoin.ts';
import { buildRingIndex } from '../../../src/geo/edgeIndex.ts';
import { ringBounds, ringMeasures } from '../../../src/geo/measure.ts';
import { doublePlanarArea, unwrapRing } from '../../../src/geo/path.ts';
import { ringSide } from '../../../src/geo/ringSide.ts';
import { isSelfIntersecting, isSimpleChain } from '../../../src/geo/selfIntersection.ts';
import { runs } from '../../support/torture.ts';
import { assertClose, assertSameRings, leftmost, named, oneName, turnedLeft } from '../sameRings.ts';
import {
  exactDegrees,
  hardRings,
  missingRealData,
  parsePoints,
  polarRings,
  realBoundaries,
  spikyRings,
  starRings,
  wrapLng,
} from '../shapes.ts';

/** A ring, the parts it is cut into, and what comes back if that is not the ring itself, counter-clockwise. */
const cuts: readonly (readonly [name: string, ring: string, parts: readonly string[], rejoined?: string])[] =
  [
    ['clear of the antimeridian, winding put right', '0 0, 0 1, 1 1', ['0 0, 1 1, 0 1']],
    [
      'over it',
      '178 0, -178 0, -178 2, 178 2',
      ['-180 0, -178 0, -178 2, -180 2', '180 2, 178 2, 178 0, 180 0'],
    ],
    [
      'over it, clockwise',
      '178 2, -178 2, -178 0, 178 0',
      ['-180 0, -178 0, -178 2, -180 2', '180 2, 178 2, 178 0, 180 0'],
    ],
    [
      'a slanting side',
      '178 0, -179 3, -179 4, 178 4',
      ['-180 2, -179 3, -179 4, -180 4', '180 4, 178 4, 178 0, 180 2'],
    ],
    [
      'a C, twice over it',
      '178 0, -178 0, -178 1, 179 1, 179 2, -178 2, -178 3, 178 3',
      [
        '-180 0, -178 0, -178 1, -180 1',
        '180 1, 179 1, 179 2, 180 2, 180 3, 178 3, 178 0, 180 0',
        '-180 2, -178 2, -178 3, -180 3',
      ],
    ],
    [
      'a side on it, seen from the east',
      '180 0, -170 0, -170 5, 180 5',
      ['-180 0, -170 0, -170 5, -180 5'],
      '-180 0, -170 0, -170 5, -180 5',
    ],
    [
      'a side on it, seen from the west',
      '170 0, -180 0, -180 5, 170 5',
      ['170 0, 180 0, 180 5, 170 5'],
      '170 0, 180 0, 180 5, 170 5',
    ],
    [
      'a side on it where the ring crosses',
      '180 0, -170 0, -170 5, 180 5, 180 4, 175 4, 175 1, 180 1',
      ['180 4, 175 4, 175 1, 180 1', '-180 1, -180 0, -170 0, -170 5, -180 5, -180 4'],
      '175 4, 175 1, -180 1, -180 0, -170 0, -170 5, -180 5, 180 4',
    ],
    [
      'a notch that touches it from the east',
      '179 0, -178 0, 180 1, -178 2, 179 2',
      ['-180 0, -178 0, -180 1', '180 1, 180 2, 179 2, 179 0, 180 0', '-180 1, -178 2, -180 2'],
      '-178 0, -180 1, -178 2, 179 2, 179 0',
    ],
    [
      'a notch that touches it from the west',
      '-179 0, -178 3, -179 5, 178 5, 180 3, 178 0',
      ['180 5, 178 5, 180 3', '-180 3, -180 0, -179 0, -178 3, -179 5, -180 5', '180 3, 178 0, 180 0'],
    ],
    [
      'a corner that touches it from the east, and a side across',
      '180 1, -178 0, -178 4, 178 4, 178 3, -179 3',
      ['-180 1, -178 0, -178 4, -180 4, -180 3, -179 3', '180 4, 178 4, 178 3, 180 3'],
      '-180 1, -178 0, -178 4, 178 4, 178 3, -179 3',
    ],
    [
      'around the north pole',
      '0 60, 120 60, -120 60',
      ['-180 60, -120 60, 0 60, 120 60, 180 60, 180 90, -180 90'],
    ],
    [
      'around the south pole',
      '0 -60, -120 -60, 120 -70',
      ['180 -65, 120 -70, 0 -60, -120 -60, -180 -65, -180 -90, 180 -90'],
    ],
    [
      'around a pole, crossing three times',
      '0 60, 170 60, -170 60, -170 65, 170 65, 170 70, -170 70',
      [
        '-180 60, -170 60, -170 65, -180 65',
        '180 65, 170 65, 170 70, 180 70, 180 90, -180 90, -180 70, -170 70, 0 60, 170 60, 180 60',
      ],
    ],
    [
      'the larger side of a ring around the Earth stays as it is written',
      '-180 -60, 0 -60, 180 -60, 180 90, -180 90',
      ['-180 -60, 0 -60, 180 -60, 180 90, -180 90'],
      '-180 -60, 0 -60, 180 -60, 180 90, -180 90',
    ],
    [
      'a corner on the pole, over the antimeridian',
      '170 80, -170 80, -170 90, 170 90',
      ['-180 80, -170 80, -170 90, -180 90', '180 90, 170 90, 170 80, 180 80'],
    ],
    [
      'around a pole and through it',
      '0 60, 120 60, -120 60, -60 90',
      ['-180 60, -120 60, -60 90, -180 90', '180 90, -60 90, 0 60, 120 60, 180 60'],
    ],
    [
      'from pole to pole on the antimeridian',
      '-14.8 89, 180 -60, 35.9 -89, 0 -89, 180 90, 135 89',
      ['-180 -60, -14.8 89, 135 89, 180 90, -180 90', '180 90, 0 -89, 35.9 -89, 180 -60'],
    ],
    [
      'a band around the Earth stays',
      '-180 -9, 0 -9, 180 -9, 180 9, 0 9, -180 9',
      ['-180 -9, 0 -9, 180 -9, 180 9, 0 9, -180 9'],
    ],
    [
      'the frame of a world map stays',
      '-180 -90, 180 -90, 180 90, -180 90',
      ['-180 -90, 180 -90, 180 90, -180 90'],
    ],
  ];

describe('cutRing and rejoinRings', () => {
  for (const [name, ring, parts, rejoined] of cuts) {
    test(`cut and rejoin a ring: ${name}`, () => {
      const cut = cutRing(unwrapRing(parsePoints(ring)));
      assertSameRings(cut, parts.map(parsePoints));
      const back = rejoinRings(cut);
      assert.equal(back.holesDropped, false);
      assert.equal(back.rings.length, 1);
      if (rejoined) assertSameRings(back.rings.map(oneName), [oneName(parsePoints(rejoined))]);
      else assertSameRings(back.rings.map(turnedLeft).map(oneName), [oneName(turnedLeft(parsePoints(ring)))]);
    });
  }

  test('cutting makes parts that are valid, counter-clockwise, within the map, and together the whole', () => {
    fc.assert(
      fc.property(
        fc.oneof(starRings(40), polarRings, hardRings),
        fc.array(fc.tuple(exactDegrees(-9, 9), exactDegrees(-9, 9))),
        (points, offsets) => {
          const ring = unwrapRing(points);
          const parts = cutRing(ring);
          for (const part of parts) {
            const [lngs, lats] = [part.map(({ lng }) => lng), part.map(({ lat }) => lat)];
            assert.ok(lngs.every((lng) => Math.abs(lng) <= 180));
            assert.ok(doublePlanarArea(lngs, lats) > 0);
            const wide = lngs.map((lng, i) => Math.abs(lng - lngs.at(i - 1)!));
            assert.ok(
              wide.every((width, i) => width <= 180 || Math.abs(lats[i]!) === 90),
              'only an edge on a pole is that wide',
            );
            assert.ok(isSimpleChain(closed(lngs), closed(lats), true), 'valid on the flat map');
          }
          const sum = parts.reduce((total, part) => total + ringMeasures(unwrapRing(part)).areaM2, 0);
          assertClose(sum, ringMeasures(ring).areaM2, 1e-9);
          const whole = buildRingIndex(ring);
          const indexes = parts.map((part) => buildRingIndex(unwrapRing(part)));
          for (const [north, east] of offsets) {
            const lat = Math.max(-90, Math.min(90, points[0]!.lat + north));
            const lng = wrapLng(points[0]!.lng + east);
            const found = indexes.some((index) => ringSide(index, lat, lng) !== 'out');
            assert.equal(found, ringSide(whole, lat, lng) !== 'out');
          }
        },
      ),
      { seed: 16, numRuns: runs(100) },
    );
  });

  test('rejoining brings back every vertex and every measure', () => {
    fc.assert(
      fc.property(fc.oneof(starRings(40), polarRings), fc.boolean(), (points, backwards) => {
        const ring = unwrapRing(points);
        const parts = cutRing(ring);
        const { rings, holesDropped } = rejoinRings(
          backwards ? parts.map((part) => part.toReversed()).reverse() : parts,
        );
        assert.equal(holesDropped, false);
        assert.equal(rings.length, 1);
        const again = unwrapRing(rings[0]!);
        assertClose(ringMeasures(again).areaM2, ringMeasures(ring).areaM2, 1e-9);
        assertClose(ringMeasures(again).perimeterM, ringMeasures(ring).perimeterM, 1e-9);
        assert.deepEqual(ringBounds(again), ringBounds(ring));
        assert.equal(again.pole, ring.pole);
        assertSameRings([leftmost(rings[0]!)], [leftmost(points.map(named(rings[0]!)))]);
      }),
      { seed: 17, numRuns: runs(100) },
    );
  });
});

test('rings with long thin spikes come back with every vertex, though rounding moves their small areas', () => {
  let crossing = 0;
  fc.assert(
    fc.property(spikyRings, (points) => {
      const parts = cutRing(unwrapRing(points));
      if (parts.length > 1) crossing++;
      const { rings, holesDropped } = rejoinRings(parts);
      assert.deepEqual([rings.length, holesDropped], [1, false]);
      assertSameRings([leftmost(rings[0]!)], [leftmost(points.map(named(rings[0]!)))]);
    }),
    { seed: 21, numRuns: runs(250) },
  );
  assert.ok(crossing > 125, `only ${crossing} rings cross the antimeridian`);
});

test('rings with corners on poles and on the antimeridian come back with their measures', () => {
  fc.assert(
    fc.property(hardRings, (points) => {
      const ring = unwrapRing(points);
      const { rings } = rejoinRings(cutRing(ring));
      assert.equal(rings.length, 1);
      const again = unwrapRing(rings[0]!);
      assertClose(ringMeasures(again).areaM2, ringMeasures(ring).areaM2, 1e-9);
      assertClose(ringMeasures(again).perimeterM, ringMeasures(ring).perimeterM, 1e-9);
      assert.equal(isSelfIntersecting(again), false);
    }),
    { seed: 20, numRuns: runs(125) },
  );
});

test('an edge that ends on the antimeridian is cut at its very end', () => {
  const lat = fc.double({ min: -90, max: 90, noNaN: true });
  fc.assert(
    fc.property(lat, lat, (a, b) => {
      assert.ok(crossingLat({ lat: a, lng: 170 }, { lat: b, lng: -180 }) === b);
      assert.ok(crossingLat({ lat: a, lng: 180 }, { lat: b, lng: -170 }) === a);
    }),
    { seed: 19, numRuns: runs(250) },
  );
});

describe('real outlines over the antimeridian', { skip: missingRealData('boundaries.json.gz') }, () => {
  test('come back with every vertex and every measure', () => {
    for (const { name, points } of realBoundaries().outlines) {
      const ring = unwrapRing(points);
      const parts = cutRing(ring);
      assert.equal(parts.length > 1, name.includes('crosses 180'), name);
      for (const part of parts) assert.equal(isSelfIntersecting(unwrapRing(part)), false, name);
      const { rings } = rejoinRings(parts);
      assertSameRings([leftmost(rings[0]!)], [leftmost(points)]);
      assertClose(ringMeasures(unwrapRing(rings[0]!)).areaM2, ringMeasures(ring).areaM2, 1e-12);
    }
  });
});

const closed = (values: readonly number[]) => [...values, values[0]!];
