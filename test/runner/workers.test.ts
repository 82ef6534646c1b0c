import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { childEnv } from '../support/childEnv.ts';
import type { FileResult } from './messages.ts';
import { Workers } from './workers.ts';

const FIXTURES = [
  'passing',
  'failing',
  'broken',
  'leaking',
  'straying',
  'stuck',
  'crashing',
  'passing',
] as const;
const pathOf = (name: string) => `test/runner/fixtures/${name}.ts`;

describe('files that run in one process after the other', () => {
  const results: FileResult[] = [];
  before(async () => {
    const options = { workers: 1, testSeconds: 1, openLimitMs: 200, name: null, env: childEnv() };
    const workers = new Workers(FIXTURES.map(pathOf), options, (result) => results.push(result));
    await workers.run();
  });

  const cases: readonly [
    name: (typeof FIXTURES)[number],
    passed: number,
    failed: number,
    failure: RegExp | null,
  ][] = [
    ['passing', 3, 0, null],
    ['failing', 0, 1, /^test\/runner\/fixtures\/failing\.ts:5 the sum > is right\n/],
    ['broken', 0, 1, /^test\/runner\/fixtures\/broken\.ts\n {2}Error: this file cannot be loaded/],
    ['leaking', 1, 1, /^test\/runner\/fixtures\/leaking\.ts\n {2}It has ended and leaves open: Timeout\./],
    [
      'straying',
      1,
      1,
      /^test\/runner\/fixtures\/straying\.ts, outside of its tests\n {2}Error: nobody has caught this/,
    ],
    ['stuck', 0, 1, /^test\/runner\/fixtures\/stuck\.ts:3 never ends\n {2}test timed out after 1000ms/],
    [
      'crashing',
      0,
      1,
      /^test\/runner\/fixtures\/crashing\.ts\n {2}Its process ended before it did: SIGKILL\./,
    ],
  ];
  for (const [name, passed, failed, failure] of cases) {
    test(`${name}: ${failure === null ? 'is green' : 'fails with its name and its error'}`, () => {
      const result = results[FIXTURES.indexOf(name)];
      assert.deepEqual(
        [result?.file, result?.counts.passed, result?.counts.failed],
        [pathOf(name), passed, failed],
      );
      assert.equal(result?.failures.length, failure === null ? 0 : 1);
      if (failure !== null) assert.match(result?.failures[0] ?? '', failure);
    });
  }

  test('what is skipped is counted, with its reason', () => {
    assert.deepEqual(results[0]?.skipped, [{ name: 'is skipped', reason: 'there is no Redis' }]);
  });

  test('a file after a crash runs in a new process', () => {
    assert.deepEqual(
      results.map(({ file }) => file),
      FIXTURES.map(pathOf),
    );
    assert.deepEqual(results.at(-1)?.failures, []);
  });
});
