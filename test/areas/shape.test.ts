import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toVertices } from '../../src/areas/area.ts';
import type { EdgeHolder } from '../../src/areas/compiledEdges.memory.ts';
import { type Shape, toShape } from '../../src/areas/shape.ts';

const ring = (lat: number, lng: number, vertices: number) =>
  Array.from({ length: vertices }, (_, n) => {
    const angle = (2 * Math.PI * n) / vertices;
    return { lat: lat + 0.01 * Math.sin(angle), lng: lng + 0.01 * Math.cos(angle) };
  });

const STORED = { worldId: 1, bounds: { south: 41, west: 12, north: 42, east: 13 } };

test('a shape whose edges were forgotten answers as before', () => {
  const shapes = (['polygon', 'polyline'] as const).map((type) => {
    const points = toVertices(ring(41.5, 12.5, 1_900));
    return toShape(type === 'polygon' ? { type, points } : { type, points, bufferM: 50 }, STORED);
  });
  const ask = () => shapes.map((shape) => [shape.contains(41.5, 12.5), shape.signedDistanceM(41.6, 12.5)]);
  const before = ask();
  for (const shape of shapes) (shape as Shape & EdgeHolder).forgetEdges();
  assert.deepEqual(ask(), before);
});
