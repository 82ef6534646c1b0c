import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Batches } from '../../src/webhooks/delivery/claimBatches.ts';

/** Batches that end when the test says so, with ten times each item. */
function start(size: number, parallel: number) {
  const batches: {
    readonly items: readonly number[];
    readonly end: () => void;
    readonly fail: () => void;
  }[] = [];
  const together = new Batches<number, number>({
    size,
    parallel,
    run: (items) =>
      new Promise((resolve, reject) => {
        batches.push({
          items,
          end: () => resolve(items.map((item) => item * 10)),
          fail: () => reject(new Error('planted')),
        });
      }),
  });
  return { batches, together };
}

const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test('what is asked for in one turn is one batch, and each gets its own answer', async () => {
  const { batches, together } = start(10, 1);
  const answers = Promise.all([1, 2, 3].map((item) => together.ask(item)));
  await turn();
  assert.deepEqual(
    batches.map(({ items }) => items),
    [[1, 2, 3]],
  );
  batches[0]?.end();
  assert.deepEqual(await answers, [10, 20, 30]);
});

test('what is asked for meanwhile is the next batch, up to its size', async () => {
  const { batches, together } = start(2, 1);
  const answers = [together.ask(1)];
  await turn();
  for (const item of [2, 3, 4]) answers.push(together.ask(item));
  await turn();
  assert.equal(batches.length, 1, 'no more run side by side than may');
  for (let n = 0; n < 3; n++) {
    batches[n]?.end();
    await turn();
  }
  assert.deepEqual(
    batches.map(({ items }) => items),
    [[1], [2, 3], [4]],
  );
  assert.deepEqual(await Promise.all(answers), [10, 20, 30, 40]);
});

test('a batch that fails fails for its own items, and the next goes on', async () => {
  const { batches, together } = start(1, 2);
  const [failed, fine, last] = [together.ask(1), together.ask(2), together.ask(3)];
  await turn();
  assert.equal(batches.length, 2);
  batches[0]?.fail();
  await assert.rejects(failed, /planted/);
  batches[1]?.end();
  assert.equal(await fine, 20);
  await turn();
  batches[2]?.end();
  assert.equal(await last, 30);
});
