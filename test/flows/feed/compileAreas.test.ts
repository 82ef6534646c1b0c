import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StoredArea } from '../../../src/areas/storedArea.ts';
import { WorkTurns } from '../../../src/base/workTurns.ts';
import { compileAreas } from '../../../src/flows/feed/compileAreas.ts';
import { AreaCatalog } from '../../../src/memory/areaCatalog.ts';
import { CIRCLE, POLYGON, validArea } from '../../support/http/areas.ts';

function stored(id: number, body: object, revision = 1): StoredArea {
  const { definition, measures } = validArea(body);
  return { id, worldId: 1, accountId: 1, definition, measures, createdAtMs: 0, revision };
}

const compile = (catalog: AreaCatalog, areas: readonly StoredArea[]) =>
  new WorkTurns<string>(1).run('feed', compileAreas(catalog, areas));

const ROUND = {
  ...POLYGON,
  points: Array.from({ length: 2_000 }, (_, n) => {
    const angle = (n / 2_000) * 2 * Math.PI;
    return { lat: Math.sin(angle), lng: Math.cos(angle) };
  }),
};

describe('compiling areas', () => {
  test('puts them into memory with shapes', async () => {
    const catalog = new AreaCatalog();
    await compile(catalog, [stored(1, CIRCLE), stored(2, POLYGON)]);
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
      for (const area of order) await compile(catalog, [area]);
      assert.equal(catalog.area([1], 1)?.definition.name, 'New');
    }
    const catalog = new AreaCatalog();
    await compile(catalog, [second, first]);
    assert.equal(catalog.area([1], 1)?.revision, 2);
  });

  test('does not compile a revision again that is there already', async () => {
    const catalog = new AreaCatalog();
    const area = stored(1, CIRCLE);
    await compile(catalog, [area]);
    const { shape } = catalog.area([1], 1) ?? {};
    await compile(catalog, [stored(1, CIRCLE)]);
    assert.equal(catalog.area([1], 1)?.shape, shape);
  });

  test('pauses after each large area', () => {
    const catalog = new AreaCatalog();
    const steps = compileAreas(
      catalog,
      Array.from({ length: 40 }, (_, n) => stored(n + 1, ROUND)),
    );
    for (let n = 1; n <= 40; n++) {
      steps.next();
      assert.equal(catalog.size, n);
    }
  });
});
