import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Turnstile } from '../../src/base/turnstile.ts';

/** Work that ends when it is told to. */
function heldWork() {
  const ends: ((ok: boolean) => void)[] = [];
  let most = 0;
  let running = 0;
  const work = (name: number) => () => {
    running++;
    most = Math.max(most, running);
    return new Promise<number>((resolve, reject) => {
      ends.push((ok) => {
        running--;
        if (ok) resolve(name);
        else reject(new Error(`work ${name} failed`));
      });
    });
  };
  return { ends, work, most: () => most };
}

describe('a turnstile', () => {
  test('lets so many run, so many wait in order, and turns the rest away without beginning them', async () => {
    const turnstile = new Turnstile(2, 3);
    const { ends, work, most } = heldWork();
    const runs = [0, 1, 2, 3, 4, 5, 6].map((name) => turnstile.run(work(name)));
    assert.deepEqual(await Promise.all(runs.slice(5)), [null, null]);
    const done: (number | null)[] = [];
    for (const run of runs.slice(0, 5)) void run.then((name) => done.push(name));
    for (let n = 0; n < 5; n++) {
      await turn();
      assert.equal(ends.length, Math.min(n + 2, 5));
      ends[n]?.(true);
    }
    await Promise.all(runs);
    assert.deepEqual(done, [0, 1, 2, 3, 4]);
    assert.equal(most(), 2);
  });

  test('gives the place of failed work to the next, and lets nobody slip in before it', async () => {
    const turnstile = new Turnstile(1, 2);
    const { ends, work, most } = heldWork();
    const first = turnstile.run(work(0));
    const second = turnstile.run(work(1));
    ends[0]?.(false);
    await assert.rejects(first, /work 0 failed/);
    const third = turnstile.run(work(2));
    await turn();
    assert.equal(ends.length, 2);
    ends[1]?.(true);
    assert.equal(await second, 1);
    await turn();
    ends[2]?.(true);
    assert.equal(await third, 2);
    assert.equal(most(), 1);
    const fourth = turnstile.run(work(3));
    ends[3]?.(true);
    assert.equal(await fourth, 3);
  });
});
