import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RowRings, type TracedRing } from '../../../src/areas/tiles/track.ts';
import { runs } from '../../support/torture.ts';

const WIDTH = 12;
const bitmap = fc.array(fc.array(fc.boolean(), { minLength: WIDTH, maxLength: WIDTH }), {
  minLength: 1,
  maxLength: 12,
});

/** Spans of half a column more than the cells that are set, so that no two ends are equal. */
function spansOf(cells: readonly boolean[]): number[] {
  const spans: number[] = [];
  for (const [n, isSet] of cells.entries()) {
    if (!isSet) continue;
    if (n > 0 && cells[n - 1] === true) spans[spans.length - 1] = n + 0.75;
    else spans.push(n, n + 0.75);
  }
  return spans;
}

function isInside(rings: readonly TracedRing[], x: number, y: number): boolean {
  let isOdd = false;
  for (const { path } of rings) {
    for (let at = 0; at < path.length; at += 2) {
      const [x0, y0] = [path[at]!, path[at + 1]!];
      const [x1, y1] = [path[(at + 2) % path.length]!, path[(at + 3) % path.length]!];
      if (y0 <= y !== y1 <= y && x < x0 + ((y - y0) / (y1 - y0)) * (x1 - x0)) isOdd = !isOdd;
    }
  }
  return isOdd;
}

function doubleArea({ path }: TracedRing): number {
  let sum = 0;
  for (let at = 0; at < path.length; at += 2) {
    sum += path[at]! * path[(at + 3) % path.length]! - path[(at + 2) % path.length]! * path[at + 1]!;
  }
  return sum;
}

describe('rings of rows', () => {
  test('enclose the spans between two equal rows and nothing else there, holes included', () => {
    let holes = 0;
    fc.assert(
      fc.property(bitmap, (rows) => {
        const rings = new RowRings();
        let y = 100;
        const known: [y: number, cells: readonly boolean[]][] = [];
        for (const cells of rows) {
          const spans = spansOf(cells);
          rings.add({ y, spans });
          rings.add({ y: y - 1, spans });
          known.push([y - 0.5, cells]);
          y -= 2;
        }
        const traced = rings.finish();
        for (const [at, cells] of known) {
          for (const [n, isSet] of cells.entries()) {
            assert.equal(isInside(traced, n + 0.375, at), isSet, `${n} ${at}`);
            if (!(isSet && cells[n + 1] === true)) assert.equal(isInside(traced, n + 0.875, at), false);
          }
        }
        let hasExterior = false;
        for (const ring of traced) {
          assert.equal(doubleArea(ring) < 0, ring.isHole);
          assert.ok(hasExterior || !ring.isHole, 'a hole follows what it is in');
          hasExterior = true;
          if (ring.isHole) holes++;
        }
      }),
      { seed: 3, numRuns: runs(500) },
    );
    assert.ok(holes > 20, `${holes} holes`);
  });

  test('put every hole behind the ring around it', () => {
    const rings = new RowRings();
    // Two frames side by side.
    for (const y of [10, 9]) rings.add({ y, spans: [0, 10, 20, 30] });
    for (const y of [8, 7]) rings.add({ y, spans: [0, 2, 8, 10, 20, 22, 28, 30] });
    for (const y of [6, 5]) rings.add({ y, spans: [0, 10, 20, 30] });
    const order = rings
      .finish()
      .map(({ path, isHole }) => `${isHole ? 'hole' : 'ring'} ${path[0]! < 15 ? 'west' : 'east'}`);
    assert.deepEqual(order, ['ring west', 'hole west', 'ring east', 'hole east']);
  });
});
