import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STEP_LIMIT_MS, Teardown } from '../src/pod.ts';

const FOREVER = new Promise<never>(() => undefined);

test('a stop undoes everything, last first, and waits only once in vain for something that does not answer', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const teardown = new Teardown();
  const undone: string[] = [];
  const failures: unknown[] = [];
  const add = (name: string, result?: Promise<never>, limitMs?: number) =>
    teardown.add(() => {
      undone.push(name);
      return result;
    }, limitMs);
  add('cluster', undefined, 40_000);
  add('connections', FOREVER);
  add('follower', FOREVER);
  add('cache', Promise.reject(new Error('no')));
  add('listener', FOREVER);
  const log = { warn: ({ err }: { err: unknown }) => void failures.push(err) };
  const stopped = teardown.run(log as never);
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  t.mock.timers.tick(STEP_LIMIT_MS);
  await settle();
  assert.deepEqual(undone, ['listener', 'cache', 'follower']);
  t.mock.timers.tick(750);
  await settle();
  t.mock.timers.tick(750);
  await stopped;
  assert.deepEqual(undone, ['listener', 'cache', 'follower', 'connections', 'cluster']);
  assert.equal(failures.length, 4);
});
