import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PointRequest, WaitingPoints } from '../../src/ingest/waitingPoints.ts';
import { fixOf } from '../support/ingest/fixOf.ts';

const requestOf = (...imeis: readonly string[]): PointRequest => ({
  fixes: imeis.map((imei, n) => fixOf(imei, n)),
  outcomes: imeis.map(() => null),
  arrivedAtMs: 0,
  resolve: () => undefined,
  reject: () => undefined,
  openParts: 0,
  isRejected: false,
  isShared: false,
});
const worldOf = (imei: string): number => Number(imei[0]);

function waitingFor(...requests: readonly PointRequest[]): WaitingPoints {
  const waiting = new WaitingPoints();
  for (const request of requests) assert.ok(waiting.add(request, worldOf));
  return waiting;
}
const imeisOf = (parts: readonly { imei: string }[]): string[] => parts.map(({ imei }) => imei);

test('parts of one device are taken together, in their order, and once', () => {
  const waiting = waitingFor(requestOf('1a'), requestOf('1a', '1b'), requestOf('1a'));
  const taken = waiting.take(10);
  assert.deepEqual(imeisOf(taken), ['1a', '1a', '1a', '1b']);
  assert.deepEqual([waiting.count, waiting.take(10)], [0, []]);
  for (const part of taken) waiting.finish(part);
  assert.deepEqual(waiting.take(10), []);
  assert.ok(waiting.add(requestOf('1a'), worldOf));
  assert.deepEqual(imeisOf(waiting.take(10)), ['1a']);
});

test('a part waits for the previous part of its device, however that is put back; other devices do not wait', () => {
  const [first, second] = [requestOf('1a'), requestOf('1a', '1b')];
  const waiting = waitingFor(first, second);
  const [a, again, b] = waiting.take(10);
  assert.ok(a && again && b);
  waiting.putBack(a, 'blocked');
  waiting.putBack(again, 'ready');
  waiting.finish(b);
  assert.deepEqual([waiting.count, waiting.take(10)], [2, []]);
  waiting.unblock(a);
  assert.deepEqual(waiting.take(1), [a]);
  waiting.putBack(a, 'blocked');
  assert.deepEqual(waiting.take(10), []);
  assert.equal(waiting.takeBlocked(a), a);
  waiting.finish(a);
  assert.deepEqual(waiting.take(10), [again]);
});

test('a request knows whether it has points of several worlds', () => {
  const [shared, own] = [requestOf('1a', '2a', '1b'), requestOf('1c', '1d')];
  waitingFor(shared, own);
  assert.deepEqual([shared.isShared, own.isShared], [true, false]);
});

test('worlds take turns; parts of a rejected request are dropped, and what waited for them is ready', () => {
  const rejected = requestOf('1a');
  const waiting = waitingFor(rejected, requestOf('1a'), requestOf('1b', '1c', '1d'), requestOf('2x'));
  rejected.isRejected = true;
  assert.deepEqual(imeisOf(waiting.take(3)), ['2x', '1b', '1c']);
  assert.deepEqual(imeisOf(waiting.take(3)), ['1d', '1a']);
  assert.equal(waiting.count, 0);
});
