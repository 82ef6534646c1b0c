import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StoredArea } from '../../src/areas/area.ts';
import { type Area, AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { putAreas } from '../../src/coherence/applyChanges.ts';
import { WorkTurns } from '../../src/lib/workTurns.ts';
import { CIRCLE, POLYGON, validArea } from '../support/http/areas.ts';
import { spin } from '../support/spin.ts';

function stored(id: number, body: object, revision = 1): StoredArea {
  const { definition, measures } = validArea(body);
  return { id, worldId: 1, accountId: 1, definition, measures, createdAtMs: 0, revision };
}

const put = (catalog: AreaCatalog, areas: readonly StoredArea[]) =>
  new WorkTurns<string>(1).run('feed', putAreas(catalog, areas));

const ROUND = {
  ...POLYGON,
  points: Array.from({ length: 2_000 }, (_, n) => {
    const angle = (n / 2_000) * 2 * Math.PI;
    return { lat: Math.sin(angle), lng: Math.cos(angle) };
  }),
};

describe('putting areas into memory', () => {
  test('puts them there with shapes', async () => {
    const catalog = new AreaCatalog();
    await put(catalog, [stored(1, CIRCLE), stored(2, POLYGON)]);
    const { shape } = catalog.area([1], 1) ?? {};
    const { lat, lng } = CIRCLE.center;
    assert.equal(shape?.contains(lat, lng), true);
    assert.ok(Math.abs((shape?.signedDistanceM(lat, lng) ?? 0) + CIRCLE.radius_m) < 1e-6);
    assert.equal(catalog.area([1], 2)?.shape.contains(lat, lng - 1), false);
  });

  test('keeps the newest revision in any order', async () => {
    const [first, second] = [stored(1, CIRCLE, 1), stored(1, { ...CIRCLE, name: 'New', radius_m: 50 }, 2)];
    for (const order of [
      [first, second],
      [second, first],
      [second, first, first],
    ]) {
      const catalog = new AreaCatalog();
      for (const area of order) await put(catalog, [area]);
      assert.equal(catalog.area([1], 1)?.definition.name, 'New');
    }
    const catalog = new AreaCatalog();
    await put(catalog, [second, first]);
    assert.equal(catalog.area([1], 1)?.revision, 2);
  });

  test('keeps the shape of a revision that is there already', async () => {
    const catalog = new AreaCatalog();
    const area = stored(1, CIRCLE);
    await put(catalog, [area]);
    const { shape } = catalog.area([1], 1) ?? {};
    await put(catalog, [stored(1, CIRCLE)]);
    assert.equal(catalog.area([1], 1)?.shape, shape);
  });

  test('pauses after a few areas that take long, and puts each when it is complete', () => {
    const catalog = new SlowCatalog();
    const round = stored(1, ROUND);
    const areas = Array.from({ length: 40 }, (_, n) => ({ ...round, id: n + 1 }));
    const steps = putAreas(catalog, areas);
    let pauses = 0;
    for (let before = 0; steps.next().done !== true; before = catalog.size) {
      pauses++;
      assert.ok(catalog.size - before <= 4, `${catalog.size - before} areas in one step`);
    }
    assert.ok(pauses >= 10, `${pauses} pauses`);
    assert.equal(catalog.size, 40);
  });
});

class SlowCatalog extends AreaCatalog {
  override put(area: Area): void {
    spin(1);
    super.put(area);
  }
}
