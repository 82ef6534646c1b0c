import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { BodyBudget, type BodyOwner, type BodyPorts, withBody } from '../../src/http/requestBody.ts';
import type { Route } from '../../src/http/route.ts';
import { serve } from '../support/http/serve.ts';
import { waitFor } from '../support/waitFor.ts';
import { newTurns } from '../support/workTurns.ts';

/** Sends a body of so many bytes to a route of account 7; returns whose turns were taken, and what was held meanwhile. */
async function sendBody(t: TestContext, bytes: number, options: Partial<Route> = {}) {
  const owners: BodyOwner[] = [];
  const turns = newTurns();
  const counted: Pick<BodyPorts['turns'], 'once'> = {
    once: (owner, work) => {
      owners.push(owner);
      return turns.once(owner, work);
    },
  };
  const bodies = new BodyBudget();
  let heldBytes = 0;
  const ports = { bodies, turns: counted as BodyPorts['turns'] };
  const route = { maxBodyBytes: 1024 * 1024, ...options } as Route;
  const { url } = await serve(t, async (request, response) => {
    const answer = await withBody(ports, request, 7, route, (body) => {
      heldBytes = bodies.heldBytes;
      return { status: body?.json?.ok === true ? 200 : 202, body: null };
    });
    response.writeHead(answer.status).end();
  });
  const body = `{"x":"${'x'.repeat(bytes - 8)}"}`;
  const headers = { 'Content-Type': 'application/json' };
  const { status } = await fetch(url, { method: 'POST', headers, body });
  return { status, owners, heldBytes, leftBytes: bodies.heldBytes };
}

test('JSON of more than 16 KB is parsed in a turn of its account, and smaller JSON at once', async (t) => {
  const small = await sendBody(t, 16 * 1024);
  assert.deepEqual([small.status, small.owners], [200, []]);
  for (const bytes of [16 * 1024 + 1, 1024 * 1024]) {
    const large = await sendBody(t, bytes);
    assert.deepEqual([large.status, large.owners], [200, [7]], `${bytes}`);
  }
});

test('a route that takes pieces gets no parsed JSON and takes no turn', async (t) => {
  const { status, owners } = await sendBody(t, 100_000, { takesPieces: true });
  assert.deepEqual([status, owners], [202, []]);
});

test('the memory of a body is counted until its answer is there, and then given back', async (t) => {
  for (const bytes of [100, 64 * 1024, 64 * 1024 + 1, 1024 * 1024]) {
    const { heldBytes, leftBytes } = await sendBody(t, bytes);
    assert.ok(heldBytes >= bytes, `${heldBytes} of ${bytes}`);
    assert.equal(leftBytes, 0, `${bytes}`);
  }
});

test('an account holds two of the largest bodies at a time, however few bytes they are sent in, and another one holds its own', async (t) => {
  const maxBodyBytes = 32 * 1024 * 1024;
  const bodies = new BodyBudget();
  const ports = { bodies, turns: newTurns() };
  const route = { maxBodyBytes, takesPieces: true } as Route;
  const held: { owner: BodyOwner; release: () => void }[] = [];
  const { url } = await serve(t, async (request, response) => {
    const owner = String(request.headers['x-owner']);
    const answer = await withBody(ports, request, owner, route, async () => {
      const { promise, resolve: release } = Promise.withResolvers<void>();
      held.push({ owner, release });
      await promise;
      return { status: 200, body: null };
    });
    response.writeHead(answer.status).end();
  });
  const body = gzipSync(Buffer.alloc(maxBodyBytes, ' '));
  const send = async (owner: string) => {
    const headers = { 'X-Owner': owner, 'Content-Encoding': 'gzip' };
    const { status } = await fetch(url, { method: 'POST', headers, body });
    return status;
  };
  const owners = () => held.map(({ owner }) => owner);
  const answers = [send('attacker'), send('attacker'), send('attacker'), send('attacker'), send('attacker')];
  await waitFor(() => held.length + bodies.waiting === answers.length);
  assert.deepEqual(owners(), ['attacker', 'attacker']);
  answers.push(send('victim'));
  await waitFor(() => held.length === 3);
  assert.deepEqual(owners(), ['attacker', 'attacker', 'victim']);
  assert.equal(bodies.waiting, 3);
  for (let n = 0; n < answers.length; n++) {
    await waitFor(() => held.length > n);
    held[n]?.release();
  }
  assert.deepEqual(await Promise.all(answers), Array(6).fill(200));
  assert.deepEqual([bodies.heldBytes, bodies.waiting], [0, 0]);
});
