import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claimDeliveries } from '../../src/webhooks/delivery/claims.sql.ts';
import {
  countWaiting,
  selectDueEndpoints,
  selectDueInMs,
} from '../../src/webhooks/delivery/dueEndpoints.sql.ts';
import {
  claimEndpoint,
  type DeliveryDatabase,
  startDeliveryDatabase,
} from '../support/webhooks/deliveryDatabase.ts';

/** What the schedule should hold, by endpoint. */
const due = async ({ sql }: DeliveryDatabase) =>
  new Map(
    (await selectDueEndpoints(sql, 0, 1_000)).endpoints.map(({ webhookId, dueInMs }) => [webhookId, dueInMs]),
  );

describe('what is due', () => {
  test('now, later, nowhere', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { sql } = database;
    const [now, later, idle] = [
      await database.endpoint(),
      await database.endpoint(),
      await database.endpoint(),
    ];
    for (const id of [now, later]) await database.queue(id);
    await sql`update webhook_delivery set next_attempt_at = clock_timestamp() + interval '1 hour' where webhook_id = ${later}`;
    const found = await due(database);
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
    const { oldestDueMs } = await selectDueEndpoints(sql, 0, 1_000);
    assert.ok(oldestDueMs >= 0 && oldestDueMs < 60_000);
  });

  /** A delivery by its type and status, its endpoint and account active or not: is it sent? */
  const HELD: readonly [string, string, active: boolean, ownerActive: boolean, isSent: boolean][] = [
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
  test('only what is sent now, to a claim as to a sweep', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { sql } = database;
    for (const [type, status, active, ownerActive, sent] of HELD) {
      const what = `${type} ${status}, endpoint ${active}, account ${ownerActive}`;
      const id = await database.endpoint();
      await database.queue(id);
      await sql`update webhook_delivery set event_type = ${type}, status = ${status} where webhook_id = ${id}`;
      await sql`update webhook set active = ${active} where id = ${id}`;
      await sql`update account set active = ${ownerActive}`;
      assert.deepEqual([...(await due(database))], sent ? [[id, 0]] : [], what);
      assert.equal(await selectDueInMs(sql, id), sent ? 0 : null, what);
      const opened = await claimEndpoint(sql, id);
      assert.equal(opened?.next.attempt?.attempt, sent ? 1 : undefined, what);
      if (opened !== undefined && !sent) {
        assert.equal(opened.next.dueInMs, null, what);
        const again = { webhookId: id, lease: opened.lease, ended: null, mayStart: true };
        assert.deepEqual(await claimDeliveries(sql, [again]), [opened]);
      }
      await sql`delete from webhook_delivery`;
      await sql`update account set active = true`;
    }
  });

  test('part by part, whatever waits at each endpoint', async (t) => {
    const database = await startDeliveryDatabase(t);
    const ids: number[] = [];
    for (let n = 0; n < 5; n++) ids.push(await database.endpoint());
    for (const id of ids.filter((_, n) => n !== 2)) await database.queue(id, 3);
    const [first = 0, second = 0, , fourth = 0, fifth = 0] = ids;
    await database.sql`update webhook set active = false where id = ${second}`;
    const parts: [ids: number[], nextAfterId: number][] = [];
    let afterId = 0;
    do {
      const { endpoints: part, nextAfterId } = await selectDueEndpoints(database.sql, afterId, 2);
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
    const database = await startDeliveryDatabase(t);
    const { sql } = database;
    const id = await database.endpoint();
    await database.queue(id, 1_000);
    await sql`update webhook set active = false`;
    assert.equal(await selectDueInMs(sql, id), null);
    const [ping = ''] = await database.queue(await database.endpoint());
    await sql`update webhook_delivery set webhook_id = ${id}, event_type = 'ping' where id = ${ping}`;
    assert.equal((await due(database)).get(id), 0);
    assert.equal((await claimEndpoint(sql, id))?.next.attempt?.deliveryId, ping);
  });

  test('at once where a lease or an attempt was left behind, also of what is held', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { sql } = database;
    const [ranOut, given, leased] = [
      await database.endpoint(),
      await database.endpoint(),
      await database.endpoint(),
    ];
    for (const id of [ranOut, given, leased]) {
      await database.queue(id);
      await claimEndpoint(sql, id);
    }
    await sql`update webhook set active = false`;
    assert.deepEqual([...(await due(database))], []);
    await sql`update webhook set leased_until = clock_timestamp() - interval '1 ms' where id = ${ranOut}`;
    await sql`update webhook set leased_until = null where id = ${given}`;
    assert.deepEqual(
      [...(await due(database))].sort(([a], [b]) => a - b),
      [
        [ranOut, 0],
        [given, 0],
      ],
    );
  });
});
