import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Label, ringAround, withoutOverlaps } from '../../../src/console/page/map/vehicles/labels.ts';

const LINE_PX = 16;
const LABELS = fc.array(
  fc.record({
    imei: fc.string(),
    x: fc.double({ min: -300, max: 300, noNaN: true }),
    y: fc.double({ min: -300, max: 300, noNaN: true }),
    width: fc.double({ min: 1, max: 160, noNaN: true }),
  }),
  { maxLength: 60 },
);
const isOver = (a: Label, b: Label): boolean =>
  Math.abs(a.y - b.y) < LINE_PX && a.x < b.x + b.width && b.x < a.x + a.width;

test('names do not cover each other, the first ones are kept, and only those are left out that have no place', () => {
  fc.assert(
    fc.property(LABELS, (labels) => {
      const placed = withoutOverlaps(labels, 1_000);
      const expected: Label[] = [];
      for (const label of labels) if (!expected.some((other) => isOver(label, other))) expected.push(label);
      assert.deepEqual(placed, expected);
    }),
  );
});

test('there are no more names than the bound', () => {
  const labels = Array.from({ length: 300 }, (_, n) => ({ imei: String(n), x: 0, y: 20 * n, width: 50 }));
  assert.equal(withoutOverlaps(labels, 150).length, 150);
});

test('vehicles on one spot stand around it, each apart from the next', () => {
  for (const count of [2, 5, 30]) {
    const ring = ringAround(count);
    assert.equal(ring.length, count);
    for (const [n, { x, y }] of ring.entries()) {
      const next = ring[(n + 1) % count]!;
      assert.ok(Math.hypot(next.x - x, next.y - y) > 24, `${count}`);
      assert.ok(Math.abs(Math.hypot(x, y) - Math.hypot(ring[0]!.x, ring[0]!.y)) < 1e-9);
    }
  }
});
