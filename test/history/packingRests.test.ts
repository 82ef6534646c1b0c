import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { PackingRests } from '../../src/history/packingRests.ts';

/** Rests of parts that take so long, and so much of the processor. */
function start(t: TestContext) {
  let nowMs = 0;
  let cpuMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  t.mock.method(process, 'cpuUsage', (before?: NodeJS.CpuUsage) => ({
    user: cpuMs * 1000 - (before?.user ?? 0),
    system: 0,
  }));
  const rested: number[] = [];
  const overslept = { ms: 0 };
  const rests = new PackingRests(async (ms) => {
    rested.push(ms);
    nowMs += ms + overslept.ms;
  });
  const work = (ms: number, ofProcessorMs = ms): void => {
    nowMs += ms;
    cpuMs += ofProcessorMs;
  };
  return { rests, work, rested, overslept };
}

test('packing rests six times as long as it works, with a backlog shorter, and never shorter than the work', async (t) => {
  const { rests, work, rested } = start(t);
  for (const days of [0, 1.5, 3, 9, 60]) {
    rests.begin(days);
    work(10);
    await rests.take();
  }
  // A part that waited for a processor is rested from as if it had not: two milliseconds here, and four of Postgres.
  rests.begin(1);
  work(250, 2);
  await rests.take();
  assert.deepEqual(rested, [60, 60, 30, 10, 10, 36]);
});

test('short rests while points wait are made up for later, and what was overslept counts', async (t) => {
  const { rests, work, rested, overslept } = start(t);
  rests.begin(1);
  work(10);
  await rests.takeLocked();
  work(10);
  overslept.ms = 50;
  await rests.take();
  work(10);
  overslept.ms = 0;
  await rests.take();
  assert.deepEqual(rested, [20, 60 + 40, 10]);
});
