import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CreateOnce, type CreateOutcome } from '../../../src/areas/createOnce.ts';
import { pruneAnswers } from '../../../src/areas/idempotentAnswers.sql.ts';
import type { AreaWriter, SavedArea } from '../../../src/areas/saveArea.ts';
import { CIRCLE } from '../../support/http/areas.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { type AreaHouse, draftOf, openAreaHouse } from '../areaPorts.ts';

let house: AreaHouse;
let pods: CreateOnce[];
before(async () => {
  house = await openAreaHouse();
  pods = house.pods.map(() => new CreateOnce());
});
after(() => house.close());

const bodyOf = ({ area, warnings }: SavedArea): string =>
  JSON.stringify({ id: area.id, name: area.definition.name, warnings });

function create(
  pod: number,
  writer: AreaWriter,
  key: string,
  body: object,
  answer = bodyOf,
): Promise<CreateOutcome> {
  const creation = { draft: draftOf(body), key, body };
  return pods[pod]!.create(house.pods[pod]!, writer, creation, answer);
}

test('a creation that fails on the way leaves neither area nor key', async () => {
  const writer = await house.writer();
  const failing = create(0, writer, 'k', CIRCLE, () => {
    throw new Error('on purpose');
  });
  await assert.rejects(failing, /on purpose/);
  assert.deepEqual(await house.areasOf(writer), []);
  assert.equal((await create(0, writer, 'k', CIRCLE)).kind, 'created');
});

test('a key is pruned after 24 hours, and not before', async () => {
  const writer = await house.writer();
  for (const [key, age] of [
    ['fresh', '23 hours 59 minutes'],
    ['stale', '24 hours 1 minute'],
  ] as const) {
    await create(0, writer, key, CIRCLE);
    await house.sql`update idempotent_answer set created_at = clock_timestamp() - ${age}::interval where key = ${key}`;
  }
  assert.equal(await pruneAnswers(house.sql), 1);
  assert.equal((await create(0, writer, 'fresh', CIRCLE)).kind, 'replayed');
});

describe('repetitions at the same time', () => {
  test('on two pods give one area and one answer', async () => {
    for (let round = 0; round < 5; round++) {
      const writer = await house.writer();
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, n) => create(n % 2, writer, 'k', CIRCLE)),
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
    for (let seed = 1; seed <= 6; seed++) {
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
        calls.map(async ({ pod, key, body }) => ({ key, outcome: await create(pod, writer, key, body) })),
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
