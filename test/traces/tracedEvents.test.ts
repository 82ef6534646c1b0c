import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EVENTS_OF_WORLD, TracedEvents } from '../../src/traces/tracedEvents.ts';

const traceparent = (n: number) => `00-${String(n + 1).padStart(32, '0')}-${'1'.repeat(16)}-01`;

describe('the traces of events', () => {
  test('are known to the pod that took the point, and to those that it tells', () => {
    const told: string[] = [];
    const events = new TracedEvents((text) => told.push(text));
    const other = new TracedEvents(() => assert.fail('what is heard is not told again'));
    events.note('evt_1', traceparent(1), 1);
    for (const text of told) other.hear(text);
    for (const pod of [events, other]) {
      assert.equal(pod.find('evt_1')?.traceId, traceparent(1).slice(3, 35));
      assert.equal(pod.find('evt_2'), null);
    }
  });

  test('are forgotten, the oldest first, beyond ten thousand', () => {
    const events = new TracedEvents(() => undefined);
    for (let n = 0; n <= 10_000; n++) events.note(`evt_${n}`, traceparent(n), n);
    assert.equal(events.find('evt_0'), null);
    assert.notEqual(events.find('evt_1'), null);
    assert.notEqual(events.find('evt_10000'), null);
  });

  test('are told up to a bound: a batch with thousands of events does not fill the line to Redis', () => {
    let told = 0;
    const events = new TracedEvents(() => told++);
    for (let n = 0; n < 20_000; n++) events.note(`evt_${n}`, traceparent(n), n);
    assert.ok(told >= 1_000 && told < 2_000, `${told} were told`);
  });

  test('of one account are few, however many a traced batch brings, and another account keeps its own', () => {
    const told: string[] = [];
    const events = new TracedEvents((text) => told.push(text));
    const sinceMs = performance.now();
    events.note('evt_victim', traceparent(0), 1);
    for (let n = 0; n < 20_000; n++) events.note(`evt_${n}`, traceparent(n), 2);
    events.note('evt_victim_again', traceparent(1), 1);
    const { burst, perSecond } = EVENTS_OF_WORLD;
    const allowed = burst + Math.ceil(((performance.now() - sinceMs) * perSecond) / 1_000);
    const known = Array.from({ length: 20_000 }, (_, n) => events.find(`evt_${n}`)).filter(
      (parent) => parent !== null,
    );
    assert.ok(known.length >= burst && known.length <= allowed, `${known.length} are known`);
    for (const victim of ['evt_victim', 'evt_victim_again']) {
      assert.notEqual(events.find(victim), null);
      assert.ok(told.some((text) => text.startsWith(`${victim} `)));
    }
  });

  test('are not what somebody else says on the channel', () => {
    const events = new TracedEvents(() => undefined);
    for (const text of ['', 'evt_1', 'evt_1 x', 'evt_1 00-0-0-01', '__proto__ x']) events.hear(text);
    assert.equal(events.find('evt_1'), null);
    assert.equal(events.find('__proto__'), null);
  });
});
