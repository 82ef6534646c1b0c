import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PointRequest, WaitingPoints } from '../../src/flows/waitingPoints.ts';
import { fixOf } from '../support/ingestBench.ts';

const requestOf = (...imeis: readonly string[]): PointRequest => ({
  fixes: imeis.map((imei, n) => fixOf(imei, n)),
  outcomes: imeis.map(() => null),
  arrivedAtMs: 0,
  resolve: () => undefined,
  reject: () => undefined,
  open: 0,
  isRefused: false,
});
const worldOf = (imei: string): number => Number(imei[0]);

function waitingFor(...requests: readonly PointRequest[]): WaitingPoints {
  const waiting = new WaitingPoints();
  for (const request of requests) assert.ok(waiting.add(request, worldOf));
  return waiting;
}
const imeisOf = (parts: readonly { imei: string }[]): string[] => parts.map(({ imei }) => imei);

test('parts of one device go along in their order, and are taken once', () => {
  const waiting = waitingFor(requestOf('1a'), requestOf('1a', '1b'), requestOf('1a'));
  const taken = waiting.take(10);
  assert.deepEqual(imeisOf(taken), ['1a', '1a', '1a', '1b']);
  assert.deepEqual([waiting.count, waiting.take(10)], [0, []]);
  for (const part of taken) waiting.settle(part);
  assert.deepEqual(waiting.take(10), []);
  assert.ok(waiting.add(requestOf('1a'), worldOf));
  assert.deepEqual(imeisOf(waiting.take(10)), ['1a']);
});

test('a part waits for the one before it, however that is put back, and no other device does', () => {
  const [first, second] = [requestOf('1a'), requestOf('1a', '1b')];
  const waiting = waitingFor(first, second);
  const [a, again, b] = waiting.take(10);
  assert.ok(a && again && b);
  waiting.putBack(a, 'held');
  waiting.putBack(again, 'ready');
  waiting.settle(b);
  assert.deepEqual([waiting.count, waiting.take(10)], [2, []]);
  waiting.release(a);
  assert.deepEqual(waiting.take(1), [a]);
  waiting.putBack(a, 'heavy');
  assert.deepEqual(waiting.take(10), []);
  assert.equal(waiting.takeHeavy(), a);
  waiting.settle(a);
  assert.deepEqual(waiting.take(10), [again]);
});

test('worlds take turns; what was refused is passed over and makes way', () => {
  const refused = requestOf('1a');
  const waiting = waitingFor(refused, requestOf('1a'), requestOf('1b', '1c', '1d'), requestOf('2x'));
  refused.isRefused = true;
  assert.deepEqual(imeisOf(waiting.take(3)), ['2x', '1b', '1c']);
  assert.deepEqual(imeisOf(waiting.take(3)), ['1d', '1a']);
  assert.equal(waiting.count, 0);
});
