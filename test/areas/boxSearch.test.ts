import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { areaInMemory } from '../support/ingest/polygons.ts';
import { runs } from '../support/torture.ts';

const circle = (id: number, lat: number, lng: number, revision = 1, worldId = 1) =>
  areaInMemory(id, { type: 'circle', center: { lat, lng }, radiusM: 1_000 }, { revision, worldId });

const BOX = { minX: 10, minY: 40, maxX: 11, maxY: 41 };
const isInBox = (lat: number, lng: number) => lat > 40 && lat < 41 && lng > 10 && lng < 11;

const steps = fc.array(
  fc.record({
    id: fc.integer({ min: 1, max: 8 }),
    isRemoved: fc.boolean(),
    worldId: fc.constantFrom(1, 2, 3),
    place: fc.constantFrom([40.5, 10.5], [40.6, 10.4], [50, 10.5], [40.5, 100]),
  }),
  { maxLength: 40 },
);

describe('a search of a box', () => {
  test('has a digest that changes when an area of the box and of its worlds does, and at no other change', () => {
    fc.assert(
      fc.property(steps, (changes) => {
        const catalog = new AreaCatalog();
        /** What the digest was for each set of revisions. */
        const digests = new Map<string, string>();
        const held = new Map<number, { lat: number; lng: number; revision: number; worldId: number }>();
        let revision = 0;
        for (const { id, isRemoved, worldId, place } of changes) {
          const [lat, lng] = place as [number, number];
          revision++;
          if (isRemoved) {
            catalog.remove(id);
            held.delete(id);
          } else {
            catalog.put(circle(id, lat, lng, revision, worldId));
            held.set(id, { lat, lng, revision, worldId });
          }
          const expected = [...held]
            .filter(([, area]) => area.worldId !== 3 && isInBox(area.lat, area.lng))
            .sort(([a], [b]) => a - b);
          const found = inOneGo(catalog.inBox([1, 2], BOX)).map((area) => area.id);
          assert.deepEqual(
            found.sort((a, b) => a - b),
            expected.map(([each]) => each),
          );
          const name = expected.map(([each, area]) => `${each}.${area.revision}`).join();
          const digest = JSON.stringify(inOneGo(catalog.digest([1, 2], BOX)));
          assert.equal(digests.get(name) ?? digest, digest, 'the same areas, the same digest');
          for (const [other, its] of digests) if (other !== name) assert.notEqual(its, digest);
          digests.set(name, digest);
        }
      }),
      { seed: 21, numRuns: runs(300) },
    );
  });

  test('has the same digest however the areas came, and one that was kept is not told after a change', () => {
    const areas = Array.from({ length: 300 }, (_, n) => circle(n + 1, 40.1 + n / 400, 10.5));
    const loaded = new AreaCatalog();
    for (const area of areas) loaded.load(area);
    inOneGo(loaded.index());
    const added = new AreaCatalog();
    for (const area of areas.toReversed()) added.put(area);
    const digestOf = (catalog: AreaCatalog) => inOneGo(catalog.digest([1], BOX));
    assert.deepEqual(digestOf(added), digestOf(loaded));
    assert.deepEqual(digestOf(added), digestOf(added));
    const before = digestOf(added);
    added.put(circle(7, 40.2, 10.5, 2));
    assert.notDeepEqual(digestOf(added), before);
    added.put(circle(7, 40.1 + 6 / 400, 10.5, 1));
    assert.deepEqual(digestOf(added), before);
  });

  test('finds what there was at one moment, whatever changes between its steps', () => {
    const catalog = new AreaCatalog();
    for (let n = 0; n < 30_000; n++) catalog.load(circle(n + 1, 40.1 + (n % 800) / 1000, 10.1 + n / 40_000));
    inOneGo(catalog.index());
    let [moves, pauses] = [0, 0];
    for (let round = 0; round < 3; round++) {
      const search = catalog.inBox([1], BOX);
      for (let step = search.next(); ; step = search.next()) {
        if (step.done === true) {
          assert.equal(new Set(step.value.map(({ id }) => id)).size, 30_000);
          break;
        }
        pauses++;
        // Two areas change places, from one end of the tree to the other.
        if (moves < 4 * (round + 1)) {
          moves++;
          catalog.put(circle(1, 40.5, moves % 2 === 0 ? 10.05 : 10.95));
          catalog.put(circle(30_000, 40.5, moves % 2 === 0 ? 10.95 : 10.05));
        }
      }
    }
    assert.ok(pauses > 0);
  });
});
