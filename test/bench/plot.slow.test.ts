import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plot } from '../../bench/report/plot.ts';

const curves = [
  {
    name: 'nearest <k=1>',
    points: [
      [10_000, 1],
      [100_000, 1.5],
      [1_000_000, 2],
    ],
  },
  {
    name: 'contains',
    points: [
      [1_000, 0.5],
      [100_000, 0.5],
    ],
  },
] as const;

test('a plot has every curve with all its points inside the frame, a legend and a caption', () => {
  const svg = plot(curves, 'a machine');
  const lines = [...svg.matchAll(/<polyline points="([^"]+)"/g)].map((match) => match[1]?.split(' ') ?? []);
  assert.deepEqual(
    lines.map((points) => points.length),
    [3, 2],
  );
  for (const point of lines.flat()) {
    const [x, y] = point.split(',').map(Number) as [number, number];
    assert.ok(x >= 64 && x <= 736 && y >= 40 && y <= 304, point);
  }
  assert.match(svg, /nearest &lt;k=1>/);
  assert.match(svg, />a machine</);
  assert.match(svg, />1 M</);
});

test('both axes are logarithmic: every decade has the same width, and a constant is level', () => {
  const [rising, level] = [...plot(curves, '').matchAll(/<polyline points="([^"]+)"/g)].map((match) =>
    (match[1] as string).split(' ').map((point) => point.split(',').map(Number)),
  ) as [number[][], number[][]];
  const x = (n: number) => rising[n]?.[0] as number;
  assert.ok(Math.abs(x(1) - x(0) - (x(2) - x(1))) < 0.2);
  assert.equal(level[0]?.[1], level[1]?.[1]);
});
