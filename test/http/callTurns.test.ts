import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { errorAnswer } from '../../src/http/answer.ts';
import { CallTurns, WAITING_CALLS_MAX } from '../../src/http/dispatcher.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import type { ShedClass } from '../../src/http/shedding.ts';
import { keyOf, OTHER_WORLD, serveSide } from '../support/http/apiSide.ts';
import { spin } from '../support/spin.ts';
import { waitFor } from '../support/waitFor.ts';

/** Longer than calls that have arrived together are answered without a pause. */
const LONG_MS = 10;
const ANSWER = errorAnswer('NOT_FOUND');

const exchangeOf = (hasLeft: boolean, waitedMs = 0): Exchange =>
  ({ startedAtMs: performance.now() - waitedMs, response: { destroyed: hasLeft } }) as Exchange;

/** Turns, and in which order calls were answered. */
function watchedTurns() {
  const answered: string[] = [];
  const waited: ShedClass[] = [];
  const turns = new CallTurns((shedAs, waitedMs) => {
    assert.ok(waitedMs >= 0);
    waited.push(shedAs);
  });
  const call = (shedAs: ShedClass, owner: number, name: string, hasLeft = false, waitedMs = 0) =>
    turns.next(shedAs, owner, exchangeOf(hasLeft, waitedMs), () => {
      answered.push(name);
      return ANSWER;
    });
  return { turns, answered, waited, call };
}

describe('calls that have arrived together', () => {
  test('are answered at once while they take little time, and again in the next turn', async () => {
    const { turns } = watchedTurns();
    // On a busy machine the turn may be over before the second call.
    await waitFor(async () => {
      await nextTurn();
      return !turns.isOver() && !turns.isOver();
    });
    spin(LONG_MS);
    assert.equal(turns.isOver(), true);
    await nextTurn();
    assert.equal(turns.isOver(), false);
  });

  test('wait while others do, though the turn is a new one', async () => {
    const { turns, call } = watchedTurns();
    const calls = [call('poll', 1, 'first')];
    assert.equal(turns.isOver(), true);
    await Promise.all(calls);
    assert.equal(turns.isOver(), false);
  });

  test('take turns by account', async () => {
    const { answered, call } = watchedTurns();
    const ofOne = ['1', '2', '3', '4'].map((name) => call('poll', 1, name));
    await Promise.all([...ofOne, call('poll', 2, 'other')]);
    assert.deepEqual(answered, ['1', 'other', '2', '3', '4']);
  });

  test('that are polls pass lists, of which one goes on in each turn', async () => {
    const { answered, waited, call } = watchedTurns();
    const lists = [1, 2, 3].map((owner) => call('bulk', owner, `list ${owner}`));
    const polls = [1, 2, 3].map((owner) => call('poll', owner, `poll ${owner}`));
    await Promise.all([...lists, ...polls]);
    const kinds = answered.map((name) => name.slice(0, 4));
    assert.deepEqual(kinds.toSorted(), ['list', 'list', 'list', 'poll', 'poll', 'poll']);
    assert.deepEqual(
      waited,
      kinds.map((kind) => (kind === 'list' ? 'bulk' : 'poll')),
    );
    // How many polls fit into a turn depends on the machine; at least one follows each list while polls wait.
    const lastPoll = kinds.lastIndexOf('poll');
    for (let n = 0; n < lastPoll; n++)
      assert.ok(kinds[n] === 'poll' || kinds[n + 1] === 'poll', answered.join(', '));
  });

  test('whose caller has left are not answered', async () => {
    const { answered, call } = watchedTurns();
    await Promise.all([call('poll', 1, 'gone', true), call('poll', 1, 'here')]);
    assert.deepEqual(answered, ['here']);
  });

  test('are refused when their turn comes after the time for an answer', async () => {
    const { answered, call } = watchedTurns();
    const [late, inTime] = await Promise.all([
      call('poll', 1, 'late', false, 15_001),
      call('poll', 1, 'in time', false, 5_000),
    ]);
    assert.deepEqual([late.status, late.headers?.['Retry-After']], [503, '1']);
    assert.equal(inTime, ANSWER);
    assert.deepEqual(answered, ['in time']);
  });

  test('are refused where thousands of the account wait, and those of another are not', async () => {
    const { answered, call } = watchedTurns();
    const { ofOne } = WAITING_CALLS_MAX;
    const calls = Array.from({ length: ofOne }, (_, n) => call('poll', 1, String(n)));
    const refused = await call('bulk', 1, 'one more');
    assert.deepEqual([refused.status, refused.headers?.['Retry-After']], [503, '1']);
    calls.push(call('poll', 2, 'other'));
    await calls.at(-1);
    assert.ok(answered.length < ofOne / 2, `${answered.length} were answered before it`);
    await Promise.all(calls);
    assert.equal(answered.length, ofOne + 1);
  });

  test('find room when other accounts have each sent more than may wait', async () => {
    const { answered, call } = watchedTurns();
    const { ofOne, ofAll } = WAITING_CALLS_MAX;
    for (const round of ['first', 'again']) {
      const greedy = Array.from({ length: 8 * ofOne }, (_, n) => call('poll', n % 8, `${round} ${n}`));
      const modest = Array.from({ length: 100 }, (_, n) => call('poll', 100 + n, 'modest'));
      const refused = (await Promise.all(greedy)).filter(({ status }) => status === 503).length;
      assert.ok(greedy.length - refused < ofAll, `${greedy.length - refused} have waited`);
      for (const answer of await Promise.all(modest)) assert.equal(answer, ANSWER);
    }
    assert.equal(answered.filter((name) => name === 'modest').length, 200);
  });
});

test('a call is not held up by sixty slow ones of another account that come before it', async () => {
  const slow = 60;
  let begun = 0;
  let before = slow;
  const { server, url } = await serveSide(undefined, {
    asked: ({ caller }) => {
      if (caller.accountId === OTHER_WORLD) {
        before = begun;
      } else {
        begun++;
        spin(LONG_MS / 2);
      }
      return { status: 200, body: '{}' };
    },
  });
  server.unref();
  let accepted = 0;
  server.on('connection', () => accepted++);
  const keys = [...Array.from({ length: slow }, () => keyOf('now')), keyOf('other')];
  const sockets = keys.map(() => connect(Number(new URL(url).port), '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await waitFor(() => accepted === sockets.length);
  const answers = sockets.map((socket) => once(socket, 'data'));
  for (const [n, socket] of sockets.entries())
    socket.write(`GET /api/v3/asked HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${keys[n]}\r\n\r\n`);
  for (const answer of answers) assert.match(String((await answer)[0]), /^HTTP\/1.1 200 /);
  for (const socket of sockets) socket.destroy();
  assert.equal(begun, slow);
  assert.ok(before < slow / 2, `${before} of ${slow} were answered before it`);
});
