import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { ImportOverload, ImportPlanner } from '../../src/flows/importPlanner.ts';

const bytesOf = (body: unknown): Uint8Array =>
  new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));
const POINT = {
  type: 'Feature',
  properties: { name: 'A' },
  geometry: { type: 'Point', coordinates: [12.5, 41.9] },
};
/** In the memory that small buffers share, so that it can be planned again. */
const FINE = Buffer.from(JSON.stringify({ type: 'FeatureCollection', features: [POINT] }));
function newPlanner(t: TestContext): ImportPlanner {
  const planner = new ImportPlanner();
  t.after(() => planner.close());
  return planner;
}

async function assertPlans(planner: ImportPlanner): Promise<void> {
  const plan = await planner.plan(FINE);
  assert.ok(plan.ok);
  assert.deepEqual(
    plan.value.items.map(({ index }) => index),
    [0],
  );
}

describe('an import body is read in a thread', () => {
  test('into a plan whose areas are as complete as in this one', async (t) => {
    const plan = await newPlanner(t).plan(
      bytesOf({
        dry_run: true,
        geojson: {
          type: 'FeatureCollection',
          features: [
            POINT,
            { ...POINT, properties: { name: 'B', external_id: 'b' } },
            {
              ...POINT,
              geometry: {
                type: 'LineString',
                coordinates: [
                  [1, 2],
                  [3, 4],
                ],
              },
            },
            null,
          ],
        },
      }),
    );
    assert.ok(plan.ok);
    const [place, coded, track] = plan.value.items;
    assert.equal(plan.value.dryRun, true);
    assert.ok(place?.externalId === null && coded?.externalId === 'b' && track?.externalId === null);
    assert.deepEqual(place.area.definition.geometry, {
      type: 'point',
      center: { lat: 41.9, lng: 12.5 },
      radiusM: 50,
    });
    assert.ok('points' in track.area.definition.geometry);
    assert.deepEqual(track.area.definition.geometry.points, Float64Array.from([2, 1, 4, 3]));
    assert.deepEqual(plan.value.errors, [{ index: 3, code: 'errGeoJsonInvalid' }]);
  });

  const refused: readonly (readonly [title: string, body: Uint8Array, code: string])[] = [
    ['no JSON', bytesOf('{'), 'INVALID_BODY'],
    ['no UTF-8', Uint8Array.from([0x7b, 0xff, 0x7d]), 'INVALID_BODY'],
    ['nothing', new Uint8Array(), 'INVALID_BODY'],
    ['an array', bytesOf([POINT]), 'INVALID_BODY'],
    ['100 000 levels', bytesOf('['.repeat(100_000)), 'INVALID_BODY'],
    ['no GeoJSON', bytesOf({}), 'INVALID_GEOJSON'],
  ];
  test('and what is none is refused', async (t) => {
    const planner = newPlanner(t);
    for (const [title, body, code] of refused) {
      const plan = await planner.plan(body);
      assert.ok(!plan.ok, title);
      assert.deepEqual(
        plan.error.map((error) => error.code),
        [code],
        title,
      );
    }
  });

  test('many at once, each with its own plan, in any order of sizes', async (t) => {
    const planner = newPlanner(t);
    const plans = await Promise.all(
      [3, 0, 150, 1, 40, 2, 0, 5].map((count) =>
        planner.plan(bytesOf({ type: 'FeatureCollection', features: Array(count).fill(POINT) })),
      ),
    );
    assert.deepEqual(
      plans.map((plan) => plan.ok && plan.value.items.length),
      [3, 0, 150, 1, 40, 2, 0, 5],
    );
  });

  test('and what shares its memory with others is copied, what has memory of its own is handed over', async (t) => {
    const planner = newPlanner(t);
    const shared = Buffer.from(FINE);
    const alone = Uint8Array.from(FINE);
    const plans = await Promise.all([planner.plan(shared), planner.plan(alone)]);
    assert.deepEqual(plans[1], plans[0]);
    assert.deepEqual(shared, FINE);
    assert.equal(alone.byteLength, 0);
  });
});

describe('the planner keeps its bounds', () => {
  test('the ninth body at once is refused, and taken when there is room again', async (t) => {
    const planner = newPlanner(t);
    const eight = Array.from({ length: 8 }, () => assertPlans(planner));
    await assert.rejects(planner.plan(FINE), ImportOverload);
    await Promise.all(eight);
    await assertPlans(planner);
  });

  test('closing ends what waits, closing again does nothing', async () => {
    const planner = new ImportPlanner();
    const waiting = assert.rejects(planner.plan(bytesOf('['.repeat(20_000_000))));
    await planner.close();
    await waiting;
    await planner.close();
    await new ImportPlanner().close();
  });
});
