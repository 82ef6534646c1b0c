import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CreateOnce, type CreateOutcome, pruneAnswers } from '../../../src/areas/createOnce.sql.ts';
import {
  type AreaWriter,
  createArea,
  patchArea,
  removeArea,
  type SavedArea,
  type SaveOutcome,
  upsertArea,
} from '../../../src/areas/saveArea.ts';
import type { WritePorts } from '../../../src/changelog/writeWorlds.ts';
import { watchFeed } from '../../cli/feed.ts';
import { CIRCLE } from '../../support/http/areas.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { runs } from '../../support/torture.ts';
import { type AreaHouse, draftOf, openAreaHouse } from '../areaPorts.ts';

let house: AreaHouse;
let creators: CreateOnce[];
before(async () => {
  house = await openAreaHouse();
  creators = house.pods.map(() => new CreateOnce());
});
after(() => house.close());

const create = (ports: WritePorts, writer: AreaWriter, body: object): Promise<SaveOutcome> =>
  createArea(ports, writer, draftOf(body));

async function made(writer: AreaWriter, body: object): Promise<number> {
  const outcome = await create(house.pods[0], writer, body);
  assert.ok(outcome.kind === 'created');
  return outcome.area.id;
}

const kinds = (outcomes: readonly SaveOutcome[]): string[] => outcomes.map(({ kind }) => kind).toSorted();
const UNKNOWN_ID = Number.MAX_SAFE_INTEGER;

describe('what a write notifies the pods', () => {
  test('create, change, upsert and delete name the area and raise its world, once', async () => {
    const [ports] = house.pods;
    const writer = await house.writer();
    const [worldId] = writer.worldIds;
    const reported = async (work: () => Promise<unknown>) => {
      const { rows, raised } = await watchFeed(house.sql, work);
      return { rows, raised };
    };
    const id = await made(writer, { ...CIRCLE, external_id: 'x' });
    const expected = { rows: [{ kind: 'area', worldId, entityId: id }], raised: [worldId] };
    assert.deepEqual(await reported(() => patchArea(ports, writer, id, draftOf({ name: 'B' }))), expected);
    assert.deepEqual(await reported(() => upsertArea(ports, writer, 'x', draftOf({ name: 'C' }))), expected);
    assert.deepEqual(await reported(() => removeArea(ports, writer, id)), expected);
  });

  test('a write of a shared area raises the world of the organization, not that of the account', async () => {
    const writer = await house.writer('Told');
    const id = await made(writer, CIRCLE);
    await house.share(id);
    const { rows, raised } = await watchFeed(house.sql, () =>
      patchArea(house.pods[0], writer, id, draftOf({ name: 'B' })),
    );
    const worldId = writer.worldIds[1];
    assert.deepEqual(
      { rows, raised },
      { rows: [{ kind: 'area', worldId, entityId: id }], raised: [worldId] },
    );
  });

  test('a write that comes to nothing notifies nobody and leaves nothing', async () => {
    const [ports] = house.pods;
    const [writer, stranger] = [await house.writer(), await house.writer()];
    const id = await made(writer, { ...CIRCLE, external_id: 'x' });
    const other = await made(writer, CIRCLE);
    const before = await house.areasOf(writer);
    const { result, rows, raised } = await watchFeed(house.sql, async () => [
      await create(ports, writer, { ...CIRCLE, external_id: 'x' }),
      await create(ports, writer, { ...CIRCLE, radius_m: 1 }),
      await patchArea(ports, writer, id, draftOf({ name: '' })),
      await patchArea(ports, writer, other, draftOf({ external_id: 'x' })),
      await patchArea(ports, stranger, id, draftOf({ name: 'B' })),
      await patchArea(ports, writer, UNKNOWN_ID, draftOf({ name: 'B' })),
      await patchArea(ports, writer, UNKNOWN_ID, draftOf({ name: '' })),
      await upsertArea(ports, writer, 'y', draftOf({ name: 'no geometry' })),
      await upsertArea(ports, writer, 'x', draftOf({ radius_m: 1 })),
      await removeArea(ports, stranger, id),
      await removeArea(ports, writer, UNKNOWN_ID),
    ]);
    assert.deepEqual(
      result.map((outcome) => (typeof outcome === 'boolean' ? outcome : outcome.kind)),
      [
        'external_id_taken',
        'invalid',
        'invalid',
        'external_id_taken',
        'not_found',
        'not_found',
        'invalid',
        'invalid',
        'invalid',
        false,
        false,
      ],
    );
    assert.deepEqual([rows, raised], [[], []]);
    assert.deepEqual(await house.areasOf(writer), before);
  });
});

describe('races for one code over two pods end with exactly one area', () => {
  const all = <T>(count: number, one: (ports: WritePorts, n: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: count }, (_, n) => one(house.pods[n % 2] as WritePorts, n)));

  test('creations: one succeeds, the others get the error that the code is taken', async () => {
    for (let round = 0; round < runs(5); round++) {
      const writer = await house.writer();
      const outcomes = await all(8, (ports) => create(ports, writer, { ...CIRCLE, external_id: 'x' }));
      assert.deepEqual(kinds(outcomes), ['created', ...Array(7).fill('external_id_taken')]);
      assert.equal((await house.areasOf(writer)).length, 1);
    }
  });

  test('upserts: one creates, the others update', async () => {
    for (let round = 0; round < runs(5); round++) {
      const writer = await house.writer();
      const outcomes = await all(8, (ports, n) =>
        upsertArea(ports, writer, 'x', draftOf({ ...CIRCLE, name: `${n}` })),
      );
      assert.deepEqual(kinds(outcomes), ['created', ...Array(7).fill('updated')]);
      assert.equal((await house.areasOf(writer)).length, 1);
    }
  });
});

const bodyOf = ({ area, warnings }: SavedArea): string =>
  JSON.stringify({ id: area.id, name: area.definition.name, warnings });

function createWith(
  pod: number,
  writer: AreaWriter,
  key: string,
  body: object,
  answer = bodyOf,
): Promise<CreateOutcome> {
  const creation = { draft: draftOf(body), key, body };
  return creators[pod]!.create(house.pods[pod]!, writer, creation, answer);
}

test('a creation that fails on the way leaves neither area nor key', async () => {
  const writer = await house.writer();
  const failing = createWith(0, writer, 'k', CIRCLE, () => {
    throw new Error('on purpose');
  });
  await assert.rejects(failing, /on purpose/);
  assert.deepEqual(await house.areasOf(writer), []);
  assert.equal((await createWith(0, writer, 'k', CIRCLE)).kind, 'created');
});

test('a key is pruned after 24 hours, and not before', async () => {
  const writer = await house.writer();
  for (const [key, age] of [
    ['fresh', '23 hours 59 minutes'],
    ['stale', '24 hours 1 minute'],
  ] as const) {
    await createWith(0, writer, key, CIRCLE);
    await house.sql`update idempotent_answer set created_at = clock_timestamp() - ${age}::interval where key = ${key}`;
  }
  assert.equal(await pruneAnswers(house.sql), 1);
  assert.equal((await createWith(0, writer, 'fresh', CIRCLE)).kind, 'replayed');
});

describe('repetitions at the same time', () => {
  test('on two pods give one area and one answer', async () => {
    for (let round = 0; round < runs(3); round++) {
      const writer = await house.writer();
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, n) => createWith(n % 2, writer, 'k', CIRCLE)),
      );
      const bodies = outcomes.map((outcome) => {
        if (outcome.kind === 'created') return bodyOf(outcome);
        assert.ok(outcome.kind === 'replayed', outcome.kind);
        return outcome.body;
      });
      assert.equal(outcomes.filter(({ kind }) => kind === 'created').length, 1);
      assert.equal(new Set(bodies).size, 1);
      assert.equal((await house.areasOf(writer)).length, 1);
    }
  });

  test('with keys, bodies and codes mixed in seeded disorder: one area for each key that ever succeeded', async () => {
    for (let seed = 1; seed <= runs(4); seed++) {
      const random = seededRandom(seed);
      const writer = await house.writer();
      const calls = Array.from({ length: 40 }, (_, n) => ({
        pod: n % 2,
        key: `k${Math.floor(random() * 4)}`,
        body: {
          ...CIRCLE,
          ...(random() < 0.3 ? { radius_m: 1 } : {}),
          ...(random() < 0.4 ? { external_id: 'x' } : {}),
        },
      }));
      const outcomes = await Promise.all(
        calls.map(async ({ pod, key, body }) => ({ key, outcome: await createWith(pod, writer, key, body) })),
      );
      const idByKey = new Map<string, number>();
      for (const { key, outcome } of outcomes) {
        if (outcome.kind !== 'created') continue;
        assert.ok(!idByKey.has(key), `seed ${seed}: ${key} created twice`);
        idByKey.set(key, outcome.area.id);
      }
      for (const { key, outcome } of outcomes) {
        if (outcome.kind === 'replayed') assert.equal(outcome.areaId, idByKey.get(key), `seed ${seed}`);
      }
      const stored = (await house.areasOf(writer)).map(({ id }) => id);
      assert.deepEqual(stored.toSorted(), [...idByKey.values()].toSorted(), `seed ${seed}`);
    }
  });
});
