import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownerPod } from '../support/ownerPod.ts';
import { request } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';

const VAN = '350000000000001';
const point = (n: number) => ({
  imei: VAN,
  recorded_at: Date.now() - n,
  latitude: 41.9,
  longitude: 12.5,
});
const owner = ownerPod({ devices: [{ imei: VAN }], sheds: true }, ({ pod }) => pod.points([point(9)]));

const { pod } = owner;

/** At least so long after it was asked for, a list is refused. */
const HELD_MS = 3_900;

/** Holds up the event loop for 0.18 s in each of its turns, without using the processor, until it is called. */
function blockLoop(): () => void {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  let isOver = false;
  const block = () => {
    Atomics.wait(cell, 0, 0, 180);
    if (!isOver) setImmediate(block);
  };
  block();
  return () => {
    isOver = true;
  };
}

const shedOf = (text: string, name: string) =>
  Number(new RegExp(`^fleet_requests_shed_total\\{class="${name}"\\} (\\d+)`, 'm').exec(text)?.[1]);

test('a pod whose event loop is late refuses lists, and answers polls, points, probes and pages', async (t) => {
  const end = blockLoop();
  t.after(end);
  const list = () => pod.get('/api/v3/devices', owner.key);
  const state = async () => (await request(`${pod.api}/readyz`)).body.status;
  await waitFor(async () => (await state()) === 'degraded');
  const askedAtMs = performance.now();
  // Once all lists are refused, each is.
  await waitFor(async () =>
    (await Promise.all([list(), list(), list()])).every(({ status }) => status === 503),
  );
  assert.ok(
    performance.now() - askedAtMs >= HELD_MS,
    'a refusal comes late, so that nobody asks again at once',
  );
  const [refused, nearest, stored, ready, metrics, page] = await Promise.all([
    list(),
    pod.get('/api/v3/devices/nearest?lat=41.9&lng=12.5', owner.key),
    pod.points([point(0)]),
    request(`${pod.api}/readyz`),
    request(`${pod.ingest}/metrics`),
    request(`${pod.api}/console`),
  ]);
  assert.deepEqual([refused.status, refused.body.error.code], [503, 'SERVICE_UNAVAILABLE']);
  assert.equal(refused.headers.get('retry-after'), '5');
  assert.equal(nearest.status, 200);
  assert.equal(stored.accepted, 1);
  assert.deepEqual([ready.status, ready.body], [200, { status: 'degraded', reasons: ['overloaded'] }]);
  assert.ok(shedOf(metrics.text, 'bulk') > 0);
  assert.equal(shedOf(metrics.text, 'poll'), 0);
  assert.match(metrics.text, /^fleet_event_loop_late_seconds 0\.[1-9]/m);
  assert.equal(page.status, 200);
  end();
  await waitFor(async () => (await state()) === 'ready');
  assert.equal((await list()).status, 200);
});
