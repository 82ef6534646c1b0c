import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { dryRunImport, importAreas } from '../../../src/areas/import/importAreas.ts';
import type { ImportPlan } from '../../../src/areas/import/importPlan.ts';
import { type AreaWriter, addArea, patchArea, removeArea, upsertArea } from '../../../src/areas/saveArea.ts';
import { writeWorlds } from '../../../src/changelog/writeWorlds.ts';
import { watchFeed } from '../../cli/feed.ts';
import { CIRCLE } from '../../support/http/areas.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { runs } from '../../support/torture.ts';
import { type AreaHouse, draftOf, openAreaHouse } from '../areaPorts.ts';
import { collection, POINT } from '../reads/geojson.ts';
import { feature as featureOf, plan as planOf } from './importing.ts';

let house: AreaHouse;
before(async () => {
  house = await openAreaHouse();
});
after(() => house.close());

const feature = (name: string, properties: object = {}, geometry: object = POINT) =>
  featureOf(geometry, { name, ...properties });
const plan = (...features: object[]): ImportPlan => planOf(collection(...features));

const codes = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `code ${n}`.replace(' ', '-'));

function shuffled<T>(values: readonly T[], random: () => number): T[] {
  return values
    .map((value) => ({ value, rank: random() }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ value }) => value);
}

describe('an import', () => {
  test('creates areas in the order of the features, with rising ids, and notifies the pods of them once', async () => {
    const writer = await house.writer();
    const features = Array.from({ length: 60 }, (_, n) =>
      feature(`Area ${n}`, n % 2 === 0 ? {} : { external_id: `x${n}` }),
    );
    const { result, rows, raised } = await watchFeed(house.sql, () =>
      importAreas(house.pods[0], writer, plan(...features)),
    );
    const areas = await house.areasOf(writer);
    assert.deepEqual(
      areas.map(({ name }) => name),
      features.map(({ properties }) => properties.name),
    );
    assert.deepEqual(result, {
      created: areas.map(({ id }, index) => ({ index, id })),
      updated: [],
      errors: [],
      warnings: [],
    });
    assert.deepEqual(
      rows.map(({ entityId }) => entityId),
      areas.map(({ id }) => id),
    );
    assert.deepEqual(raised, [writer.worldIds[0]]);
  });

  test('updates shared areas in the world of the organization and creates in that of the account', async () => {
    const writer = await house.writer('Importers');
    const { created } = await importAreas(house.pods[0], writer, plan(feature('A', { external_id: 'a' })));
    const [{ id: shared = 0 } = {}] = created;
    await house.share(shared);
    const { result, rows } = await watchFeed(house.sql, () =>
      importAreas(
        house.pods[1],
        writer,
        plan(feature('B', { external_id: 'b' }), feature('New name', { external_id: 'a' })),
      ),
    );
    const [fresh] = result.created;
    assert.deepEqual(result.updated, [{ index: 1, id: shared, external_id: 'a' }]);
    assert.deepEqual(
      rows.toSorted((a, b) => a.entityId - b.entityId),
      [
        { kind: 'area', worldId: writer.worldIds[1], entityId: shared },
        { kind: 'area', worldId: writer.worldIds[0], entityId: fresh?.id },
      ],
    );

    const alone: AreaWriter = { ...writer, worldIds: writer.worldIds.slice(0, 1) };
    const body = plan(feature('C', { external_id: 'a' }), feature('D', { external_id: 'd' }));
    const rejected = await dryRunImport(house.pods[0], alone, body);
    assert.deepEqual(
      rejected.errors.map(({ index, code }) => [index, code]),
      [[0, 'TAKEN']],
    );
    const { created: made, ...real } = await importAreas(house.pods[0], alone, body);
    assert.deepEqual({ ...real, created: made.map(({ index }) => ({ index })) }, rejected);
  });

  test('of nothing valid writes nothing', async () => {
    const writer = await house.writer();
    const { result, rows, raised } = await watchFeed(house.sql, () =>
      importAreas(house.pods[0], writer, plan(feature(''), feature('A', { external_id: 'a b' }))),
    );
    assert.deepEqual([result.created, result.updated, rows, raised], [[], [], [], []]);
    assert.equal(result.errors.length, 2);
  });

  test('that fails on the way leaves nothing', async () => {
    const writer = await house.writer();
    await house.sql`
      create function refuse() returns trigger language plpgsql as $$ begin
        if new.name = 'poison' then raise exception 'on purpose'; end if; return new; end $$`;
    await house.sql`create trigger refuse before insert or update on area for each row execute function refuse()`;
    try {
      const features = [...codes(30).map((external_id) => feature('A', { external_id })), feature('poison')];
      await assert.rejects(importAreas(house.pods[0], writer, plan(...features)), /on purpose/);
      assert.deepEqual(await house.areasOf(writer), []);
    } finally {
      await house.sql`drop trigger refuse on area`;
    }
  });
});

describe('imports that meet end with one area for each code', () => {
  test('the same codes in other orders, from two pods', async () => {
    for (let seed = 1; seed <= runs(3); seed++) {
      const random = seededRandom(seed);
      const writer = await house.writer();
      const names = codes(40);
      const reports = await Promise.all(
        Array.from({ length: 6 }, (_, n) =>
          importAreas(
            house.pods[n % 2]!,
            writer,
            plan(...shuffled(names, random).map((external_id) => feature(`By ${n}`, { external_id }))),
          ),
        ),
      );
      const areas = await house.areasOf(writer);
      assert.deepEqual(areas.map(({ code }) => code).toSorted(), names.toSorted(), `seed ${seed}`);
      const created = reports.flatMap((report) => report.created.map(({ id }) => id));
      assert.deepEqual(created.toSorted(), areas.map(({ id }) => id).toSorted(), `seed ${seed}`);
      for (const { created, updated, errors } of reports) {
        assert.deepEqual([created.length + updated.length, errors], [40, []], `seed ${seed}`);
      }
    }
  });

  test('while the same codes are created, upserted, moved about and deleted one by one', async () => {
    for (let seed = 1; seed <= runs(2); seed++) {
      const random = seededRandom(seed);
      const writer = await house.writer();
      const names = codes(60);
      const single = async (code: string, n: number): Promise<void> => {
        const ports = house.pods[n % 2]!;
        const dice = random();
        if (dice < 0.4) {
          const { kind } = await upsertArea(ports, writer, code, draftOf(CIRCLE));
          assert.ok(['created', 'updated'].includes(kind), kind);
        } else if (dice < 0.6) {
          await writeWorlds(ports, (scope) =>
            addArea(scope, writer, draftOf({ ...CIRCLE, external_id: code })),
          );
        } else {
          const outcome = await upsertArea(ports, writer, code, draftOf(CIRCLE));
          assert.ok(outcome.kind === 'created' || outcome.kind === 'updated', outcome.kind);
          const other = names[Math.floor(random() * names.length)] as string;
          if (dice < 0.8) await patchArea(ports, writer, outcome.area.id, draftOf({ external_id: other }));
          else await removeArea(ports, writer, outcome.area.id);
        }
      };
      const [reports] = await Promise.all([
        Promise.all(
          [0, 1].map((n) =>
            importAreas(
              house.pods[n]!,
              writer,
              plan(...names.map((external_id) => feature('A', { external_id }))),
            ),
          ),
        ),
        Promise.all(shuffled(names, random).map(single)),
      ]);
      for (const { created, updated } of reports) assert.equal(created.length + updated.length, 60);
      const taken = (await house.areasOf(writer)).flatMap(({ code }) => code ?? []);
      assert.equal(new Set(taken).size, taken.length, `seed ${seed}`);
    }
  });
});
