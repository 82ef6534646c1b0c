import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { WorkTurns } from '../../src/lib/workTurns.ts';

/** Steps that write down each of theirs, and take as long as `stepMs`. */
function* steps(name: string, count: number, log: string[], stepMs = 0) {
  for (let n = 1; n <= count; n++) {
    const endMs = performance.now() + stepMs;
    while (performance.now() < endMs);
    log.push(`${name}${n}`);
    yield;
  }
  return name;
}

describe('work in turns', () => {
  test('gives what the steps return, and rejects with what they throw', async () => {
    const turns = new WorkTurns<string>(2);
    assert.equal(await turns.run('a', steps('a', 3, [])), 'a');
    // biome-ignore lint/correctness/useYield: it fails before its first step ends
    const failing = (function* (): Generator<undefined, never, undefined> {
      throw new Error('planned');
    })();
    await assert.rejects(turns.run('a', failing), /planned/);
    assert.equal(turns.size, 0);
  });

  test('goes round the keys, and does the work of one key in order', async () => {
    const turns = new WorkTurns<string>(1_000);
    const log: string[] = [];
    await Promise.all([
      turns.run('a', steps('a', 2, log)),
      turns.run('a', steps('x', 2, log)),
      turns.run('b', steps('b', 3, log)),
    ]);
    assert.deepEqual(log, ['a1', 'b1', 'a2', 'b2', 'b3', 'x1', 'x2']);
  });

  test('does what a step adds to its own key, whether or not more of that key waits', async () => {
    for (const others of [0, 1, 2]) {
      for (const isUrgent of [false, true]) {
        const turns = new WorkTurns<string>(1_000);
        const log: string[] = [];
        // biome-ignore lint/correctness/useYield: it adds work in its only step
        const adding = (function* (): Generator<undefined, Promise<string>, undefined> {
          return turns.run('a', steps('added', 1, log), isUrgent);
        })();
        const first = turns.run('a', adding, isUrgent);
        const behind = Array.from({ length: others }, (_, n) =>
          turns.run('a', steps(`b${n} `, 2, log), isUrgent),
        );
        await Promise.all([first, ...behind]);
        assert.equal(log.at(-1), 'added1', `behind ${others} others`);
        assert.equal(log.length, 1 + 2 * others);
        assert.equal(turns.size, 0);
      }
    }
  });

  test('spends one budget in a turn of the event loop, however many computations there are', async () => {
    const turns = new WorkTurns<number>(2);
    const log: string[] = [];
    const work = Promise.all(
      Array.from({ length: 20 }, (_, key) => turns.run(key, steps(`${key} `, 1, log, 2))),
    );
    const perTurn: number[] = [];
    let before = 0;
    while (turns.size > 0) {
      await turn();
      perTurn.push(log.length - before);
      before = log.length;
    }
    await work;
    // A step takes the whole budget, so a turn does one and never a second.
    assert.ok(Math.max(...perTurn) <= 1, `steps in each turn: ${perTurn}`);
    assert.equal(log.length, 20);
  });

  test('gives every second step to urgent work, however much other work there is', async () => {
    const turns = new WorkTurns<string>(1_000);
    const log: string[] = [];
    const others = ['a', 'b', 'c', 'd'].map((key) => turns.run(key, steps(key, 2, log)));
    await Promise.all([...others, turns.run('u', steps('u', 3, log), true)]);
    assert.deepEqual(log.slice(0, 6), ['u1', 'a1', 'u2', 'b1', 'u3', 'c1']);
    assert.equal(log.length, 11);
    assert.equal(turns.size, 0);
  });

  test('a failing computation costs the others nothing', async () => {
    const turns = new WorkTurns<string>(1);
    const log: string[] = [];
    const failing = (function* (): Generator<undefined, never, undefined> {
      yield;
      throw new Error('planned');
    })();
    const [failed, victim] = await Promise.allSettled([
      turns.run('a', failing),
      turns.run('b', steps('b', 5, log)),
    ]);
    assert.equal(failed.status, 'rejected');
    assert.deepEqual(victim, { status: 'fulfilled', value: 'b' });
  });
});
