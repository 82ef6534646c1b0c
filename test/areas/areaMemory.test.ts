import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectGarbage } from '../../bench/feeds/changes.ts';
import { smallAreas } from '../../bench/setup/areas.ts';
import { areaMeasures, type StoredArea } from '../../src/areas/area.ts';
import { AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { fillAreas } from '../../src/coherence/applyChanges.ts';
import { NumberPages } from '../../src/lib/numberPages.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';

const AREAS = 20_000;
/** The first ones, which are loaded before what is measured, bring code and its types into memory too. */
const FIRST = 1_000;
const VERTICES = 20;

function usedBytes(): number {
  // What a first collection frees of large arrays counts until the next.
  for (let n = 0; n < 2; n++) collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test('an area takes at most 975 bytes and 16 for each vertex, with everything by which it is found', () => {
  const areas = smallAreas(FIRST + AREAS);
  const pages = new NumberPages();
  const catalog = new AreaCatalog();
  let id = 0;
  const load = (count: number): void => {
    const stored = Array.from({ length: count }, (): StoredArea => {
      const { geometry, ...fields } = areas.next().value as StoredArea['definition'];
      assert.ok(geometry.type === 'polygon' && geometry.points.length === 2 * VERTICES);
      const points = pages.take(geometry.points.length);
      points.set(geometry.points);
      const polygon = { type: geometry.type, points };
      const { name, color, externalId, dwellSeconds } = fields;
      const definition = { name, color, geometry: polygon, externalId, dwellSeconds };
      const { areaM2, perimeterM, lengthM, bounds, center } = areaMeasures(polygon);
      const measures = { areaM2, perimeterM, lengthM, bounds, center };
      const createdAtMs = 1_700_000_000_000 + ++id;
      return { id, worldId: 1, accountId: 1, definition, measures, createdAtMs, revision: 1 };
    });
    inOneGo(fillAreas(catalog, stored));
    inOneGo(catalog.index());
  };
  load(FIRST);
  const before = usedBytes();
  load(AREAS);
  const each = (usedBytes() - before) / AREAS - 16 * VERTICES;
  assert.ok(each <= 975, `${each} bytes for an area`);
  assert.equal(catalog.size, FIRST + AREAS);
});
