import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { AtOnce, WorkTurns } from '../../src/lib/workTurns.ts';

const [BUSY, CALM] = [1, 2];

/** Questions, each of which takes so many milliseconds of a clock that goes only then. */
function clockedQuestions(t: TestContext) {
  let nowMs = 1_000;
  t.mock.method(performance, 'now', () => nowMs);
  const atOnce = new AtOnce<number>(new WorkTurns<number>(1));
  const ask = (account: number, ms: number) =>
    atOnce.run(account, () => {
      nowMs += ms;
      return 'answer';
    });
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { ask, pass };
}

describe('questions that are nearly always quick', () => {
  test('are answered at once, however many there are', (t) => {
    const { ask } = clockedQuestions(t);
    for (let n = 0; n < 1_000; n++) assert.equal(ask(BUSY, 0.05), 'answer');
  });

  test('take turns with all other work when those of their account were slow, and no other account does', async (t) => {
    const { ask, pass } = clockedQuestions(t);
    for (let n = 0; n < 2; n++) assert.equal(ask(BUSY, 3), 'answer');
    const late = Array.from({ length: 10 }, () => ask(BUSY, 3));
    for (const answer of late) assert.ok(answer instanceof Promise);
    assert.equal(ask(CALM, 3), 'answer');
    assert.deepEqual(new Set(await Promise.all(late)), new Set(['answer']));
    pass(1_000);
    assert.equal(ask(BUSY, 3), 'answer', 'after a while it is answered at once again');
  });
});
