import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Budget, evaluateBudgets, readBudgets } from '../../bench/report/budgets.ts';
import { findCases } from '../../bench/runCase.ts';

describe('budgets', () => {
  const table: readonly (readonly [
    budget: Budget,
    value: number,
    isKept: boolean,
    isGoalReached: boolean,
  ])[] = [
    [{ min: 1 }, 1, true, true],
    [{ min: 1 }, 0.99, false, true],
    [{ min: 1, goal: 2 }, 1.5, true, false],
    [{ min: 1, goal: 2 }, 2, true, true],
    [{ max: 10 }, 10, true, true],
    [{ max: 10 }, 10.1, false, true],
    [{ max: 10, goal: 5 }, 7, true, false],
    [{ max: 10, goal: 5 }, 5, true, true],
    [{ min: 1 }, Number.NaN, false, true],
  ];
  for (const [budget, value, isKept, isGoalReached] of table) {
    test(`${value} with ${JSON.stringify(budget)}`, () => {
      const [verdict] = evaluateBudgets({ ratio: budget }, { ratio: value });
      assert.equal(verdict?.isKept, isKept);
      if (!Number.isNaN(value)) assert.equal(verdict?.isGoalReached, isGoalReached);
    });
  }

  test('a metric that is not measured any more breaks its budget', () => {
    const [verdict] = evaluateBudgets({ ratio: { min: 1 } }, { other: 5 });
    assert.deepEqual([verdict?.value, verdict?.isKept], [null, false]);
  });

  test('every budget belongs to a case that exists, and says a limit', async () => {
    const cases = await findCases();
    for (const [name, metrics] of Object.entries(await readBudgets())) {
      assert.ok(cases.has(name), name);
      for (const { min, max } of Object.values(metrics)) assert.ok(min !== undefined || max !== undefined);
    }
  });
});
