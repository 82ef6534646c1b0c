import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { cutLine } from '../../../src/geo/antimeridianCut.ts';
import { rejoinLines } from '../../../src/geo/antimeridianRejoin.ts';
import { pathLengthM } from '../../../src/geo/measure.ts';
import { unwrapLine } from '../../../src/geo/path.ts';
import { runs } from '../../support/torture.ts';
import { assertClose, oneNameOf } from '../sameRings.ts';
import { exactDegrees, parsePoints } from '../shapes.ts';

/** A track, the lines it is cut into, and what comes back if that is not the track itself. */
const lines: readonly (readonly [
  name: string,
  track: string,
  parts: readonly string[],
  rejoined?: string,
])[] = [
  ['clear of the antimeridian', '10 0, 20 5', ['10 0, 20 5']],
  ['over it', '179 0, -179 1', ['179 0, 180 0.5', '-180 0.5, -179 1']],
  ['over it westward', '-179 0, 179 1', ['-179 0, -180 0.5', '180 0.5, 179 1']],
  ['with a vertex on it', '179 0, 180 3, -179 2', ['179 0, 180 3', '-180 3, -179 2']],
  [
    'with a vertex on it that keeps a wide edge from going the other way',
    '-40 -45, -180 -45, 50 -45',
    ['-40 -45, -180 -45', '180 -45, 50 -45'],
  ],
  [
    'touching it from the east',
    '-179 0, 180 1, -179 2',
    ['-179 0, -180 1, -179 2'],
    '-179 0, -180 1, -179 2',
  ],
  ['touching it from the west', '179 0, -180 1, 179 2', ['179 0, 180 1, 179 2'], '179 0, 180 1, 179 2'],
  ['along it, then east', '180 0, 180 5, -170 6', ['-180 0, -180 5, -170 6'], '-180 0, -180 5, -170 6'],
  ['along it, then west', '-180 0, -180 5, 170 6', ['180 0, 180 5, 170 6'], '180 0, 180 5, 170 6'],
  ['along it and over', '179 0, 180 1, 180 4, -179 5', ['179 0, 180 1, 180 4', '-180 4, -179 5']],
  ['along it only', '180 0, 180 5', ['-180 0, -180 5'], '-180 0, -180 5'],
  [
    'touching, then over',
    '-179 0, 180 1, -179 2, 179 4',
    ['-179 0, -180 1, -179 2, -180 3', '180 3, 179 4'],
    '-179 0, -180 1, -179 2, 179 4',
  ],
  [
    'around the Earth and on',
    '170 0, -170 0, -50 0, 80 0, 179 5, -175 5',
    ['170 0, 180 0', '-180 0, -170 0, -50 0, 80 0, 179 5, 180 5', '-180 5, -175 5'],
  ],
  [
    'to and fro',
    '179 0, -179 2, 179 4, -179 6',
    ['179 0, 180 1', '-180 1, -179 2, -180 3', '180 3, 179 4, 180 5', '-180 5, -179 6'],
  ],
];

describe('cutLine and rejoinLines', () => {
  for (const [name, track, parts, rejoined] of lines) {
    test(`cut and rejoin a line: ${name}`, () => {
      const cut = cutLine(unwrapLine(parsePoints(track)));
      assert.deepEqual(cut, parts.map(parsePoints));
      assert.deepEqual(rejoinLines(cut), [parsePoints(rejoined ?? track)]);
    });
  }

  test('lines come back with every vertex and their length', () => {
    const corner = fc.record({
      lat: exactDegrees(-80, 80),
      lng: fc.oneof(exactDegrees(-180, 180), exactDegrees(170, 180), exactDegrees(-180, -170)),
    });
    fc.assert(
      fc.property(fc.array(corner, { minLength: 2, maxLength: 30 }), (points) => {
        const path = unwrapLine(points);
        const parts = cutLine(path);
        for (const part of parts) {
          assert.ok(part.length >= 2);
          assert.ok(part.every(({ lng }, i) => i === 0 || Math.abs(lng - part[i - 1]!.lng) <= 180));
        }
        const back = rejoinLines(parts);
        assert.equal(back.length, 1);
        assert.deepEqual(back[0]!.map(oneNameOf), points.map(oneNameOf));
        assertClose(pathLengthM(unwrapLine(back[0]!)), pathLengthM(path), 1e-12);
      }),
      { seed: 18, numRuns: runs(100) },
    );
  });
});

describe('rejoinLines', () => {
  test('rejoinLines leaves lines alone that do not meet on the antimeridian', () => {
    const parts = ['0 0, 1 0', '1 0, 2 0', '179 0, 180 5', '-180 6, -179 9', '180 6, 170 6'].map(parsePoints);
    assert.deepEqual(rejoinLines(parts), parts);
  });

  test('rejoinLines joins lines in any order, but first with the next line', () => {
    const parts = ['-180 5, -179 6', '179 4, 180 5', '0 0, 1 1'].map(parsePoints);
    assert.deepEqual(rejoinLines(parts), ['179 4, -179 6', '0 0, 1 1'].map(parsePoints));
    const twins = ['-180 5, -179 7', '179 4, 180 5', '-180 5, -179 9', '178 4, 180 5'].map(parsePoints);
    assert.deepEqual(rejoinLines(twins), ['179 4, 180 5, -179 9', '178 4, 180 5, -179 7'].map(parsePoints));
  });

  test('rejoinLines starts a closed line around the Earth with its first part', () => {
    const parts = ['-180 0, 0 5, 180 3', '-180 3, 0 8, 180 0'].map(parsePoints);
    assert.deepEqual(rejoinLines(parts), [parsePoints('-180 0, 0 5, 180 3, 0 8, 180 0')]);
  });
});
