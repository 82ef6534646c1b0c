import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DeadlineExceeded } from '../../../src/base/deadline.ts';
import { Overloaded } from '../../../src/base/fairSemaphore.ts';
import { type Steps, WorkTurns } from '../../../src/base/workTurns.ts';
import { BulkCalls } from '../../../src/http/routes/bulk/bulkCalls.ts';

const BUSY = 1;
const CALM = 2;
const STEPS = 500;

/** Runs batches of so many steps, each of which returns how many steps the busy account had made when it ended. */
function countedCalls() {
  const calls = new BulkCalls(new WorkTurns<string | number>(3));
  const steps = new Map<number, number>();
  let started = 0;
  function* batch(accountId: number, count: number): Steps<number> {
    started++;
    for (let n = 0; n < count; n++) {
      steps.set(accountId, (steps.get(accountId) ?? 0) + 1);
      yield;
    }
    return steps.get(BUSY) ?? 0;
  }
  return {
    run: (accountId: number, count = STEPS) => calls.run(accountId, () => batch(accountId, count)),
    started: () => started,
  };
}

describe('batches', () => {
  test('of one account take the turns of one, however many there are', async () => {
    const { run } = countedCalls();
    const busy = Array.from({ length: 20 }, () => run(BUSY));
    const before = await run(CALM);
    assert.ok(before <= STEPS + 2, `${before} steps of the busy account came first`);
    assert.equal(Math.max(...(await Promise.all(busy))), 20 * STEPS);
  });

  test('of one account run two at a time, and one more than fifty that wait is refused', async () => {
    const { run, started } = countedCalls();
    const accepted = Array.from({ length: 52 }, () => run(BUSY, 3));
    assert.equal(started(), 0, 'none begins before the sockets were read');
    await assert.rejects(run(BUSY, 3), Overloaded);
    await run(CALM, 1);
    assert.ok(started() <= 4, `${started()} batches began`);
    assert.equal((await Promise.all(accepted)).length, 52);
  });

  test('without end are cut off', async (t) => {
    const { run } = countedCalls();
    let nowMs = 0;
    t.mock.method(performance, 'now', () => {
      nowMs += 1_000;
      return nowMs;
    });
    await assert.rejects(run(BUSY, Number.POSITIVE_INFINITY), DeadlineExceeded);
  });
});
