import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RepeatedWork } from '../../src/lib/repeatedWork.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('work that is woken while it runs runs once more: it may have looked too early', async () => {
  const runs: (() => void)[] = [];
  const work = new RepeatedWork(
    () => new Promise((resolve) => runs.push(resolve)),
    () => assert.fail(),
  );
  for (let n = 0; n < 3; n++) work.wake();
  assert.equal(runs.length, 1);
  runs[0]?.();
  await turn();
  assert.equal(runs.length, 2);
  work.wake();
  let isStopped = false;
  const stopped = work.stop().then(() => {
    isStopped = true;
  });
  await turn();
  assert.equal(isStopped, false, 'a stop waits for the run');
  runs[1]?.();
  await stopped;
  work.wake();
  assert.equal(runs.length, 2, 'and none follows');
});

test('of errors in a row the first is told, and again after a run that went well', async () => {
  const outcomes = [false, false, true, false];
  const told: unknown[] = [];
  const work = new RepeatedWork(
    async () => {
      if (outcomes.shift() === false) throw new Error(`before ${outcomes.length} others`);
    },
    (error) => told.push((error as Error).message),
  );
  while (outcomes.length > 0) {
    work.wake();
    await turn();
  }
  assert.deepEqual(told, ['before 3 others', 'before 0 others']);
});
