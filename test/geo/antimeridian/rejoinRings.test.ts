import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { rejoinRings } from '../../../src/geo/antimeridianRejoin.ts';
import { unwrapRing } from '../../../src/geo/path.ts';
import { isSelfIntersecting } from '../../../src/geo/selfIntersection.ts';
import { assertClose, assertSameRings, oneName, sumOfAreas } from '../sameRings.ts';
import { parsePoints } from '../shapes.ts';

describe('rejoinRings', () => {
  test('leaves parts alone that do not meet along the antimeridian', () => {
    const apart = [
      '0 0, 1 0, 1 1',
      '170 0, 180 0, 180 5, 170 5',
      '-180 6, -170 6, -170 9, -180 9',
      '-180 -5, -170 -5, -180 0',
    ];
    const parts = apart.map(parsePoints);
    assert.equal(rejoinRings(parts).rings, parts);
  });

  test('puts a joined ring where the first of its parts was', () => {
    const parts = [
      '0 0, 1 0, 1 1',
      '170 0, 180 0, 180 5, 170 5',
      '10 0, 11 0, 11 1',
      '-180 0, -170 0, -170 5, -180 5',
      '20 0, 21 0, 21 1',
    ].map(parsePoints);
    const { rings } = rejoinRings(parts);
    assertSameRings(rings, [parts[0]!, parsePoints('170 0, -170 0, -170 5, 170 5'), parts[2]!, parts[4]!]);
  });

  test('joins sides of different lengths with different vertices', () => {
    const { rings } = rejoinRings(
      ['175 0, 180 0, 180 1, 180 6, 175 6', '-180 2, -178 2, -178 5, -180 5, -180 4'].map(parsePoints),
    );
    const expected = '175 0, 180 0, 180 1, 180 2, -178 2, -178 5, -180 5, 180 6, 175 6';
    assertSameRings(rings.map(oneName), [oneName(parsePoints(expected))]);
    assert.equal(isSelfIntersecting(unwrapRing(rings[0]!)), false);
  });

  test('joins one part with several in any order', () => {
    const parts = [
      '-180 6, -178 6, -178 8, -180 8',
      '178 0, 180 0, 180 8, 178 8',
      '-180 0, -178 0, -178 2, -180 2',
    ].map(parsePoints);
    const { rings } = rejoinRings(parts);
    assert.equal(rings.length, 1);
    assertClose(sumOfAreas(rings), sumOfAreas(parts), 1e-12);
  });

  test('removes the cut to the pole, with all vertices on the pole', () => {
    const { rings, holesDropped } = rejoinRings([
      parsePoints('180 -80, 120 -70, 0 -60, -120 -70, -180 -80, -180 -90, -90 -90, 0 -90, 180 -90'),
    ]);
    assertSameRings(rings.map(oneName), [oneName(parsePoints('120 -70, 0 -60, -120 -70, -180 -80'))]);
    assert.equal(holesDropped, false);
  });

  test('fills a hole that the joined parts enclose, and reports it', () => {
    const halves = [
      '178 0, 180 0, 180 1, 179 1, 179 3, 180 3, 180 4, 178 4',
      '-180 0, -178 0, -178 4, -180 4, -180 3, -179 3, -179 1, -180 1',
    ];
    const { rings, holesDropped } = rejoinRings(halves.map(parsePoints));
    assert.equal(holesDropped, true);
    assertSameRings(rings, [parsePoints('178 0, -178 0, -178 4, 178 4')]);
  });

  test('returns overlapping parts untouched, instead of changing the area', () => {
    const parts = [
      '178 0, 180 0, 180 5, 178 5',
      '177 3, 180 3, 180 8, 177 8',
      '-180 0, -178 0, -178 8, -180 8',
    ].map(parsePoints);
    assert.equal(rejoinRings(parts).rings, parts);
  });

  test('returns a band around the Earth untouched', () => {
    const band = [parsePoints('-180 -9, 0 -9, 180 -9, 180 9, 0 9, -180 9')];
    assert.equal(rejoinRings(band).rings, band);
  });
});
