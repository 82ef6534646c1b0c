import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Area, AreaCatalog } from '../../../src/areas/areaCatalog.memory.ts';
import { areasContainingRoutes, ContainingAreas } from '../../../src/areas/areasContaining.routes.ts';
import { BulkCalls, CONTAINING_MAX } from '../../../src/http/bulkCalls.ts';
import type { Call } from '../../../src/http/route.ts';
import { AtOnce, inOneGo, Pace, WorkTurns } from '../../../src/lib/workTurns.ts';
import { areaInMemory, shapeWith } from '../../support/ingest/polygons.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { spin } from '../../support/spin.ts';

const AT = { lat: 41.9, lng: 12.5 };

function circle(id: number, radiusM: number): Area {
  return areaInMemory(id, { type: id % 3 === 0 ? 'point' : 'circle', center: AT, radiusM });
}

test('of thousands of areas around a point the deepest are known, in order, and all are counted', () => {
  const random = seededRandom(7);
  // Few radii, so that many are equally deep.
  const areas = Array.from({ length: 3_000 }, (_, n) => circle(n + 1, 100 + Math.floor(random() * 40)));
  areas.sort(() => random() - 0.5);
  const found = new ContainingAreas();
  for (const [count, type] of [
    [0, null],
    [7, null],
    [CONTAINING_MAX, null],
    [2 * CONTAINING_MAX, null],
    [2 * CONTAINING_MAX + 1, null],
    [3_000, null],
    [1_500, 'point'],
    [50, 'circle'],
  ] as const) {
    for (const northM of [0, 110]) {
      const lat = AT.lat + northM / 111_000;
      const candidates = areas.slice(0, count);
      const expected = candidates
        .filter(
          ({ definition, shape }) =>
            (type === null || definition.geometry.type === type) && shape.contains(lat, AT.lng),
        )
        .map((area) => ({ id: area.id, distanceM: area.shape.signedDistanceM(lat, AT.lng) }))
        .sort((a, b) => a.distanceM - b.distanceM || a.id - b.id);
      inOneGo(found.find(candidates, lat, AT.lng, type, new Pace()));
      assert.equal(found.total, expected.length);
      assert.deepEqual(
        Array.from({ length: found.count }, (_, n) => ({
          id: found.area(n).id,
          distanceM: found.distanceM(n),
        })),
        expected.slice(0, CONTAINING_MAX),
      );
    }
  }
});

test('a few areas that take long hold nobody up: their question is answered in turns with others', async () => {
  const areas = new AreaCatalog();
  for (let id = 1; id <= 8; id++) {
    const area = circle(id, 100);
    const insideDistanceM = (lat: number, lng: number) => {
      spin(1);
      return area.shape.insideDistanceM(lat, lng);
    };
    areas.put({ ...area, shape: shapeWith(area.shape, { insideDistanceM }) });
  }
  const turnsOfAll = new WorkTurns<string | number>(0);
  const bulkCalls = new BulkCalls(turnsOfAll);
  const [single] = areasContainingRoutes({ areas, bulkCalls, atOnce: new AtOnce(turnsOfAll) });
  const query = { lat: String(AT.lat), lng: String(AT.lng) };
  const answer = single?.handle({ caller: { accountId: 1, worldIds: [1] }, query } as unknown as Call);
  assert.ok(answer instanceof Promise);
  let turns = 0;
  const counting = setImmediate(function count() {
    turns++;
    if (turns < 100) setImmediate(count);
  });
  const { body } = await answer;
  clearImmediate(counting);
  assert.match(String(body), /"total":8/);
  assert.ok(turns >= 7, `${turns} turns of others`);
});
