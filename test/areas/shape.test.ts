import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toVertices } from '../../src/areas/area.ts';
import { CompiledEdges, toShape } from '../../src/areas/shape.ts';
import { buildEdgeIndex, edgeIndexBytes } from '../../src/geo/edgeIndex.ts';
import { unwrapLine } from '../../src/geo/path.ts';

const ring = (lat: number, lng: number, vertices: number) =>
  Array.from({ length: vertices }, (_, n) => {
    const angle = (2 * Math.PI * n) / vertices;
    return { lat: lat + 0.01 * Math.sin(angle), lng: lng + 0.01 * Math.cos(angle) };
  });

test('compiled edges have a limit: those that were compiled longest ago are forgotten first', () => {
  const edges = buildEdgeIndex(unwrapLine(ring(41, 12, 2_000)));
  const each = edgeIndexBytes(edges);
  const compiled = new CompiledEdges(10.5 * (each + 1_000));
  const forgotten: number[] = [];
  for (let n = 0; n < 100; n++) {
    compiled.keep({ forgetEdges: () => forgotten.push(n) }, edges);
    assert.ok(compiled.bytes <= 10.5 * (each + 1_000));
  }
  assert.deepEqual(
    forgotten,
    Array.from({ length: 90 }, (_, n) => n),
  );
});

test('edges that have no room at all are kept until the next ones', () => {
  const edges = buildEdgeIndex(unwrapLine(ring(41, 12, 2_000)));
  const compiled = new CompiledEdges(1);
  const forgotten: number[] = [];
  for (let n = 0; n < 3; n++) compiled.keep({ forgetEdges: () => forgotten.push(n) }, edges);
  assert.deepEqual(forgotten, [0, 1]);
});

test('a shape whose edges were forgotten answers as before', () => {
  const shapes = (['polygon', 'polyline'] as const).map((type) => {
    const points = toVertices(ring(41.5, 12.5, 1_900));
    return toShape(type === 'polygon' ? { type, points } : { type, points, bufferM: 50 });
  });
  const ask = () => shapes.map((shape) => [shape.contains(41.5, 12.5), shape.signedDistanceM(41.6, 12.5)]);
  const before = ask();
  // Edges that take all the room there is.
  const points = toVertices(ring(42, 12, 1_900));
  for (let n = 0; n < 1_200; n++) toShape({ type: 'polygon', points }).contains(0, 0);
  assert.deepEqual(ask(), before);
});
