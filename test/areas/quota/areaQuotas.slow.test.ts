import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CreateOnce, type CreateOutcome } from '../../../src/areas/createOnce.sql.ts';
import { importAreas } from '../../../src/areas/import/importAreas.ts';
import {
  type AreaWriter,
  createArea,
  patchArea,
  removeArea,
  type SaveOutcome,
  upsertArea,
} from '../../../src/areas/saveArea.ts';
import { CIRCLE, POLYGON, TRACK } from '../../support/http/areas.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { IS_TORTURE, runs } from '../../support/torture.ts';
import { type AreaHouse, draftOf, openAreaHouse } from '../areaPorts.ts';
import { feature, plan } from '../import/importing.ts';
import { collection, lineString, POINT } from '../reads/geojson.ts';

let house: AreaHouse;
let creators: CreateOnce[];
before(async () => {
  house = await openAreaHouse();
  creators = house.pods.map(() => new CreateOnce());
});
after(() => house.close());

const pod = (n: number) => house.pods[n % 2] as AreaHouse['pods'][0];
let plans = 0;

/** An account of a plan of its own. */
async function limited(
  limits: { areas?: number; vertices?: number; keys?: number },
  organization?: string,
): Promise<AreaWriter> {
  const writer = await house.writer(organization);
  const name = `plan ${++plans}`;
  const { areas = 1_000, vertices = 1_000, keys = 1_000 } = limits;
  await house.sql`
    insert into plan (name, history_days, max_areas, max_area_vertices, max_idempotency_keys)
    values (${name}, 1, ${areas}, ${vertices}, ${keys})`;
  await house.sql`update account set plan = ${name} where id = ${writer.accountId}`;
  return writer;
}

function create(
  n: number,
  writer: AreaWriter,
  body: object,
  key: string | null = null,
): Promise<CreateOutcome> {
  if (key === null) return createArea(pod(n), writer, draftOf(body));
  const creator = creators[n % 2] as CreateOnce;
  return creator.create(pod(n), writer, { draft: draftOf(body), key, body }, () => 'body');
}

/** `created` and the like, or the code of the first error. */
function reported(outcome: SaveOutcome | CreateOutcome): string {
  return outcome.kind === 'invalid' ? (outcome.errors[0]?.code ?? '') : outcome.kind;
}

async function reportAll(
  outcomes: readonly Promise<SaveOutcome | CreateOutcome>[],
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const outcome of await Promise.all(outcomes))
    counts[reported(outcome)] = (counts[reported(outcome)] ?? 0) + 1;
  return counts;
}

const times = <T>(count: number, work: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => work(n));

async function usageOf({ accountId }: AreaWriter): Promise<object> {
  const [row] = await house.sql`select areas, vertices from area_usage where account_id = ${accountId}`;
  return { ...row };
}

async function countOf({ accountId }: AreaWriter): Promise<object> {
  const [row] = await house.sql`
    select count(*) as areas, coalesce(sum(octet_length(points) / 16), 0)::bigint as vertices
    from area where account_id = ${accountId}`;
  return { ...row };
}

const LINE = lineString([12.4, 41.9], [12.5, 42], [12.6, 42]);

describe('areas of an account', () => {
  test('are exactly as many as its plan allows, whichever pod makes them; a neighbour makes more', async () => {
    const writer = await limited({ areas: 5 });
    const neighbour = await house.writer();
    const [own, theirs] = await Promise.all([
      reportAll(times(20, (n) => create(n, writer, CIRCLE))),
      reportAll(times(20, (n) => create(n, neighbour, CIRCLE))),
    ]);
    assert.deepEqual(own, { created: 5, LIMIT_REACHED: 15 });
    assert.deepEqual(theirs, { created: 20 });
    assert.deepEqual(await usageOf(writer), { areas: 5, vertices: 0 });
  });

  test('have at most so many vertices, by creation, change and upsert; what takes no more always fits', async () => {
    const writer = await limited({ vertices: 6 });
    const yard = await create(0, writer, POLYGON);
    assert.ok(yard.kind === 'created');
    assert.equal(reported(await create(1, writer, POLYGON)), 'LIMIT_REACHED');
    assert.equal(reported(await upsertArea(pod(0), writer, 'road', draftOf(TRACK))), 'created');
    const longer = { ...TRACK, points: POLYGON.points };
    assert.equal(reported(await upsertArea(pod(1), writer, 'road', draftOf(longer))), 'LIMIT_REACHED');
    const wider = [...POLYGON.points.slice(0, 3), { lat: 42.1, lng: 12.4 }, { lat: 42, lng: 12.3 }];
    const patch = (points: object[]) => patchArea(pod(1), writer, yard.area.id, draftOf({ points }));
    assert.equal(reported(await patch(wider)), 'LIMIT_REACHED');
    await house.sql`update plan set max_area_vertices = 1 where name = ${`plan ${plans}`}`;
    assert.equal(reported(await patch(POLYGON.points.toReversed())), 'updated');
    assert.equal(reported(await patch(POLYGON.points.slice(1))), 'updated');
    assert.equal(reported(await patch(POLYGON.points)), 'LIMIT_REACHED');
    assert.deepEqual(await usageOf(writer), { areas: 2, vertices: 5 });
  });

  test('count for the account that made them, also when they are shared and another member changes them', async () => {
    const maker = await limited({ vertices: 4 }, 'Quota Inc.');
    const member = await limited({ vertices: 0 }, 'Quota Inc.');
    const yard = await create(0, maker, { ...POLYGON, points: POLYGON.points.slice(1) });
    assert.ok(yard.kind === 'created');
    await house.sql`update area set world_id = ${maker.worldIds[1]} where id = ${yard.area.id}`;
    const patch = (points: object[]) => patchArea(pod(1), member, yard.area.id, draftOf({ points }));
    assert.equal(reported(await patch(POLYGON.points)), 'updated');
    assert.equal(reported(await patch([...POLYGON.points, { lat: 41.95, lng: 12.3 }])), 'LIMIT_REACHED');
    assert.deepEqual(await usageOf(maker), { areas: 1, vertices: 4 });
  });
});

describe('kept Idempotency-Keys', () => {
  test('are exactly as many as the plan allows; without room nothing is created under a new one', async () => {
    const writer = await limited({ keys: 3 });
    const neighbour = await house.writer();
    const [own, theirs] = await Promise.all([
      reportAll(times(10, (n) => create(n, writer, CIRCLE, `key-${n}`))),
      reportAll(times(10, (n) => create(n, neighbour, CIRCLE, `key-${n}`))),
    ]);
    assert.deepEqual(own, { created: 3, LIMIT_REACHED: 7 });
    assert.deepEqual(theirs, { created: 10 });
    assert.deepEqual(await usageOf(writer), { areas: 3, vertices: 0 });
    const again = await reportAll(times(10, (n) => create(n, writer, CIRCLE, `key-${n}`)));
    assert.deepEqual(again, { replayed: 3, LIMIT_REACHED: 7 });
    assert.equal(reported(await create(0, writer, CIRCLE)), 'created');
    await house.sql`delete from idempotent_answer where account_id = ${writer.accountId}`;
    assert.equal(reported(await create(0, writer, CIRCLE, 'new')), 'created');
  });
});

describe('what is counted', () => {
  test('is what there is, after anything that several pods do at once', async () => {
    for (let seed = 1; seed <= runs(2); seed++) {
      const random = seededRandom(seed);
      const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
      const writers = [
        await limited({ areas: 25, vertices: 60 }, `Org ${seed}`),
        await limited({ areas: 25, vertices: 60 }, `Org ${seed}`),
        await limited({ areas: 4, vertices: 10 }),
      ];
      const ids: number[] = [];
      const act = async (n: number): Promise<void> => {
        const writer = pick(writers);
        const body = pick([CIRCLE, POLYGON, TRACK]);
        const code = pick(['a', 'b', 'c', 'd']);
        const chance = random();
        if (chance < 0.4) {
          const outcome = await create(n, writer, body, random() < 0.3 ? code : null);
          if (outcome.kind === 'created') ids.push(outcome.area.id);
        } else if (chance < 0.55) await upsertArea(pod(n), writer, code, draftOf(body));
        else if (chance < 0.7) await patchArea(pod(n), writer, pick(ids) ?? 1, draftOf(body));
        else if (chance < 0.85) await removeArea(pod(n), writer, pick(ids) ?? 1);
        else {
          const shapes = times(6, (k) =>
            feature(pick([POINT, LINE]), { name: `I ${k}`, ...(k < 3 ? { external_id: code } : {}) }),
          );
          await importAreas(pod(n), writer, plan(collection(...shapes)));
        }
      };
      const senders = times(8, async (sender) => {
        for (let n = 0; n < (IS_TORTURE ? 60 : 15); n++) await act(sender);
      });
      await Promise.all(senders);
      for (const [n, writer] of writers.entries()) {
        const usage = await usageOf(writer);
        assert.deepEqual(usage, await countOf(writer), `seed ${seed}, writer ${n}`);
        const { areas, vertices } = usage as { areas: number; vertices: number };
        assert.ok(
          areas <= (n < 2 ? 25 : 4) && vertices <= (n < 2 ? 60 : 10),
          `seed ${seed}: ${JSON.stringify(usage)}`,
        );
      }
    }
  });
});
