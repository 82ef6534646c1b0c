import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  Abandoned,
  inOneGo,
  Pace,
  ProcessorBudget,
  type Steps,
  TooMuchWork,
} from '../../src/lib/workTurns.ts';
import { spin } from '../support/spin.ts';

function* pieces(pace: Pace, count: number, pieceMs: number): Steps<number> {
  pace.begin();
  for (let n = 0; n < count; n++) {
    spin(pieceMs);
    if (pace.isDue()) yield* pace.pause();
  }
  return count;
}

function stepsOf(steps: Steps<unknown>): number {
  let count = 1;
  while (steps.next().done !== true) count++;
  return count;
}

describe('a pace', () => {
  test('ends a step after every piece of work that is as long as a step', () => {
    assert.equal(stepsOf(pieces(new Pace(), 20, 0.3)), 21);
  });

  test('notices long pieces of work soon after short ones', () => {
    const pace = new Pace();
    inOneGo(pieces(pace, 1_000, 0));
    assert.ok(stepsOf(pieces(pace, 20, 0.3)) > 15);
  });

  test('counts the time of work and not that of pauses', () => {
    const pace = new Pace();
    const steps = pieces(pace, 4, 1);
    for (let n = 0; n < 4; n++) {
      steps.next();
      spin(50);
    }
    pace.begin();
    assert.ok(pace.workedMs >= 4 && pace.workedMs < 150, `${pace.workedMs} ms`);
  });
});

describe('the processor time of a call', () => {
  test('ends computations together, however short each of them is', () => {
    const budget = new ProcessorBudget(5, () => false);
    const ended = () => {
      for (let n = 0; n < 1_000; n++) inOneGo(budget.spend(pieces(new Pace(), 3, 0.3)));
    };
    assert.throws(ended, TooMuchWork);
    assert.equal(inOneGo(new ProcessorBudget(1e9, () => false).spend(pieces(new Pace(), 3, 0.3))), 3);
  });

  test('ends when nobody waits for the result any more', () => {
    const budget = new ProcessorBudget(1e9, () => true);
    assert.throws(() => inOneGo(budget.spend(pieces(new Pace(), 3, 0.3))), Abandoned);
  });

  test('undoes what the steps have begun when it ends them', () => {
    let open = 0;
    function* held(): Steps<void> {
      open++;
      try {
        for (;;) yield;
      } finally {
        open--;
      }
    }
    assert.throws(() => inOneGo(new ProcessorBudget(1e9, () => true).spend(held())), Abandoned);
    assert.equal(open, 0);
  });
});
