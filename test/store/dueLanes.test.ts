import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { countWaiting, selectDueInMs, selectDueLanes } from '../../src/store/dueLanes.ts';
import { advanceLane } from '../../src/store/laneSteps.ts';
import { openLane, type QueuedLanes, startLanes } from '../support/queuedLanes.ts';

/** What the schedule should hold, by endpoint. */
const due = async ({ sql }: QueuedLanes) =>
  new Map((await selectDueLanes(sql, 0, 1_000)).lanes.map(({ webhookId, dueInMs }) => [webhookId, dueInMs]));

describe('what is due', () => {
  test('now, later, nowhere', async (t) => {
    const lanes = await startLanes(t);
    const { sql } = lanes;
    const [now, later, idle] = [await lanes.endpoint(), await lanes.endpoint(), await lanes.endpoint()];
    for (const id of [now, later]) await lanes.queue(id);
    await sql`update webhook_delivery set next_attempt_at = clock_timestamp() + interval '1 hour' where webhook_id = ${later}`;
    const found = await due(lanes);
    assert.deepEqual([...found.keys()].sort(), [now, later].sort());
    for (const dueInMs of [found.get(later) ?? 0, (await selectDueInMs(sql, later)) ?? 0]) {
      assert.ok(dueInMs > 3_500_000 && dueInMs <= 3_600_000);
    }
    assert.equal(found.get(now), 0);
    assert.deepEqual(
      [await selectDueInMs(sql, now), await selectDueInMs(sql, idle), await selectDueInMs(sql, 99_999)],
      [0, null, null],
    );
    assert.deepEqual([await countWaiting(sql, 10), await countWaiting(sql, 1)], [2, 1]);
    const { oldestDueMs } = await selectDueLanes(sql, 0, 1_000);
    assert.ok(oldestDueMs >= 0 && oldestDueMs < 60_000);
  });

  /** A delivery by its type and status, its endpoint and account active or not: is it sent? */
  const HELD: readonly [
    type: string,
    status: string,
    active: boolean,
    ownerActive: boolean,
    sent: boolean,
  ][] = [
    ['rfid', 'pending', true, true, true],
    ['rfid', 'pending', false, true, false],
    ['rfid', 'requeued', false, true, false],
    ['rfid', 'failed', false, true, false],
    ['ping', 'pending', false, true, true],
    ['ping', 'failed', false, true, true],
    ['ping', 'requeued', false, true, false],
    ['ping', 'requeued', true, true, true],
    ['rfid', 'pending', true, false, false],
    ['rfid', 'requeued', true, false, false],
    ['ping', 'pending', true, false, false],
  ];
  for (const [type, status, active, ownerActive, sent] of HELD) {
    const name = `a ${type} that is ${status}, endpoint ${active ? 'active' : 'inactive'}, account ${ownerActive ? 'active' : 'deactivated'}`;
    test(`${name}: ${sent ? 'sent' : 'held'}`, async (t) => {
      const lanes = await startLanes(t);
      const { sql } = lanes;
      const id = await lanes.endpoint();
      await lanes.queue(id);
      await sql`update webhook_delivery set event_type = ${type}, status = ${status}`;
      await sql`update webhook set active = ${active}`;
      await sql`update account set active = ${ownerActive}`;
      assert.deepEqual([...(await due(lanes))], sent ? [[id, 0]] : []);
      assert.equal(await selectDueInMs(sql, id), sent ? 0 : null);
      const opened = await openLane(sql, id);
      assert.equal(opened?.step.attempt?.attempt, sent ? 1 : undefined);
      if (opened === undefined || sent) return;
      assert.deepEqual(opened.step, { attempt: null, dueInMs: null });
      assert.deepEqual(
        (await advanceLane(sql, { lease: opened.lease, ended: null, mayStart: true })).step,
        opened.step,
      );
    });
  }

  test('part by part, whatever waits at each endpoint', async (t) => {
    const lanes = await startLanes(t);
    const ids: number[] = [];
    for (let n = 0; n < 5; n++) ids.push(await lanes.endpoint());
    for (const id of ids.filter((_, n) => n !== 2)) await lanes.queue(id, 3);
    const [first = 0, second = 0, , fourth = 0, fifth = 0] = ids;
    await lanes.sql`update webhook set active = false where id = ${second}`;
    const parts: [ids: number[], nextAfterId: number][] = [];
    let afterId = 0;
    do {
      const { lanes: part, nextAfterId } = await selectDueLanes(lanes.sql, afterId, 2);
      parts.push([part.map(({ webhookId }) => webhookId), nextAfterId]);
      afterId = nextAfterId;
    } while (afterId !== 0);
    assert.deepEqual(parts, [
      [[first], second],
      [[fourth, fifth], fifth],
      [[], 0],
    ]);
  });

  test('a test of an inactive endpoint, though much more is held there than is looked through', async (t) => {
    const lanes = await startLanes(t);
    const { sql } = lanes;
    const id = await lanes.endpoint();
    await lanes.queue(id, 1_000);
    await sql`update webhook set active = false`;
    assert.equal(await selectDueInMs(sql, id), null);
    const [ping = ''] = await lanes.queue(await lanes.endpoint());
    await sql`update webhook_delivery set webhook_id = ${id}, event_type = 'ping' where id = ${ping}`;
    assert.equal((await due(lanes)).get(id), 0);
    assert.equal((await openLane(sql, id))?.step.attempt?.deliveryId, ping);
  });

  test('at once where a lease or an attempt was left behind, also of what is held', async (t) => {
    const lanes = await startLanes(t);
    const { sql } = lanes;
    const [ranOut, given, leased] = [await lanes.endpoint(), await lanes.endpoint(), await lanes.endpoint()];
    for (const id of [ranOut, given, leased]) {
      await lanes.queue(id);
      await openLane(sql, id);
    }
    await sql`update webhook set active = false`;
    assert.deepEqual([...(await due(lanes))], []);
    await sql`update webhook set leased_until = clock_timestamp() - interval '1 ms' where id = ${ranOut}`;
    await sql`update webhook set leased_until = null where id = ${given}`;
    assert.deepEqual(
      [...(await due(lanes))].sort(([a], [b]) => a - b),
      [
        [ranOut, 0],
        [given, 0],
      ],
    );
  });
});
