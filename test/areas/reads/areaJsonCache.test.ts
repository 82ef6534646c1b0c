import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { areaView, type StoredArea } from '../../../src/areas/area.ts';
import { AreaJsonCache } from '../../../src/areas/areaAnswers.ts';
import { areaFeature } from '../../../src/areas/geojson.ts';
import { smallPolygon } from '../../support/ingest/polygons.ts';
import { runs } from '../../support/torture.ts';

const LIMITS = { bytes: 40_000, bytesPerWorld: 15_000 };

describe('kept JSON of areas', () => {
  test('is that of the view, and is made once for each revision', () => {
    const texts = new AreaJsonCache();
    const area = smallPolygon(1, 1, 20);
    for (const [format, view] of [
      ['json', areaView],
      ['geojson', areaFeature],
    ] as const) {
      assert.equal(texts.kept(area, format), undefined);
      const text = texts.text(area, format);
      assert.equal(text.toString(), JSON.stringify(view(area)));
      assert.equal(texts.text({ ...area }, format), text);
      const edited: StoredArea = {
        ...area,
        revision: 2,
        definition: { ...area.definition, name: 'Überführung "2"' },
      };
      assert.equal(texts.kept(edited, format), undefined);
      assert.equal(texts.text(edited, format).toString(), JSON.stringify(view(edited)));
    }
  });

  test('takes no more than its bounds, whatever is asked for', () => {
    const asked = fc.record({
      id: fc.integer({ min: 1, max: 12 }),
      worldId: fc.integer({ min: 1, max: 6 }),
      vertices: fc.constantFrom(3, 40, 400),
      revision: fc.integer({ min: 1, max: 2 }),
    });
    fc.assert(
      fc.property(fc.array(asked, { maxLength: 200, size: 'max' }), (all) => {
        const texts = new AreaJsonCache(LIMITS);
        for (const { id, worldId, vertices, revision } of all) {
          // One id is one area: its world and its vertices follow from the id and the revision.
          const area = {
            ...smallPolygon(100 * worldId + id, worldId, vertices),
            revision: 10 * revision + vertices,
          };
          assert.equal(texts.text(area, 'json').toString(), JSON.stringify(areaView(area)));
          assert.ok(texts.bytes <= LIMITS.bytes, `${texts.bytes} bytes`);
        }
      }),
      { seed: 5, numRuns: runs(10), endOnFailure: true },
    );
  });

  test('of other worlds stays while one world reads all of its own again and again', () => {
    const texts = new AreaJsonCache(LIMITS);
    const others = [2, 3, 4].map((worldId) => smallPolygon(worldId, worldId, 40));
    for (const area of others) texts.text(area, 'json');
    for (let round = 0; round < 3; round++) {
      for (let id = 100; id < 200; id++) texts.text(smallPolygon(id, 1, 40), 'json');
    }
    for (const area of others) assert.ok(texts.kept(area, 'json') !== undefined, `of world ${area.worldId}`);
  });

  test('of a world that holds little stays while many others read much', () => {
    const texts = new AreaJsonCache(LIMITS);
    const little = smallPolygon(1, 1, 3);
    texts.text(little, 'json');
    for (let round = 0; round < 6; round++) {
      for (let worldId = 2; worldId <= 6; worldId++)
        for (let n = 0; n < 10; n++)
          texts.text(smallPolygon(1_000 * worldId + 10 * round + n, worldId, 40), 'json');
      assert.ok(texts.kept(little, 'json') !== undefined, `round ${round}`);
    }
  });
});
