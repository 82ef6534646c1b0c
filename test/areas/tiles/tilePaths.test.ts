import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  clipLine,
  clipRing,
  keptPoints,
  lineMeets,
  type PlanePath,
  ringMeets,
  simplifyPath,
  TOLERANCE_UNITS,
  withoutFar,
} from '../../../src/areas/tiles/tilePaths.ts';
import { runs } from '../../support/torture.ts';

const BOX = { left: 0, top: 0, right: 10, bottom: 10 };
const coordinate = fc.oneof(
  fc.double({ min: -20, max: 30, noNaN: true }).map((x) => Math.round(x * 1e6) / 1e6),
  fc.integer({ min: -20, max: 30 }),
);
const anyPath = fc
  .array(fc.tuple(coordinate, coordinate), { minLength: 2, maxLength: 40 })
  .map((points) => points.flat());

function distanceToEdge(x: number, y: number, path: PlanePath, n: number, m: number): number {
  const [x0, y0, x1, y1] = [path[2 * n]!, path[2 * n + 1]!, path[2 * m]!, path[2 * m + 1]!];
  const squared = (x1 - x0) ** 2 + (y1 - y0) ** 2;
  const share = squared === 0 ? 0 : ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / squared;
  const at = Math.max(0, Math.min(1, share));
  return Math.hypot(x0 + at * (x1 - x0) - x, y0 + at * (y1 - y0) - y);
}

const isIn = (x: number, y: number) => x >= 0 && x <= 10 && y >= 0 && y <= 10;

describe('a path of a tile', () => {
  test('loses only points that are within the tolerance of what remains, and keeps its ends', () => {
    let dropped = 0;
    const smooth = fc
      .array(
        fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: -0.4, max: 0.4, noNaN: true })),
        { minLength: 2, maxLength: 60 },
      )
      .map((steps) => {
        let x = 0;
        return steps.flatMap(([step, y]) => {
          x += step;
          return [x, y];
        });
      });
    fc.assert(
      fc.property(fc.oneof(anyPath, smooth), (path) => {
        const kept = keptPoints(path);
        const last = path.length / 2 - 1;
        assert.deepEqual([kept[0], kept.at(-1)], [0, last]);
        assert.deepEqual(
          simplifyPath(path),
          kept.flatMap((n) => [path[2 * n]!, path[2 * n + 1]!]),
        );
        for (let n = 0, part = 0; n <= last; n++) {
          if (n > kept[part + 1]!) part++;
          const distance = distanceToEdge(path[2 * n]!, path[2 * n + 1]!, path, kept[part]!, kept[part + 1]!);
          assert.ok(distance <= TOLERANCE_UNITS + 1e-9, `point ${n} is ${distance} away`);
        }
        dropped += last + 1 - kept.length;
      }),
      { seed: 11, numRuns: runs(500) },
    );
    assert.ok(dropped > 500);
  });

  test('keeps what it has of a box when it is clipped, and nothing else', () => {
    fc.assert(
      fc.property(
        anyPath,
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 5, maxLength: 5 }),
        (path, shares) => {
          const parts = clipLine(path, BOX);
          for (const part of parts) {
            for (let at = 0; at < part.length; at += 2) {
              assert.ok(isIn(Math.round(part[at]! * 1e5) / 1e5, Math.round(part[at + 1]! * 1e5) / 1e5));
            }
          }
          assert.equal(lineMeets(path, BOX), parts.length > 0);
          for (let n = 1; n < path.length / 2; n++) {
            for (const share of shares) {
              const x = path[2 * n - 2]! + share * (path[2 * n]! - path[2 * n - 2]!);
              const y = path[2 * n - 1]! + share * (path[2 * n + 1]! - path[2 * n - 1]!);
              if (!isIn(x, y)) continue;
              const nearest = Math.min(
                ...parts.flatMap((part) =>
                  Array.from({ length: part.length / 2 - 1 }, (_, m) => distanceToEdge(x, y, part, m, m + 1)),
                ),
              );
              assert.ok(nearest < 1e-5, `${nearest}`);
            }
          }
        },
      ),
      { seed: 12, numRuns: runs(300) },
    );
  });

  test('that is a ring encloses the same positions of the box when it is clipped, and meets the box if any', () => {
    const holds = (ring: PlanePath, x: number, y: number): boolean => {
      let isOdd = false;
      for (let at = 0; at < ring.length; at += 2) {
        const [x0, y0] = [ring[at]!, ring[at + 1]!];
        const [x1, y1] = [ring[(at + 2) % ring.length]!, ring[(at + 3) % ring.length]!];
        if (y0 <= y !== y1 <= y && x < x0 + ((y - y0) / (y1 - y0)) * (x1 - x0)) isOdd = !isOdd;
      }
      return isOdd;
    };
    fc.assert(
      fc.property(anyPath, (ring) => {
        const clipped = clipRing(ring, BOX);
        let isAnyInside = false;
        for (let n = 0; n < 15; n++) {
          for (let m = 0; m < 15; m++) {
            const [x, y] = [0.3137 + n * 0.6713, 0.2791 + m * 0.6637];
            const isInside = holds(ring, x, y);
            isAnyInside ||= isInside;
            assert.equal(holds(clipped, x, y), isInside, `${x} ${y}`);
          }
        }
        if (isAnyInside) assert.ok(ringMeets(ring, BOX));
        if (!ringMeets(ring, BOX)) assert.ok(!isAnyInside);
      }),
      { seed: 13, numRuns: runs(300) },
    );
    assert.ok(!ringMeets([20, 20, 30, 20, 30, 30], BOX));
    assert.ok(ringMeets([-20, -20, 60, -20, -20, 60], BOX), 'the box is inside');
  });

  test('runs through a box as before without the points that are far from it', () => {
    let dropped = 0;
    fc.assert(
      fc.property(
        fc.oneof(
          anyPath,
          anyPath.map((path) => path.map((value) => 4 * value)),
        ),
        (path) => {
          const kept = withoutFar(path, BOX);
          dropped += path.length / 2 - kept.length;
          const near = kept.flatMap((n) => [path[2 * n]!, path[2 * n + 1]!]);
          assert.deepEqual(clipLine(near, BOX), clipLine(path, BOX));
          assert.deepEqual([kept[0], kept.at(-1)], [0, path.length / 2 - 1]);
        },
      ),
      { seed: 14, numRuns: runs(500) },
    );
    assert.ok(dropped > 100, `${dropped}`);
  });
});
