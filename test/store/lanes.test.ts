import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Attempt,
  abandonLane,
  advanceLane,
  type EndedAttempt,
  LEASE_SECONDS,
  type Lease,
  openLane,
  selectCutOff,
  settleAttempt,
} from '../../src/store/lanes.ts';
import { deleteWebhook } from '../../src/store/webhooks.ts';
import { type QueuedLanes, startLanes } from '../support/queuedLanes.ts';

const DELIVERED = { status: 'delivered', nextAttemptDelayMs: null, freshBudget: false } as const;
const FAILED = { status: 'failed', nextAttemptDelayMs: 120_000, freshBudget: false } as const;
const RESULT = { statusCode: 200, error: null, durationMs: 7 };

const delivered = (attempt: EndedAttempt['attempt']): EndedAttempt => ({
  attempt,
  next: DELIVERED,
  result: RESULT,
});

/** Opens a lane with something due. */
async function open({ sql }: QueuedLanes, id: number): Promise<{ lease: Lease; attempt: Attempt }> {
  const opened = await openLane(sql, id);
  assert.ok(opened?.step.attempt);
  return { lease: opened.lease, attempt: opened.step.attempt };
}
const expire = ({ sql }: QueuedLanes, id: number) =>
  sql`update webhook set leased_until = clock_timestamp() - interval '1 second' where id = ${id}`;
const leaseSeconds = async ({ sql }: QueuedLanes, id: number): Promise<number | null> => {
  const [row] = await sql<{ left: number | null }[]>`
    select extract(epoch from leased_until - clock_timestamp())::float8 as left from webhook where id = ${id}`;
  return row?.left ?? null;
};

describe('the lane of an endpoint', () => {
  test('of many who open it at once one gets it; tokens rise; what is gone cannot be opened', async (t) => {
    const lanes = await startLanes(t);
    const id = await lanes.endpoint();
    for (let token = 1; token <= 5; token++) {
      await lanes.queue(id);
      const opened = await Promise.all(Array.from({ length: 8 }, () => openLane(lanes.sql, id)));
      const got = opened.filter((each) => each?.step.attempt != null);
      assert.deepEqual(
        got.map((each) => each?.lease),
        [{ webhookId: id, fencingToken: token }],
      );
      const [{ lease, step }] = got as [NonNullable<Awaited<ReturnType<typeof openLane>>>];
      assert.ok(step.attempt);
      const left = (await leaseSeconds(lanes, id)) ?? 0;
      assert.ok(left > LEASE_SECONDS - 5 && left <= LEASE_SECONDS);
      const over = await advanceLane(lanes.sql, lease, delivered(step.attempt), true);
      assert.deepEqual(over, { written: true, step: { attempt: null, dueInMs: null } });
      assert.equal(await leaseSeconds(lanes, id), null, 'given back');
    }
    assert.equal(await openLane(lanes.sql, id + 1), undefined);
  });

  test('who opens a lane has it from its first moment: another is refused at once, even while that one waits', async (t) => {
    const lanes = await startLanes(t);
    const id = await lanes.endpoint();
    await lanes.queue(id, 2);
    const held = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const hold = lanes.sql.begin(async (tx) => {
      await tx`select from webhook_delivery for update`;
      held.resolve();
      await released.promise;
    });
    await held.promise;
    const both = [openLane(lanes.sql, id), openLane(lanes.sql, id)];
    assert.equal(await Promise.race(both), undefined);
    released.resolve();
    await hold;
    const opened = (await Promise.all(both)).filter((each) => each !== undefined);
    assert.deepEqual(
      opened.map(({ lease, step }) => [lease.fencingToken, step.attempt?.attempt]),
      [[1, 1]],
    );
  });

  test('attempts start in the order in which they are due; who may start none gives the lane back', async (t) => {
    const lanes = await startLanes(t);
    const id = await lanes.endpoint();
    const queued = await lanes.queue(id, 4);
    await lanes.sql`update webhook_delivery set next_attempt_at = next_attempt_at - interval '1 minute' where id = ${queued[3] ?? ''}`;
    let { lease, attempt } = await open(lanes, id);
    assert.deepEqual([attempt.attempt, attempt.spent, attempt.status], [1, 1, 'pending']);
    const started = [attempt.deliveryId];
    for (const mayStart of [true, true, false]) {
      await lanes.sql`update webhook set leased_until = clock_timestamp() + interval '1 second' where id = ${id}`;
      const { written, step } = await advanceLane(lanes.sql, lease, delivered(attempt), mayStart);
      assert.equal(written, true);
      if (step.attempt === null) {
        assert.deepEqual(step, { attempt: null, dueInMs: 0 });
        assert.equal(await leaseSeconds(lanes, id), null);
        ({ lease, attempt } = await open(lanes, id));
      } else {
        assert.ok(((await leaseSeconds(lanes, id)) ?? 0) > LEASE_SECONDS - 5, 'renewed');
        attempt = step.attempt;
      }
      started.push(attempt.deliveryId);
    }
    assert.deepEqual(started, [queued[3], queued[0], queued[1], queued[2]]);
  });

  test('the wait that ends first is told: that of the attempt just ended, or of another', async (t) => {
    const lanes = await startLanes(t);
    const id = await lanes.endpoint();
    const [first = '', second = ''] = await lanes.queue(id, 2);
    await lanes.sql`update webhook_delivery set next_attempt_at = clock_timestamp() + interval '1 hour' where id = ${second}`;
    const retry = async (nextAttemptDelayMs: number) => {
      const { lease, attempt } = await open(lanes, id);
      assert.equal(attempt.deliveryId, first);
      const ended = { attempt, next: { ...FAILED, nextAttemptDelayMs }, result: RESULT };
      const { step } = await advanceLane(lanes.sql, lease, ended, true);
      assert.equal(step.attempt, null);
      await lanes.sql`update webhook_delivery set next_attempt_at = clock_timestamp() where id = ${first}`;
      return (step.attempt === null && step.dueInMs) || 0;
    };
    const near = (ms: number, wantedMs: number) => ms > wantedMs - 10_000 && ms <= wantedMs;
    assert.ok(near(await retry(120_000), 120_000));
    assert.ok(near(await retry(7_200_000), 3_600_000));
    await lanes.sql`delete from webhook_delivery where id = ${second}`;
    assert.ok(near(await retry(7_200_000), 7_200_000));
  });

  test('who lost the lease starts nothing, settles nothing, and releases nothing of the next holder', async (t) => {
    const lanes = await startLanes(t);
    const { sql } = lanes;
    const id = await lanes.endpoint();
    const [deliveryId = ''] = await lanes.queue(id, 2);
    const first = await open(lanes, id);
    await expire(lanes, id);
    const second = await openLane(sql, id);
    assert.deepEqual([second?.hasCutOff, second?.step.attempt], [true, null]);
    const lease = second?.lease as Lease;
    const snapshot = async () => [
      await sql`select * from webhook_delivery order by id`,
      await sql`select * from webhook`,
    ];
    const before = await snapshot();
    for (const ended of [delivered(first.attempt), null]) {
      const late = await advanceLane(sql, first.lease, ended, true);
      assert.deepEqual(late, { written: false, step: { attempt: null, dueInMs: 0 } });
    }
    await abandonLane(sql, first.lease);
    assert.equal(await openLane(sql, id), undefined, 'the second still has it');
    assert.deepEqual(await snapshot(), before);

    const [cutOff] = await selectCutOff(sql, lease);
    assert.deepEqual([cutOff?.deliveryId, cutOff?.spent], [deliveryId, 1]);
    const ended = { attempt: first.attempt, next: FAILED, result: RESULT };
    assert.equal(await settleAttempt(sql, { cutOffBefore: lease }, ended), true);
    assert.equal(await settleAttempt(sql, { startedUnder: first.lease }, ended), false);
    await sql`update webhook_delivery set next_attempt_at = clock_timestamp() - interval '1 hour' where id = ${deliveryId}`;
    const { step } = await advanceLane(sql, lease, null, true);
    assert.deepEqual([step.attempt?.deliveryId, step.attempt?.attempt], [deliveryId, 2]);
    const again = delivered(step.attempt as Attempt);
    assert.equal((await advanceLane(sql, first.lease, again, true)).written, false);
    assert.equal(await settleAttempt(sql, { startedUnder: first.lease }, again), false);
    assert.deepEqual(await selectCutOff(sql, lease), [], 'its own attempt is not cut off');
    assert.equal((await advanceLane(sql, lease, again, false)).written, true);
    assert.equal((await advanceLane(sql, lease, again, false)).written, false, 'once');
  });

  test('a lease that has run out starts nothing, and writes what came of its last attempt while nobody else has it', async (t) => {
    const lanes = await startLanes(t);
    const id = await lanes.endpoint();
    await lanes.queue(id, 2);
    const { lease, attempt } = await open(lanes, id);
    await expire(lanes, id);
    const { written, step } = await advanceLane(lanes.sql, lease, delivered(attempt), true);
    assert.deepEqual([written, step], [true, { attempt: null, dueInMs: 0 }]);
  });

  test('who deletes the endpoint and who goes on in its lane never wait for each other in a circle', async (t) => {
    const lanes = await startLanes(t);
    for (let round = 0; round < 10; round++) {
      const id = await lanes.endpoint();
      await lanes.queue(id, 3);
      const { lease, attempt } = await open(lanes, id);
      await Promise.all([
        advanceLane(lanes.sql, lease, delivered(attempt), true),
        lanes.sql.begin((tx) => deleteWebhook(tx, lanes.accountId, id)),
      ]);
      assert.equal((await lanes.sql`select from webhook_delivery where webhook_id = ${id}`).length, 0);
    }
  });
});
