import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CompiledEdges } from '../../src/areas/compiledEdges.memory.ts';
import { buildEdgeIndex, type EdgeIndex, edgeIndexBytes } from '../../src/geo/edgeIndex.ts';
import { unwrapLine } from '../../src/geo/path.ts';

const LARGE = edgesOf(2_000);
const LARGE_BYTES = edgeIndexBytes(LARGE) + 1_000;
const SMALL = edgesOf(20);
const SMALL_BYTES = edgeIndexBytes(SMALL) + 1_000;
const ATTACKER = 1;
const VICTIM = 2;

test('beyond the limit, edges that were compiled longest ago are forgotten first', () => {
  const compiled = new CompiledEdges(10.5 * LARGE_BYTES);
  const forgotten: number[] = [];
  for (let n = 0; n < 100; n++) {
    compiled.keep(ATTACKER, { forgetEdges: () => forgotten.push(n) }, LARGE);
    assert.ok(compiled.bytes <= 10.5 * LARGE_BYTES);
  }
  assert.deepEqual(
    forgotten,
    Array.from({ length: 90 }, (_, n) => n),
  );
});

test('edges that have no room at all are kept until the next ones', () => {
  const compiled = new CompiledEdges(1);
  const forgotten: number[] = [];
  for (let n = 0; n < 3; n++) compiled.keep(n, { forgetEdges: () => forgotten.push(n) }, LARGE);
  assert.deepEqual(forgotten, [0, 1]);
});

test('a world that asks about more areas than have room forgets its own, and none of its neighbour', () => {
  const compiled = new CompiledEdges(100 * LARGE_BYTES);
  const never = { forgetEdges: () => assert.fail('the neighbour has lost edges') };
  for (let n = 0; n < 40; n++) compiled.keep(VICTIM, { ...never }, n % 2 === 0 ? LARGE : SMALL);
  let forgotten = 0;
  for (let n = 0; n < 10_000; n++) compiled.keep(ATTACKER, { forgetEdges: () => forgotten++ }, LARGE);
  assert.equal(forgotten, 10_000 - Math.floor(100 - (20 * (LARGE_BYTES + SMALL_BYTES)) / LARGE_BYTES));
});

test('a world that holds less than half of an equal share loses nothing, whoever asks about what', () => {
  const asked = fc.record({ worldId: fc.integer({ min: 1, max: 6 }), isLarge: fc.boolean() });
  fc.assert(
    fc.property(fc.array(asked, { minLength: 50, maxLength: 200, size: 'max' }), (calls) => {
      const maxBytes = 20 * LARGE_BYTES;
      const compiled = new CompiledEdges(maxBytes);
      const held = new Map<number, number>();
      for (const { worldId, isLarge } of calls) {
        const bytes = isLarge ? LARGE_BYTES : SMALL_BYTES;
        held.set(worldId, (held.get(worldId) ?? 0) + bytes);
        const forgetEdges = () => {
          const left = held.get(worldId)!;
          assert.ok(left >= maxBytes / held.size / 2, `world ${worldId} had only ${left} bytes`);
          held.set(worldId, left - bytes);
        };
        compiled.keep(worldId, { forgetEdges }, isLarge ? LARGE : SMALL);
        const sum = [...held.values()].reduce((all, one) => all + one, 0);
        assert.equal(compiled.bytes, sum);
        assert.ok(sum <= maxBytes);
      }
    }),
  );
});

test('the edges of a world share buffers, and keep none of another world alive', () => {
  const compiled = new CompiledEdges(100 * LARGE_BYTES);
  const buffersOf = (worldId: number) => {
    const built = Array.from({ length: 50 }, () => edgesOf(20, compiled, worldId));
    return new Set(built.flatMap(({ vertices, runs }) => [vertices.buffer, runs.buffer]));
  };
  const [ours, theirs] = [buffersOf(ATTACKER), buffersOf(VICTIM)];
  assert.ok(ours.size < 10);
  assert.ok([...ours].every((buffer) => !theirs.has(buffer)));
});

function edgesOf(vertices: number, compiled?: CompiledEdges, worldId = 0): EdgeIndex {
  const points = Array.from({ length: vertices }, (_, n) => {
    const angle = (2 * Math.PI * n) / vertices;
    return { lat: 41 + 0.01 * Math.sin(angle), lng: 12 + 0.01 * Math.cos(angle) };
  });
  return buildEdgeIndex(unwrapLine(points), compiled?.pages(worldId));
}
