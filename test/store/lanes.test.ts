import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  abandonLane,
  claimLane,
  type Lease,
  releaseLane,
  selectBacklog,
  selectCutOff,
  selectDueInMs,
  selectDueLanes,
  settleAttempt,
  startAttempt,
} from '../../src/store/lanes.ts';
import { type QueuedLanes, startLanes } from '../support/queuedLanes.ts';

const DELIVERED = { status: 'delivered', nextAttemptDelayMs: null, freshBudget: false } as const;
const FAILED = { status: 'failed', nextAttemptDelayMs: 120_000, freshBudget: false } as const;
const RESULT = { statusCode: 200, error: null, durationMs: 7 };

async function claim({ sql }: QueuedLanes, id: number): Promise<Lease> {
  const lease = await claimLane(sql, id);
  assert.ok(lease);
  return lease;
}
const expire = ({ sql }: QueuedLanes, id: number) =>
  sql`update webhook set leased_until = clock_timestamp() - interval '1 second' where id = ${id}`;

describe('the lane of an endpoint', () => {
  test('of many who claim it at once one gets it; tokens rise; what is gone cannot be claimed', async (t) => {
    const lanes = await startLanes(t);
    const id = await lanes.endpoint();
    for (let token = 1; token <= 5; token++) {
      const leases = await Promise.all(Array.from({ length: 8 }, () => claimLane(lanes.sql, id)));
      const got = leases.filter((lease) => lease !== undefined);
      assert.deepEqual(got, [{ webhookId: id, fencingToken: token }]);
      await releaseLane(lanes.sql, got[0] as Lease);
    }
    assert.equal(await claimLane(lanes.sql, id + 1), undefined);
  });

  test('attempts start in the order in which they are due, one statement each, also with several at a time', async (t) => {
    const lanes = await startLanes(t);
    const id = await lanes.endpoint();
    const queued = await lanes.queue(id, 4);
    await lanes.sql`update webhook_delivery set next_attempt_at = next_attempt_at - interval '1 minute' where id = ${queued[3] ?? ''}`;
    const lease = await claim(lanes, id);
    const started = [];
    for (let n = 0; n < 4; n++) started.push(await startAttempt(lanes.sql, lease));
    assert.deepEqual(
      started.map((attempt) => attempt?.deliveryId),
      [queued[3], queued[0], queued[1], queued[2]],
    );
    assert.deepEqual([started[0]?.attempt, started[0]?.spent, started[0]?.status], [1, 1, 'pending']);
    assert.equal(await startAttempt(lanes.sql, lease), undefined);
  });

  test('who lost the lease starts nothing, settles nothing, and releases nothing of the next holder', async (t) => {
    const lanes = await startLanes(t);
    const id = await lanes.endpoint();
    const [deliveryId = ''] = await lanes.queue(id, 2);
    const first = await claim(lanes, id);
    await startAttempt(lanes.sql, first);
    await expire(lanes, id);
    assert.equal(await startAttempt(lanes.sql, first), undefined, 'an expired lease starts nothing');
    const second = await claim(lanes, id);
    assert.equal(await startAttempt(lanes.sql, first), undefined);
    await releaseLane(lanes.sql, first);
    await abandonLane(lanes.sql, first);
    assert.equal(await claimLane(lanes.sql, id), undefined, 'the second still has it');
    const [cutOff] = await selectCutOff(lanes.sql, second);
    assert.deepEqual([cutOff?.deliveryId, cutOff?.spent], [deliveryId, 1]);
    assert.equal(await settleAttempt(lanes.sql, deliveryId, { cutOffBefore: second }, FAILED, RESULT), true);
    const snapshot = () => lanes.sql`select * from webhook_delivery where id = ${deliveryId}`;
    const before = await snapshot();
    assert.equal(
      await settleAttempt(lanes.sql, deliveryId, { startedUnder: first }, DELIVERED, RESULT),
      false,
    );
    assert.deepEqual(await snapshot(), before);
    await lanes.sql`update webhook_delivery set next_attempt_at = clock_timestamp() - interval '1 hour' where id = ${deliveryId}`;
    assert.equal((await startAttempt(lanes.sql, second))?.attempt, 2);
    assert.equal(
      await settleAttempt(lanes.sql, deliveryId, { startedUnder: first }, DELIVERED, RESULT),
      false,
    );
    assert.deepEqual(await selectCutOff(lanes.sql, second), [], 'its own attempt is not cut off');
    assert.equal(
      await settleAttempt(lanes.sql, deliveryId, { startedUnder: second }, DELIVERED, RESULT),
      true,
    );
    assert.equal(
      await settleAttempt(lanes.sql, deliveryId, { startedUnder: second }, FAILED, RESULT),
      false,
      'once',
    );
  });

  test('what is due: by time, not while inactive unless a ping, at once when a lease was left behind', async (t) => {
    const lanes = await startLanes(t);
    const { sql } = lanes;
    const [now, later, inactive, ping, left, idle, abandoned] = [
      await lanes.endpoint(),
      await lanes.endpoint(),
      await lanes.endpoint(),
      await lanes.endpoint(),
      await lanes.endpoint(),
      await lanes.endpoint(),
      await lanes.endpoint(),
    ];
    for (const id of [now, later, inactive, ping]) await lanes.queue(id);
    await sql`update webhook_delivery set next_attempt_at = clock_timestamp() + interval '1 hour' where webhook_id = ${later}`;
    await sql`update webhook_delivery set event_type = 'ping' where webhook_id = ${ping}`;
    await sql`update webhook set active = false where id in (${inactive}, ${ping})`;
    await claim(lanes, left);
    await expire(lanes, left);
    await claim(lanes, idle);
    await abandonLane(sql, await claim(lanes, abandoned));
    const due = new Map((await selectDueLanes(sql)).map(({ webhookId, dueInMs }) => [webhookId, dueInMs]));
    assert.deepEqual([...due.keys()].sort(), [now, later, ping, left, abandoned].sort());
    assert.deepEqual([due.get(now), due.get(ping), due.get(left), due.get(abandoned)], [0, 0, 0, 0]);
    const laterMs = due.get(later) ?? 0;
    assert.ok(laterMs > 3_500_000 && laterMs <= 3_600_000);
    assert.deepEqual(
      [
        await selectDueInMs(sql, now),
        await selectDueInMs(sql, inactive),
        await selectDueInMs(sql, idle),
        await selectDueInMs(sql, 99_999),
      ],
      [0, null, null, null],
    );
    const { waiting, oldestDueMs } = await selectBacklog(sql);
    assert.equal(waiting, 4);
    assert.ok(oldestDueMs >= 0 && oldestDueMs < 60_000);
  });
});
