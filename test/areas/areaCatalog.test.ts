import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type AreaGeometry, toVertices } from '../../src/areas/area.ts';
import { type Area, AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { AREA_TYPES } from '../../src/areas/areaFields.ts';
import type { Shape } from '../../src/areas/shape.ts';
import type { IndexBox } from '../../src/geo/measure.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';
import { InvariantError } from '../../src/lib/errors.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { wrapLng } from '../geo/shapes.ts';
import { areaInMemory, shapeWith } from '../support/ingest/polygons.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { runs } from '../support/torture.ts';
import { anySoundGeometry, round } from './definitions.ts';

const CIRCLE: AreaGeometry = { type: 'circle', center: { lat: 41.9, lng: 12.5 }, radiusM: 500 };

/** Where maps end, and ordinary ones. */
const PLACES: readonly LatLng[] = [
  { lat: 41.9, lng: 12.5 },
  { lat: 41.9, lng: 12.51 },
  { lat: 0.1, lng: 180 },
  { lat: 0.1, lng: -180 },
  { lat: 0.1, lng: 179.999 },
  { lat: 0.1, lng: -179.999 },
  { lat: 90, lng: 0 },
  { lat: 90, lng: -180 },
  { lat: 89.99, lng: 100 },
  { lat: -90, lng: 45 },
  { lat: -89.99, lng: -100 },
];

const place: fc.Arbitrary<LatLng> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...PLACES) },
  {
    weight: 1,
    arbitrary: fc.record({
      lat: fc.double({ min: -90, max: 90, noNaN: true }).map(round),
      lng: fc.double({ min: -180, max: 180, noNaN: true }).map(round),
    }),
  },
);
const id = fc.integer({ min: 1, max: 12 });
const worldId = fc.constantFrom(1, 2, 3);

const anyStep = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('put' as const),
      id,
      worldId,
      geometry: anySoundGeometry,
      withCode: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), id }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('near' as const),
      worldIds: fc.subarray([1, 2, 3]),
      at: place,
    }),
  },
);

const boxesByShape = new WeakMap<Shape, readonly IndexBox[]>();

function boxesOf(shape: Shape): readonly IndexBox[] {
  const boxes = boxesByShape.get(shape) ?? shape.parts();
  boxesByShape.set(shape, boxes);
  return boxes;
}

/** Compares with a look at every area; returns how many were found. */
function assertNear(
  index: AreaCatalog,
  model: ReadonlyMap<number, Area>,
  worldIds: readonly number[],
  { lat, lng }: LatLng,
): number {
  const ids = (areas: readonly Area[]): number[] => areas.map((area) => area.id).sort((a, b) => a - b);
  const watched = [...model.values()].filter((area) => worldIds.includes(area.worldId));
  const boxed = (pad: number) =>
    watched.filter((area) =>
      boxesOf(area.shape).some(
        ({ minX, minY, maxX, maxY }) =>
          minX <= lng + pad && lng - pad <= maxX && minY <= lat + pad && lat - pad <= maxY,
      ),
    );
  const near = index.near(worldIds, lat, lng);
  // Boxes end at multiples of 2e-7 degrees.
  const wider = boxed(3e-7);
  assert.deepEqual(
    ids(near.filter((area) => !wider.includes(area))),
    [],
    'an area was found that is elsewhere',
  );
  assert.deepEqual(
    ids(boxed(0).filter((area) => !near.includes(area))),
    [],
    'an area with a box there was not found',
  );
  const around = watched.filter(({ shape }) => shape.contains(lat, lng));
  assert.deepEqual(
    ids(around.filter((area) => !near.includes(area))),
    [],
    'an area that contains the position was not found',
  );
  return near.length;
}

/** Lists, counts and finds by id and external id what a plain list would. */
function assertLists(catalog: AreaCatalog, model: ReadonlyMap<number, Area>): void {
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
}

test('after any changes the catalog lists what there is, and finds every area around a position by its boxes', () => {
  let found = 0;
  fc.assert(
    fc.property(fc.array(anyStep, { minLength: 10, maxLength: 80, size: 'max' }), (steps) => {
      const catalog = new AreaCatalog();
      const model = new Map<number, Area>();
      for (const step of steps) {
        if (step.kind === 'remove') {
          catalog.remove(step.id);
          model.delete(step.id);
        } else if (step.kind === 'put') {
          // As in Postgres, no two areas of an account have one code at a time.
          const externalId = step.withCode ? `code ${step.id}` : null;
          const area = areaInMemory(step.id, step.geometry, { worldId: step.worldId, externalId });
          catalog.put(area);
          model.set(step.id, area);
        } else {
          found += assertNear(catalog, model, step.worldIds, step.at);
        }
      }
      const loaded = new AreaCatalog();
      for (const area of model.values()) loaded.load(area);
      inOneGo(loaded.index());
      for (const each of [catalog, loaded]) {
        for (const { lat, lng } of PLACES) found += assertNear(each, model, [1, 2, 3], { lat, lng });
        assertLists(each, model);
      }
    }),
    { seed: 5, numRuns: runs(50) },
  );
  assert.ok(found > 750, `only ${found} areas were found: the property says little`);
});

test('thousands of areas that were loaded are near where they are, and gone when they are removed', () => {
  const random = seededRandom(4);
  const catalog = new AreaCatalog();
  const model = new Map<number, Area>();
  for (let id = 1; id <= 3_000; id++) {
    const center = { lat: random() * 180 - 90, lng: random() * 360 - 180 };
    const area = areaInMemory(
      id,
      { type: 'circle', center, radiusM: 10 ** (1 + 4 * random()) },
      { worldId: 1 + (id % 2) },
    );
    model.set(id, area);
    catalog.load(area);
  }
  inOneGo(catalog.index());
  for (const step of ['loaded', 'changed']) {
    for (let n = 0; n < 40; n++) {
      const at = { lat: random() * 180 - 90, lng: random() * 360 - 180 };
      for (const worldIds of [[1], [2, 1]]) assertNear(catalog, model, worldIds, at);
    }
    if (step === 'changed') break;
    for (let id = 1; id <= 3_000; id += 1 + Math.floor(random() * 3)) {
      model.delete(id);
      catalog.remove(id);
    }
  }
  for (const id of model.keys()) catalog.remove(id);
  assert.equal(catalog.size, 0);
});

describe('the catalog finds an area', () => {
  test('by its external id, but only of the given account and in the given worlds', () => {
    const catalog = new AreaCatalog();
    catalog.put(areaInMemory(1, CIRCLE, { accountId: 1, worldId: 1, externalId: 'x' }));
    catalog.put(areaInMemory(2, CIRCLE, { accountId: 2, worldId: 1, externalId: 'x' }));
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
    catalog.put(areaInMemory(1, CIRCLE));
    assert.equal(catalog.byExternalId([1], 1, 'null'), undefined);
    catalog.put(areaInMemory(2, CIRCLE, { externalId: 'null' }));
    catalog.remove(1);
    assert.equal(catalog.byExternalId([1], 1, 'null')?.id, 2);
  });

  test('by an external id that moved from one area to another, in whichever order both changes arrive', () => {
    for (const order of [
      [0, 1],
      [1, 0],
    ] as const) {
      const catalog = new AreaCatalog();
      catalog.put(areaInMemory(1, CIRCLE, { externalId: 'x' }));
      const news = [
        areaInMemory(1, CIRCLE, { externalId: null, revision: 2 }),
        areaInMemory(2, CIRCLE, { externalId: 'x' }),
      ];
      for (const n of order) catalog.put(news[n] as Area);
      assert.equal(catalog.byExternalId([1], 1, 'x')?.id, 2, `order ${order}`);
      catalog.remove(1);
      assert.equal(catalog.byExternalId([1], 1, 'x')?.id, 2);
    }
  });
});

describe('the area index', () => {
  test('returns an area once, even if both of its boxes hold the position', () => {
    const index = new AreaCatalog();
    const box = { minX: -180, minY: -1, maxX: 180, maxY: 1 };
    const area = areaInMemory(1, CIRCLE);
    index.put({ ...area, shape: shapeWith(area.shape, { parts: () => [box, box] }) });
    assert.equal(index.near([1], 0, 5).length, 1);
  });

  test('two hundred tracks across the world are candidates only near their lines', () => {
    const index = new AreaCatalog();
    const model = new Map<number, Area>();
    for (let id = 0; id < 200; id++) {
      const points = toVertices([
        { lat: -60, lng: wrapLng(130 + id / 10) },
        { lat: 60, lng: wrapLng(270 + id / 10) },
      ]);
      const area = areaInMemory(id, { type: 'polyline', points, bufferM: 50 });
      index.put(area);
      model.set(id, area);
    }
    let found = 0;
    for (let lat = -59; lat <= 59; lat += 1) {
      for (const lng of [140, 180, -180, -150, -110]) found += assertNear(index, model, [1], { lat, lng });
    }
    // Their whole boxes would all hold three or four of these five longitudes.
    assert.ok(found > 1_000 && found < 0.2 * 119 * 5 * 200, `${found} candidates`);
    for (let id = 0; id < 200; id++) index.remove(id);
    assert.equal(index.near([1], 0, -160).length, 0);
  });

  test('rejects a box with NaN, and keeps the area as it was', () => {
    const index = new AreaCatalog();
    const area = areaInMemory(1, CIRCLE);
    index.put(area);
    const box = { minX: Number.NaN, minY: 0, maxX: 1, maxY: 1 };
    assert.throws(
      () => index.put({ ...area, shape: shapeWith(area.shape, { parts: () => [box] }) }),
      InvariantError,
    );
    assert.deepEqual(index.near([1], 41.9, 12.5), [area]);
  });
});
