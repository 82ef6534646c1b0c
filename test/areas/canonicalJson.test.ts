import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { canonicalJson } from '../../src/areas/createOnce.sql.ts';
import { runs } from '../support/torture.ts';

function run(value: unknown): { text: string; steps: number } {
  const steps = canonicalJson(value);
  for (let count = 1; ; count++) {
    const step = steps.next();
    if (step.done === true) return { text: step.value, steps: count };
  }
}

/** As the texts were made whose hashes are stored. */
function canonicalBefore(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

describe('canonical JSON', () => {
  const texts = [
    'null',
    '1e400',
    '-0',
    '"a\\u0000\\ud800é"',
    '[]',
    '{}',
    '[{},[],[[1]]]',
    '{"b":1,"a":2,"10":3,"9":4,"09":5,"-1":6,"":7,"é":8,"Z":9}',
    '{"4294967294":1,"4294967295":2,"4294967293":3,"4294967296":4,"1.5":5,"1e3":6}',
    '{"__proto__":{"b":1,"a":2},"constructor":1,"toJSON":2}',
  ];
  for (const text of texts) {
    test(`of ${text} is what it always was`, () => {
      assert.equal(run(JSON.parse(text)).text, canonicalBefore(JSON.parse(text)));
    });
  }

  test('of any value is what it always was, and one for every order of its members', () => {
    const keys = fc.oneof(fc.string(), fc.nat().map(String), fc.constantFrom('a', 'b', '0', '01'));
    const value = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 4 }, fc.jsonValue({ maxDepth: 1 }), fc.array(tie('value')), tie('object')),
      object: fc.dictionary(keys, tie('value')),
    })).value;
    fc.assert(
      fc.property(value, (value) => {
        const sent = JSON.parse(JSON.stringify(value)) as unknown;
        assert.equal(run(sent).text, canonicalBefore(sent));
        assert.equal(run(reversed(sent)).text, run(sent).text);
      }),
      { seed: 20_261_122, numRuns: runs(125) },
    );
  });

  test('is written in steps of 500 values', () => {
    const points = Array.from({ length: 2_000 }, (_, n) => ({ lng: n, lat: -n }));
    assert.equal(run({ points }).steps, Math.floor((1 + 2_000 + 4_000) / 500) + 1);
  });
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [key, reversed(member)]);
  return Object.fromEntries(entries.reverse());
}
