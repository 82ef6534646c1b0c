import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { parseDraft } from '../../src/areas/parseDraft.ts';
import { CreateOnce, type CreateOutcome } from '../../src/flows/createOnce.ts';
import { type AreaWriter, removeArea, type SavedArea } from '../../src/flows/saveArea.ts';
import { CIRCLE } from '../support/areas.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { type AreaHouse, openAreaHouse } from './areaPorts.ts';

let house: AreaHouse;
let pods: CreateOnce[];
before(async () => {
  house = await openAreaHouse();
  pods = house.pods.map((ports) => new CreateOnce(() => ports));
});
after(() => house.close());

const bodyOf = ({ area, warnings }: SavedArea): string =>
  JSON.stringify({ id: area.id, name: area.definition.name, warnings });

function create(pod: number, writer: AreaWriter, key: string | null, body: object): Promise<CreateOutcome> {
  const draft = parseDraft(body);
  assert.ok(draft.ok);
  return (pods[pod] as CreateOnce).create(writer, { draft: draft.value, key, body }, bodyOf);
}

describe('a creation with a key', () => {
  test('is repeated with the same answer on either pod, also when the area is gone', async () => {
    const writer = await house.writer();
    const first = await create(0, writer, 'k', CIRCLE);
    assert.ok(first.kind === 'created');
    const replay = { kind: 'replayed', kept: { areaId: first.area.id, body: bodyOf(first) } };
    assert.deepEqual(await create(0, writer, 'k', CIRCLE), replay);
    assert.deepEqual(await create(1, writer, 'k', CIRCLE), replay);
    await removeArea(house.pods[1], writer, first.area.id);
    assert.deepEqual(await create(1, writer, 'k', CIRCLE), replay);
    assert.deepEqual(await house.areasOf(writer), []);
  });

  test('without a key creates at every call', async () => {
    const writer = await house.writer();
    for (let n = 0; n < 3; n++) assert.equal((await create(n % 2, writer, null, CIRCLE)).kind, 'created');
    assert.equal((await house.areasOf(writer)).length, 3);
  });

  test('with another key creates another area', async () => {
    const writer = await house.writer();
    for (const key of ['a', 'A', 'a:', 'a '])
      assert.equal((await create(0, writer, key, CIRCLE)).kind, 'created');
    assert.equal((await house.areasOf(writer)).length, 4);
  });

  test('means nothing to another account', async () => {
    const [one, other] = [await house.writer(), await house.writer()];
    assert.equal((await create(0, one, 'k', CIRCLE)).kind, 'created');
    assert.equal((await create(0, other, 'k', { ...CIRCLE, name: 'B' })).kind, 'created');
  });
});

describe('the same key with another body', () => {
  const base = { ...CIRCLE, extra: { a: [1, { b: 2, c: null }], d: '1' } };
  const rows: readonly (readonly [title: string, body: object, kind: CreateOutcome['kind']])[] = [
    ['members in another order', { extra: { d: '1', a: [1, { c: null, b: 2 }] }, ...CIRCLE }, 'replayed'],
    ['the order of a list', { ...base, extra: { a: [{ b: 2, c: null }, 1], d: '1' } }, 'key_mismatch'],
    ['a number for a text', { ...base, extra: { a: [1, { b: 2, c: null }], d: 1 } }, 'key_mismatch'],
    ['a member missing', { ...base, extra: { a: [1, { b: 2 }], d: '1' } }, 'key_mismatch'],
    ['a member more, unknown as it is', { ...base, more: null }, 'key_mismatch'],
    ['another value', { ...base, name: 'B' }, 'key_mismatch'],
    ['a value that only trims to the same', { ...base, name: `${CIRCLE.name} ` }, 'key_mismatch'],
    ['an area that is not valid', { ...base, radius_m: 1 }, 'key_mismatch'],
  ];
  for (const [title, body, kind] of rows) {
    test(`${title}: ${kind}`, async () => {
      const writer = await house.writer();
      assert.equal((await create(0, writer, 'k', base)).kind, 'created');
      assert.equal((await create(1, writer, 'k', body)).kind, kind);
      assert.equal((await house.areasOf(writer)).length, 1);
    });
  }
});

describe('a creation that fails frees its key', () => {
  test('an invalid area', async () => {
    const writer = await house.writer();
    const refused = await create(0, writer, 'k', { ...CIRCLE, radius_m: 1 });
    assert.equal(refused.kind, 'invalid');
    assert.equal((await create(1, writer, 'k', CIRCLE)).kind, 'created');
  });

  test('a code that is taken', async () => {
    const writer = await house.writer();
    assert.equal((await create(0, writer, null, { ...CIRCLE, external_id: 'x' })).kind, 'created');
    const body = { ...CIRCLE, external_id: 'x' };
    assert.equal((await create(0, writer, 'k', body)).kind, 'external_id_taken');
    assert.equal((await create(1, writer, 'k', CIRCLE)).kind, 'created');
  });

  test('a fault on the way: neither area nor key stay', async () => {
    const writer = await house.writer();
    const draft = parseDraft(CIRCLE);
    assert.ok(draft.ok);
    const failing = pods[0]!.create(writer, { draft: draft.value, key: 'k', body: CIRCLE }, () => {
      throw new Error('on purpose');
    });
    await assert.rejects(failing, /on purpose/);
    assert.deepEqual(await house.areasOf(writer), []);
    assert.equal((await create(0, writer, 'k', CIRCLE)).kind, 'created');
  });
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
        return outcome.kept.body;
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
        if (outcome.kind === 'replayed') assert.equal(outcome.kept.areaId, idByKey.get(key), `seed ${seed}`);
      }
      const stored = (await house.areasOf(writer)).map(({ id }) => id);
      assert.deepEqual(stored.toSorted(), [...idByKey.values()].toSorted(), `seed ${seed}`);
    }
  });
});
