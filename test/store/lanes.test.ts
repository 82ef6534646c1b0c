import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LaneDesk } from '../../src/flows/laneDesk.ts';
import {
  advanceLane,
  advanceLanes,
  type LaneMove,
  LEASE_SECONDS,
  type MovedLane,
  type OpenedLane,
  openLanes,
} from '../../src/store/laneSteps.ts';
import {
  type Attempt,
  abandonLane,
  type EndedAttempt,
  type Lease,
  selectCutOff,
  settleAttempt,
} from '../../src/store/lanes.ts';
import { deleteWebhook } from '../../src/store/removedWebhooks.ts';
import type { Sql, Tx } from '../../src/store/sql.ts';
import { openLane, type QueuedLanes, startLanes } from '../support/queuedLanes.ts';

const DELIVERED = { status: 'delivered', nextAttemptDelayMs: null, freshBudget: false } as const;
const FAILED = { status: 'failed', nextAttemptDelayMs: 120_000, freshBudget: false } as const;
const RESULT = { statusCode: 200, error: null, durationMs: 7 };

const delivered = (attempt: EndedAttempt['attempt']): EndedAttempt => ({
  attempt,
  next: DELIVERED,
  result: RESULT,
});

/** Goes on in one lane, whose rows nobody has locked. */
async function advance(
  sql: Sql,
  lease: Lease,
  ended: EndedAttempt | null,
  mayStart: boolean,
): Promise<MovedLane> {
  const [moved] = await advanceLanes(sql, [{ lease, ended, mayStart }]);
  assert.ok(moved !== undefined && moved !== 'busy');
  return moved;
}
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
      const over = await advance(lanes.sql, lease, delivered(step.attempt), true);
      assert.deepEqual(over, { written: true, step: { attempt: null, dueInMs: null } });
      assert.equal(await leaseSeconds(lanes, id), null, 'given back');
    }
    assert.equal(await openLane(lanes.sql, id + 1), undefined);
  });

  test('who finds the first delivery locked waits for nobody, starts no other before it, and comes again soon', async (t) => {
    const lanes = await startLanes(t);
    const id = await lanes.endpoint();
    const [first = ''] = await lanes.queue(id, 2);
    const held = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const hold = lanes.sql.begin(async (tx) => {
      await tx`select from webhook_delivery where id = ${first} for update`;
      held.resolve();
      await released.promise;
    });
    await held.promise;
    const opened = await openLane(lanes.sql, id);
    assert.deepEqual(opened?.step, { attempt: null, dueInMs: 100 });
    assert.equal(await leaseSeconds(lanes, id), null, 'given back');
    released.resolve();
    await hold;
    const { attempt } = await open(lanes, id);
    assert.deepEqual([attempt.deliveryId, attempt.attempt], [first, 1]);
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
      const { written, step } = await advance(lanes.sql, lease, delivered(attempt), mayStart);
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
      const { step } = await advance(lanes.sql, lease, ended, true);
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
      const late = await advance(sql, first.lease, ended, true);
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
    const { step } = await advance(sql, lease, null, true);
    assert.deepEqual([step.attempt?.deliveryId, step.attempt?.attempt], [deliveryId, 2]);
    const again = delivered(step.attempt as Attempt);
    assert.equal((await advance(sql, first.lease, again, true)).written, false);
    assert.equal(await settleAttempt(sql, { startedUnder: first.lease }, again), false);
    assert.deepEqual(await selectCutOff(sql, lease), [], 'its own attempt is not cut off');
    assert.equal((await advance(sql, lease, again, false)).written, true);
    assert.equal((await advance(sql, lease, again, false)).written, false, 'once');
  });

  test('a lease that has run out starts nothing, and writes what came of its last attempt while nobody else has it', async (t) => {
    const lanes = await startLanes(t);
    const id = await lanes.endpoint();
    await lanes.queue(id, 2);
    const { lease, attempt } = await open(lanes, id);
    await expire(lanes, id);
    const { written, step } = await advance(lanes.sql, lease, delivered(attempt), true);
    assert.deepEqual([written, step], [true, { attempt: null, dueInMs: 0 }]);
  });

  test('who deletes the endpoint and who goes on in its lane never wait for each other in a circle', async (t) => {
    const lanes = await startLanes(t);
    for (let round = 0; round < 10; round++) {
      const id = await lanes.endpoint();
      await lanes.queue(id, 3);
      const { lease, attempt } = await open(lanes, id);
      await Promise.all([
        advanceLane(lanes.sql, { lease, ended: delivered(attempt), mayStart: true }),
        lanes.sql.begin((tx) => deleteWebhook(tx, lanes.accountId, id)),
      ]);
      assert.equal((await lanes.sql`select from webhook_delivery where webhook_id = ${id}`).length, 0);
    }
  });

  test('many go on together, each as alone: written, started, given back, fenced and gone in one statement', async (t) => {
    const lanes = await startLanes(t);
    const { sql } = lanes;
    const made = await Promise.all(Array.from({ length: 6 }, () => lanes.endpoint()));
    const ids = made.sort((a, b) => a - b);
    const [more = 0, last = 0, later = 0, fenced = 0, gone = 0, stopping = 0] = ids;
    for (const id of ids) await lanes.queue(id, id === more || id === stopping ? 2 : 1);
    const opened = await openLanes(sql, [99_999, ...ids]);
    assert.deepEqual(
      opened.map((lane) => lane?.step.attempt?.attempt),
      [undefined, 1, 1, 1, 1, 1, 1],
    );
    await expire(lanes, fenced);
    await openLane(sql, fenced);
    await sql.begin((tx) => deleteWebhook(tx, lanes.accountId, gone));
    const moves = opened.flatMap((lane): LaneMove[] => {
      if (lane?.step.attempt == null) return [];
      const { lease } = lane;
      const next = lease.webhookId === later ? FAILED : DELIVERED;
      const ended = { attempt: lane.step.attempt, next, result: RESULT };
      return [{ lease, ended, mayStart: lease.webhookId !== stopping }];
    });
    const moved = await advanceLanes(sql, moves.toReversed());
    const told = moved.toReversed().map((lane) => {
      assert.ok(lane !== 'busy');
      const { attempt } = lane.step;
      return [lane.written, attempt === null ? lane.step.dueInMs : `attempt ${attempt.attempt}`];
    });
    assert.ok(Number(told[2]?.[1]) > 100_000);
    assert.deepEqual(told, [
      [true, 'attempt 1'],
      [true, null],
      [true, told[2]?.[1]],
      [false, 0],
      [false, 0],
      [true, 0],
    ]);
    const leased = await sql<
      { id: number }[]
    >`select id from webhook where leased_until is not null order by id`;
    assert.deepEqual(
      leased.map(({ id }) => id),
      [more, fenced],
    );
    const statuses = await sql<{ webhook_id: number; status: string }[]>`
      select webhook_id, status from webhook_delivery where attempts > 0 order by webhook_id, id`;
    assert.deepEqual(
      statuses.map(({ webhook_id, status }) => `${webhook_id} ${status}`),
      [
        `${more} delivered`,
        `${more} pending`,
        `${last} delivered`,
        `${later} failed`,
        `${fenced} pending`,
        `${stopping} delivered`,
      ],
    );
  });

  for (const [what, lock] of [
    ['its endpoint', (tx: Tx, id: number) => tx`select from webhook where id = ${id} for update`],
    [
      'its delivery',
      (tx: Tx, id: number) => tx`select from webhook_delivery where webhook_id = ${id} for update`,
    ],
  ] as const) {
    test(`a lane of which somebody has locked ${what} holds up no other, and waits by itself`, async (t) => {
      const lanes = await startLanes(t);
      const ids = [await lanes.endpoint(), await lanes.endpoint()];
      for (const id of ids) await lanes.queue(id);
      const opened = (await openLanes(lanes.sql, ids)) as OpenedLane[];
      const moves = opened.map(({ lease, step }): LaneMove => {
        return { lease, ended: delivered(step.attempt as Attempt), mayStart: true };
      });
      const held = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      const hold = lanes.sql.begin(async (tx) => {
        await lock(tx, ids[0] as number);
        held.resolve();
        await released.promise;
      });
      await held.promise;
      const desk = new LaneDesk(lanes.sql);
      const [first, second] = moves.map((move) => desk.advance(move));
      assert.deepEqual(await Promise.race([first, second]), {
        written: true,
        step: { attempt: null, dueInMs: null },
      });
      assert.deepEqual((await advanceLanes(lanes.sql, moves)).at(0), 'busy');
      released.resolve();
      await hold;
      assert.deepEqual(await first, { written: true, step: { attempt: null, dueInMs: null } });
    });
  }
});
