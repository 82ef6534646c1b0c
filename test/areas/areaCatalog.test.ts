import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AREA_TYPES, type AreaGeometry, type AreaType } from '../../src/areas/area.ts';
import type { Area } from '../../src/areas/areaCatalog.memory.ts';
import { AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { runs } from '../support/torture.ts';

interface Sketch {
  readonly id: number;
  readonly worldId?: number;
  readonly accountId?: number;
  readonly type?: AreaType;
  readonly externalId?: string | null;
  readonly revision?: number;
}

const POINTS = Float64Array.from([0, 0, 0, 1, 1, 0]);
const CENTER = { lat: 0, lng: 0 };
const GEOMETRIES: { readonly [Type in AreaType]: AreaGeometry } = {
  circle: { type: 'circle', center: CENTER, radiusM: 100 },
  point: { type: 'point', center: CENTER, radiusM: 50 },
  polygon: { type: 'polygon', points: POINTS },
  polyline: { type: 'polyline', points: POINTS, bufferM: 50 },
};

function area({
  id,
  worldId = 1,
  accountId = 1,
  type = 'circle',
  externalId = null,
  revision = 1,
}: Sketch): Area {
  return {
    id,
    worldId,
    accountId,
    revision,
    createdAtMs: 0,
    definition: {
      name: `Area ${id}`,
      color: '#3b82f6',
      geometry: GEOMETRIES[type],
      externalId,
      dwellSeconds: 0,
    },
    measures: {
      areaM2: 1,
      perimeterM: 1,
      lengthM: null,
      bounds: { south: 0, west: 0, north: 0, east: 0 },
      center: CENTER,
    },
    shape: {
      contains: () => true,
      insideDistanceM: () => -1,
      signedDistanceM: () => -1,
      boxes: [],
      parts: [],
    },
  };
}

describe('the catalog finds an area', () => {
  test('by its external id, but only of the given account and in the given worlds', () => {
    const catalog = new AreaCatalog();
    catalog.put(area({ id: 1, accountId: 1, worldId: 1, externalId: 'x' }));
    catalog.put(area({ id: 2, accountId: 2, worldId: 1, externalId: 'x' }));
    assert.equal(catalog.byExternalId([1], 1, 'x')?.id, 1);
    assert.equal(catalog.byExternalId([1], 2, 'x')?.id, 2);
    assert.equal(catalog.byExternalId([2], 1, 'x'), undefined);
    assert.equal(catalog.byExternalId([1], 3, 'x'), undefined);
    assert.equal(catalog.byExternalId([1], 1, 'X'), undefined);
    catalog.remove(2);
    assert.equal(catalog.byExternalId([1], 1, 'x')?.id, 1);
  });

  test('without an external id by none', () => {
    const catalog = new AreaCatalog();
    catalog.put(area({ id: 1 }));
    assert.equal(catalog.byExternalId([1], 1, 'null'), undefined);
    catalog.put(area({ id: 2, externalId: 'null' }));
    catalog.remove(1);
    assert.equal(catalog.byExternalId([1], 1, 'null')?.id, 2);
  });

  test('by an external id that moved from one area to another, in whichever order both changes arrive', () => {
    for (const order of [
      [0, 1],
      [1, 0],
    ] as const) {
      const catalog = new AreaCatalog();
      catalog.put(area({ id: 1, externalId: 'x' }));
      const news = [area({ id: 1, externalId: null, revision: 2 }), area({ id: 2, externalId: 'x' })];
      for (const n of order) catalog.put(news[n] as Area);
      assert.equal(catalog.byExternalId([1], 1, 'x')?.id, 2, `order ${order}`);
      catalog.remove(1);
      assert.equal(catalog.byExternalId([1], 1, 'x')?.id, 2);
    }
  });
});

describe('after any puts and removals', () => {
  const sketch = fc.record({
    id: fc.integer({ min: 1, max: 12 }),
    worldId: fc.integer({ min: 1, max: 3 }),
    type: fc.constantFrom(...AREA_TYPES),
    // As in Postgres, no two areas of an account have one code at a time.
    withCode: fc.boolean(),
  });

  test('the catalog returns what a plain list would', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(sketch, fc.boolean()), { maxLength: 60 }), (steps) => {
        const catalog = new AreaCatalog();
        const model = new Map<number, Area>();
        for (const [{ id, worldId, type, withCode }, isPut] of steps) {
          const next = area({ id, worldId, type, externalId: withCode ? `code ${id}` : null });
          if (isPut) {
            catalog.put(next);
            model.set(id, next);
          } else {
            catalog.remove(id);
            model.delete(id);
          }
        }
        assert.equal(catalog.size, model.size);
        for (const worldIds of [[1], [2, 3], [3, 1]]) {
          const seen = [...model.values()].filter((one) => worldIds.includes(one.worldId));
          for (const type of [null, ...AREA_TYPES]) {
            const all = seen
              .filter((one) => type === null || one.definition.geometry.type === type)
              .toSorted((a, b) => a.id - b.id);
            assert.equal(catalog.count(worldIds, type), all.length);
            assert.deepEqual(catalog.page(worldIds, type, 0, 50), all);
            assert.deepEqual(catalog.page(worldIds, type, 2, 3), all.slice(2, 5));
          }
          for (let id = 1; id <= 12; id++) {
            const found = seen.find((one) => one.id === id);
            assert.equal(catalog.area(worldIds, id), found);
            assert.equal(catalog.revisionOf(id), model.get(id)?.revision);
            const coded = found?.definition.externalId === null ? undefined : found;
            assert.equal(catalog.byExternalId(worldIds, 1, `code ${id}`), coded);
          }
        }
      }),
      { seed: 4, numRuns: runs(38) },
    );
  });
});
