import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Claimed } from '../../src/webhooks/delivery/claims.sql.ts';
import { claimInBatches } from '../../src/webhooks/delivery/deliverEndpoint.ts';
import { leaseOf } from '../support/webhooks/deliveryDatabase.ts';

const SIZE = 64;
const PARALLEL = 2;

const tokenOf = (webhookId: number): Claimed => ({
  lease: { webhookId, fencingToken: webhookId * 10 },
  hasInterrupted: false,
  written: false,
  next: { attempt: null, dueInMs: null },
});

/** Statements that end when the test says so. They lease each endpoint, with ten times its id as the token. */
function start() {
  const statements: {
    readonly ids: readonly number[];
    readonly end: (busy?: number) => void;
    readonly fail: () => void;
  }[] = [];
  const claim = claimInBatches(
    (claims) =>
      new Promise((resolve, reject) => {
        const ids = claims.map(({ webhookId }) => webhookId);
        statements.push({
          ids,
          end: (busy) => resolve(ids.map((id) => (id === busy ? 'busy' : tokenOf(id)))),
          fail: () => reject(new Error('planted')),
        });
      }),
  );
  const ask = async (id: number) => (await claim(leaseOf(id)))?.lease.fencingToken;
  return { statements, ask };
}

const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test('what is asked for meanwhile is the next statement, up to its size', async () => {
  const { statements, ask } = start();
  const ids = Array.from({ length: PARALLEL + SIZE + 1 }, (_, n) => n + 1);
  const answers: Promise<number | undefined>[] = [];
  for (const id of ids) {
    answers.push(ask(id));
    if (id <= PARALLEL) await turn();
  }
  await turn();
  assert.equal(statements.length, PARALLEL, 'no more run side by side than may');
  for (let n = 0; n < PARALLEL + 2; n++) {
    statements[n]?.end();
    await turn();
  }
  assert.deepEqual(
    statements.map((statement) => statement.ids.length),
    [1, 1, SIZE, 1],
  );
  assert.deepEqual(
    await Promise.all(answers),
    ids.map((id) => id * 10),
  );
});

test('a statement that fails fails for its own claims, and the next goes on', async () => {
  const { statements, ask } = start();
  const failed = ask(1);
  await turn();
  const fine = ask(2);
  await turn();
  statements[0]?.fail();
  await assert.rejects(failed, /planted/);
  statements[1]?.end();
  assert.equal(await fine, 20);
});

test('a claim that found its rows locked is made again, and keeps no other waiting', async () => {
  const { statements, ask } = start();
  const [busy, other] = [ask(1), ask(2)];
  await turn();
  statements[0]?.end(1);
  assert.equal(await other, 20);
  while (statements.length < 2) await turn();
  assert.deepEqual(statements[1]?.ids, [1]);
  statements[1]?.end();
  assert.equal(await busy, 10);
});
