import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { FairSemaphore, Overloaded } from '../../src/lib/fairSemaphore.ts';

const LIMITS = { running: 2, runningPerKey: 1, waiting: 6, waitingPerKey: 3 };

/** Work that ends when the test says so; records which keys have been started, in order. */
function heldWork() {
  const started: string[] = [];
  const ends: (() => void)[] = [];
  const work = (name: string) => () =>
    new Promise<string>((resolve) => {
      started.push(name);
      ends.push(() => resolve(name));
    });
  return { started, ends, work };
}

describe('a fair semaphore', () => {
  test('gives a free place to the next key in turn, not to the one that has queued the most', async () => {
    const semaphore = new FairSemaphore<string>({ ...LIMITS, running: 1 });
    const { started, ends, work } = heldWork();
    const runs = ['a', 'a', 'a', 'b', 'c'].map((key) => semaphore.run(key, work(key)));
    for (let n = 0; n < runs.length; n++) {
      await turn();
      ends[n]?.();
    }
    await Promise.all(runs);
    assert.deepEqual(started, ['a', 'b', 'c', 'a', 'a']);
  });

  test('never runs more of a key than its share, even when places are free', async () => {
    const semaphore = new FairSemaphore<string>(LIMITS);
    const { started, ends, work } = heldWork();
    const runs = [semaphore.run('a', work('a1')), semaphore.run('a', work('a2'))];
    await turn();
    assert.deepEqual(started, ['a1']);
    const victim = semaphore.run('b', work('b1'));
    await turn();
    assert.deepEqual(started, ['a1', 'b1']);
    for (let n = 0; n < 3; n++) {
      ends[n]?.();
      await turn();
    }
    assert.deepEqual(await Promise.all([...runs, victim]), ['a1', 'a2', 'b1']);
  });

  test('turns away what has waited for too long, and its permit goes to the next', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const semaphore = new FairSemaphore<string>(LIMITS);
    await semaphore.acquireWithin('a', 100);
    const late = assert.rejects(semaphore.acquireWithin('a', 100), Overloaded);
    const patient = semaphore.acquireWithin('a', 1_000);
    t.mock.timers.tick(100);
    await late;
    semaphore.release('a');
    await patient;
    semaphore.release('a');
    assert.equal(await semaphore.run('a', () => Promise.resolve('free')), 'free');
  });

  test('turns away what is more than may wait, without beginning it, and takes more when some has ended', async () => {
    const semaphore = new FairSemaphore<string>(LIMITS);
    const { started, ends, work } = heldWork();
    const runs = [1, 2, 3, 4].map((n) => semaphore.run('a', work(`a${n}`)));
    await assert.rejects(semaphore.run('a', work('a5')), Overloaded);
    ends[0]?.();
    await turn();
    runs.push(semaphore.run('a', work('a6')));
    for (let n = 1; n < 5; n++) {
      await turn();
      ends[n]?.();
    }
    await Promise.all(runs);
    assert.deepEqual(started, ['a1', 'a2', 'a3', 'a4', 'a6']);
  });

  test('lets the newest of the key that waits with the most give way to a key with less, where all room is taken', async () => {
    const semaphore = new FairSemaphore<string>({ ...LIMITS, running: 1 });
    const { started, ends, work } = heldWork();
    const outcomes = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'b3', 'c1', 'd1', 'b4', 'e1'].map((name) =>
      semaphore.run(name.charAt(0), work(name)).catch((error) => {
        assert.ok(error instanceof Overloaded);
        return 'refused';
      }),
    );
    for (let n = 0; n < 7; n++) {
      await turn();
      ends[n]?.();
    }
    // a2 a3 a4 b1 b2 b3 wait when c1 comes; in the end all wait with one, but for two.
    assert.deepEqual(await Promise.all(outcomes), [
      ...['a1', 'a2', 'refused', 'refused', 'b1', 'b2', 'refused', 'c1', 'd1', 'refused', 'e1'],
    ]);
    assert.deepEqual(started, ['a1', 'b1', 'c1', 'd1', 'e1', 'a2', 'b2']);
    assert.equal(semaphore.waiting, 0);
  });

  test('gives back the place of work that fails', async () => {
    const semaphore = new FairSemaphore<string>({ ...LIMITS, running: 1 });
    await assert.rejects(
      semaphore.run('a', () => Promise.reject(new Error('planned'))),
      /planned/,
    );
    assert.equal(await semaphore.run('b', async () => 'b'), 'b');
  });

  test('keeps every limit and runs everything that it takes, whatever comes', async () => {
    const keys = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(keys, async (plan) => {
        const semaphore = new FairSemaphore<number>(LIMITS);
        const running = new Map<number, number>();
        let all = 0;
        let done = 0;
        const runs = plan.map((key) =>
          semaphore
            .run(key, async () => {
              running.set(key, (running.get(key) ?? 0) + 1);
              all++;
              assert.ok(all <= LIMITS.running && (running.get(key) as number) <= LIMITS.runningPerKey);
              await turn();
              running.set(key, (running.get(key) as number) - 1);
              all--;
              done++;
            })
            .then(
              () => 1,
              (error) => {
                assert.ok(error instanceof Overloaded);
                return 0;
              },
            ),
        );
        const taken = (await Promise.all(runs)).reduce((sum: number, one) => sum + one, 0);
        assert.equal(done, taken);
        assert.equal(semaphore.waiting, 0);
        assert.ok(plan.length === 0 || taken > 0);
      }),
    );
  });
});
