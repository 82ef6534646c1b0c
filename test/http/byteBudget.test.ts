import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ByteBudget, Overloaded, type Reservation } from '../../src/lib/fairSemaphore.ts';
import { seededRandom } from '../support/seededRandom.ts';

const NEVER = new AbortController().signal;

/** A budget of 100 bytes, 40 for each key, and the order in which reservations were given. */
function newBudget(waitingPerKey = 100) {
  const budget = new ByteBudget<string>({ bytes: 100, bytesPerKey: 40, waitingPerKey });
  const given: string[] = [];
  const held = new Map<string, Reservation>();
  const reserve = (name: string, bytes: number, signal = NEVER) =>
    budget.reserve(name.charAt(0), bytes, signal).then((reservation) => {
      given.push(name);
      held.set(name, reservation);
    });
  const release = async (name: string): Promise<void> => {
    held.get(name)?.release();
    await nextTurn();
  };
  return { budget, given, held, reserve, release };
}

describe('a budget of bytes', () => {
  test('gives what fits, and makes the rest of a key wait for its own share only', async () => {
    const { budget, given, reserve, release } = newBudget();
    const all = Promise.all([reserve('a1', 30), reserve('a2', 20), reserve('b1', 40), reserve('c1', 30)]);
    await nextTurn();
    assert.deepEqual([given, budget.heldBytes, budget.waiting], [['a1', 'b1', 'c1'], 100, 1]);
    await release('b1');
    assert.deepEqual(given, ['a1', 'b1', 'c1']);
    await release('a1');
    assert.deepEqual([given.at(-1), budget.heldBytes, budget.waiting], ['a2', 50, 0]);
    await all;
  });

  test('goes round the keys, whoever has asked the most', async () => {
    const { given, reserve, release } = newBudget();
    const all = Promise.all([
      ...['x1', 'y1', 'z1'].map((name) => reserve(name, name === 'z1' ? 20 : 40)),
      ...['a1', 'a2', 'a3', 'b1', 'c1'].map((name) => reserve(name, 20)),
    ]);
    await nextTurn();
    for (const name of ['z1', 'a1', 'b1', 'c1', 'a2']) await release(name);
    assert.deepEqual(given.slice(3), ['a1', 'b1', 'c1', 'a2', 'a3']);
    await all;
  });

  test('a large one in turn is not overtaken for ever by small ones', async () => {
    const { given, reserve, release } = newBudget();
    const all = Promise.all([
      ...['x1', 'y1'].map((name) => reserve(name, 40)),
      reserve('z1', 20),
      reserve('a1', 40),
      ...['b1', 'c1', 'd1'].map((name) => reserve(name, 10)),
    ]);
    await nextTurn();
    await release('z1');
    assert.equal(given.length, 3);
    await release('x1');
    assert.deepEqual(given.slice(3), ['a1', 'b1', 'c1']);
    await release('y1');
    await all;
  });

  test('takes back what is more than needed, once', async () => {
    const { budget, given, held, reserve, release } = newBudget();
    await reserve('a1', 40);
    const next = reserve('a2', 30);
    held.get('a1')?.keep(60);
    held.get('a1')?.keep(10);
    await next;
    assert.equal(budget.heldBytes, 40);
    await release('a1');
    await release('a1');
    assert.deepEqual([given, budget.heldBytes], [['a1', 'a2'], 30]);
  });

  test('forgets who gives up, also at the head of the turns', async () => {
    const { budget, given, reserve, release } = newBudget();
    const reason = new Error('gone');
    const gone = new AbortController();
    await Promise.all([reserve('x1', 40), reserve('y1', 40), reserve('z1', 10)]);
    const rejected = assert.rejects(reserve('a1', 40, gone.signal), reason);
    const next = reserve('b1', 10);
    await nextTurn();
    assert.equal(given.length, 3);
    gone.abort(reason);
    await Promise.all([rejected, next]);
    await assert.rejects(reserve('a2', 1, gone.signal), reason);
    for (const name of ['x1', 'y1', 'z1', 'b1']) await release(name);
    assert.deepEqual([budget.heldBytes, budget.waiting], [0, 0]);
  });

  test('refuses what is more than a share, and more that waits than may', async () => {
    const { reserve, release } = newBudget(1);
    assert.throws(() => reserve('a0', 41));
    await reserve('a1', 40);
    const waiting = reserve('a2', 40);
    await assert.rejects(reserve('a3', 1), Overloaded);
    await reserve('b1', 1);
    await release('a1');
    await waiting;
  });

  test('never gives more than there is, and all of it comes back, whatever the order', async () => {
    const random = seededRandom(11);
    const { budget, held, reserve } = newBudget();
    const waiting: Promise<void>[] = [];
    for (let n = 0; n < 2_000; n++) {
      const names = [...held.keys()];
      if (random() < 0.5)
        waiting.push(reserve(`${'abcdef'[Math.floor(random() * 6)]}${n}`, Math.floor(random() * 41)));
      else if (names.length > 0) {
        const name = names[Math.floor(random() * names.length)] as string;
        held.get(name)?.release();
        held.delete(name);
      }
      assert.ok(budget.heldBytes <= 100);
      if (n % 10 === 0) await nextTurn();
    }
    while (budget.heldBytes > 0 || budget.waiting > 0) {
      await nextTurn();
      for (const [name, reservation] of held) {
        reservation.release();
        held.delete(name);
      }
    }
    await Promise.all(waiting);
    assert.deepEqual([budget.heldBytes, budget.waiting], [0, 0]);
  });
});
