import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KeyedQueue } from '../../src/lib/fairSemaphore.ts';

/** Work that reports when it starts and ends when the test says so. */
function steerable(log: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const work = (): Promise<string> => {
    log.push(name);
    return promise;
  };
  return { work, resolve: () => resolve(name), reject: () => reject(new Error(name)) };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('a queue by key', () => {
  test('runs work of one key one after the other, in the order of the calls', async () => {
    const queue = new KeyedQueue();
    const log: string[] = [];
    const [a, b, c] = ['a', 'b', 'c'].map((name) => steerable(log, name));
    const results = [a, b, c].map((one) => queue.run('key', one!.work));
    await settled();
    assert.deepEqual(log, ['a']);
    c!.resolve();
    await settled();
    assert.deepEqual(log, ['a']);
    a!.resolve();
    await settled();
    assert.deepEqual(log, ['a', 'b']);
    b!.resolve();
    assert.deepEqual(await Promise.all(results), ['a', 'b', 'c']);
  });

  test('runs work of different keys side by side', async () => {
    const queue = new KeyedQueue();
    const log: string[] = [];
    const works = ['a', 'b', 'c'].map((name) => steerable(log, name));
    const results = works.map((one, n) => queue.run(`key ${n}`, one.work));
    await settled();
    assert.deepEqual(log, ['a', 'b', 'c']);
    for (const one of works) one.resolve();
    await Promise.all(results);
  });

  test('goes on after work that failed, rejecting or throwing, and gives each caller its own outcome', async () => {
    const queue = new KeyedQueue();
    const log: string[] = [];
    const bad = steerable(log, 'bad');
    const outcomes = Promise.allSettled([
      queue.run('key', bad.work),
      queue.run('key', () => {
        throw new Error('thrown');
      }),
      queue.run('key', async () => 'good'),
    ]);
    bad.reject();
    assert.deepEqual(
      (await outcomes).map((one) => (one.status === 'fulfilled' ? one.value : one.reason.message)),
      ['bad', 'thrown', 'good'],
    );
  });

  test('takes new work of a key whose earlier work is done', async () => {
    const queue = new KeyedQueue();
    for (let n = 0; n < 3; n++) assert.equal(await queue.run('key', async () => n), n);
  });

  test('work that queues itself again comes last', async () => {
    const queue = new KeyedQueue();
    const log: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    void queue.run('key', async () => {
      log.push('first');
      void queue.run('key', async () => {
        log.push('again');
        resolve();
      });
    });
    void queue.run('key', async () => void log.push('second'));
    await promise;
    assert.deepEqual(log, ['first', 'second', 'again']);
  });
});
