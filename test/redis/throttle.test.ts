import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Throttle } from '../../src/redis/wakeUps.ts';

describe('a throttle', () => {
  test('acts at once on the first of many calls, and once more for all the others', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let actions = 0;
    const throttle = new Throttle(() => actions++);
    for (let i = 0; i < 100; i++) throttle.call();
    assert.equal(actions, 1);
    t.mock.timers.tick(19);
    assert.equal(actions, 1);
    t.mock.timers.tick(1);
    assert.equal(actions, 2);
    throttle.call();
    assert.equal(actions, 2, 'the last action was just now');
    t.mock.timers.tick(20);
    assert.equal(actions, 3);
    t.mock.timers.tick(100);
    assert.equal(actions, 3, 'no call, no action');
    throttle.call();
    assert.equal(actions, 4);
  });

  test('acts no more once it is closed, even when an action was due', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let actions = 0;
    const throttle = new Throttle(() => actions++);
    throttle.call();
    throttle.call();
    throttle.close();
    t.mock.timers.tick(100);
    throttle.call();
    assert.equal(actions, 1);
  });
});
