import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LocalBell, type Topic } from '../../src/queue/bell.ts';

describe('the bell of a process', () => {
  test('rings at once for the first of a flurry, and once more for all the others', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const bell = new LocalBell();
    let heard = 0;
    bell.onRing('changes', () => heard++);
    for (let i = 0; i < 100; i++) bell.ring('changes');
    assert.equal(heard, 1);
    t.mock.timers.tick(19);
    assert.equal(heard, 1);
    t.mock.timers.tick(1);
    assert.equal(heard, 2);
    bell.ring('changes');
    assert.equal(heard, 2, 'the last ring was just now');
    t.mock.timers.tick(20);
    assert.equal(heard, 3);
    t.mock.timers.tick(100);
    assert.equal(heard, 3, 'and then it is quiet');
    bell.ring('changes');
    assert.equal(heard, 4);
    bell.close();
  });

  test('rings each topic for its own listeners, until they stop listening', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const bell = new LocalBell();
    const heard: string[] = [];
    const listen = (name: string, topic: Topic) => bell.onRing(topic, () => heard.push(name));
    const stop = listen('first', 'changes');
    listen('second', 'changes');
    listen('third', 'deliveries');
    bell.ring('changes');
    assert.deepEqual(heard, ['first', 'second']);
    stop();
    t.mock.timers.tick(100);
    bell.ring('changes');
    bell.ring('deliveries');
    assert.deepEqual(heard, ['first', 'second', 'second', 'third']);
    bell.close();
  });

  test('is silent after its end, even when a ring was still due', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const bell = new LocalBell();
    let heard = 0;
    bell.onRing('changes', () => heard++);
    bell.ring('changes');
    bell.ring('changes');
    bell.close();
    t.mock.timers.tick(100);
    bell.ring('changes');
    assert.equal(heard, 1);
  });
});
