import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import {
  countOutbox,
  deleteFinishedBatches,
  type FannedOut,
  fanOut,
  insertOutbox,
  type OutboxRow,
} from '../../src/webhooks/delivery/outbox.sql.ts';
import { pauseWebhooks, selectQuotaOwners } from '../../src/webhooks/pauses/pauses.sql.ts';
import { deleteWebhook } from '../../src/webhooks/webhooks.sql.ts';
import { type DeliveryDatabase, startDeliveryDatabase } from '../support/webhooks/deliveryDatabase.ts';

const CHUNK = 1_000;
const next = (sql: Sql, after = 0): Promise<FannedOut> => fanOut(sql, after);

async function empty(sql: Sql): Promise<number> {
  for (let chunks = 0; ; chunks++) if ((await next(sql)).done === 0) return chunks;
}

/** Leaves `count` events, named after the batch, for these shares; without places a share has all of them. */
async function fill(
  { sql }: DeliveryDatabase,
  batch: string,
  count: number,
  shares: readonly (Omit<OutboxRow, 'ordinals'> & { ordinals?: readonly number[] })[],
): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, n) => `evt_${batch}_${n}`);
  const all = ids.map((_, n) => n + 1);
  await sql.begin((tx) =>
    insertOutbox(
      tx,
      ids.map((eventId) => ({ eventId, type: 'rfid', body: `{"id":"${eventId}"}` })),
      shares.map((share) => ({ ordinals: all, ...share })),
    ),
  );
  return ids;
}

/** An account more, with endpoints. */
async function otherAccount(database: DeliveryDatabase, count: number) {
  const accountId = await database.account(`${Math.random()}@x`);
  const webhookIds: number[] = [];
  for (let n = 0; n < count; n++) webhookIds.push(await database.endpoint({}, accountId));
  return { accountId, webhookIds };
}

/** The events of each endpoint in the order in which it is sent them. */
async function queues(sql: Sql): Promise<Map<number, string[]>> {
  const rows = await sql<{ webhook_id: number; event_id: string }[]>`
    select webhook_id, event_id from webhook_delivery order by next_attempt_at, created_at, id`;
  const found = new Map<number, string[]>();
  for (const row of rows) found.set(row.webhook_id, [...(found.get(row.webhook_id) ?? []), row.event_id]);
  return found;
}

const endpoints = async (database: DeliveryDatabase, count: number): Promise<number[]> => {
  const ids: number[] = [];
  for (let n = 0; n < count; n++) ids.push(await database.endpoint());
  return ids;
};

describe('the outbox', () => {
  test('becomes one delivery for each event and endpoint of a share, in their order, in chunks', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { sql, accountId } = database;
    const [a = 0, b = 0, c = 0] = await endpoints(database, 3);
    const first = await fill(database, 'first', 700, [
      { accountId, webhookIds: [a, b] },
      { accountId, ordinals: [2, 5, 699], webhookIds: [c] },
    ]);
    const second = await fill(database, 'second', 50, [{ accountId, webhookIds: [c, a] }]);
    assert.equal(await countOutbox(sql), 1_503);
    const one = await next(sql);
    assert.deepEqual([one.done, [...one.made.keys()], one.upToAccountId], [CHUNK, [a, b], null]);
    assert.equal(await countOutbox(sql), 503);
    assert.equal(await empty(sql), 1);
    assert.deepEqual(
      await queues(sql),
      new Map([
        [a, [...first, ...second]],
        [b, first],
        [c, [first[1], first[4], first[698], ...second]],
      ]),
    );
    const rows = await sql<{ event_id: string; body: string }[]>`select event_id, body from webhook_delivery`;
    for (const row of rows) assert.equal(row.body, `{"id":"${row.event_id}"}`);
    await deleteFinishedBatches(sql);
    assert.equal((await sql`select from webhook_outbox_batch`).length, 0);
    assert.equal(await countOutbox(sql), 0);
  });

  test('gives every account its part of a chunk, however much another has waiting', async (t) => {
    const database = await startDeliveryDatabase(t);
    const many = await endpoints(database, 100);
    for (let n = 0; n < 4; n++) {
      await fill(database, `flood${n}`, 250, [{ accountId: database.accountId, webhookIds: many }]);
    }
    const others = [await otherAccount(database, 1), await otherAccount(database, 1)];
    for (const [n, other] of others.entries()) await fill(database, `other${n}`, 3, [other]);
    const { done, made } = await next(database.sql);
    assert.equal(done, 333 + 3 + 3);
    for (const other of others) assert.ok(made.has(other.webhookIds[0] ?? 0));
  });

  test('goes round all accounts, also when they are more than a chunk takes', async (t) => {
    const database = await startDeliveryDatabase(t);
    const accounts = [];
    for (let n = 0; n < 45; n++) accounts.push(await otherAccount(database, 1));
    for (const account of accounts) await fill(database, `of${account.accountId}`, 2, [account]);
    const seen: number[] = [];
    let after: number | null = 0;
    for (let chunks = 1; after !== null; chunks++) {
      const made: FannedOut = await next(database.sql, after);
      seen.push(...made.made.keys());
      after = made.upToAccountId;
      assert.ok(chunks <= 3);
    }
    assert.deepEqual(
      seen,
      accounts.flatMap((account) => account.webhookIds),
    );
  });

  test('is emptied by several at once as by one: each delivery once, each endpoint in order', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { url, sql, accountId } = database;
    const [a = 0, b = 0] = await endpoints(database, 2);
    const other = await otherAccount(database, 2);
    const expected: string[] = [];
    for (let n = 0; n < 12; n++) {
      const shares = [{ accountId, webhookIds: [a, b] }, other];
      expected.push(...(await fill(database, `batch${n}`, 100, n % 2 === 0 ? shares : shares.toReversed())));
    }
    const pods = Array.from({ length: 4 }, (_, n) => openSql(url, { maxConnections: 1, name: `pod ${n}` }));
    t.after(() => Promise.all(pods.map((pod) => pod.end())));
    await Promise.all(pods.map(empty));
    assert.equal(await empty(sql), 0);
    assert.deepEqual(await queues(sql), new Map([a, b, ...other.webhookIds].map((id) => [id, expected])));
  });

  test('makes nothing for an endpoint that is gone; one that was made inactive since finds its events when it goes on', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { sql, accountId } = database;
    const [gone = 0, inactive = 0, there = 0] = await endpoints(database, 3);
    const events = await fill(database, 'x', 4, [{ accountId, webhookIds: [gone, inactive, there] }]);
    assert.equal(await sql.begin((tx) => deleteWebhook(tx, accountId, gone)), true);
    await sql`update webhook set active = false where id = ${inactive}`;
    await empty(sql);
    assert.deepEqual(
      await queues(sql),
      new Map([
        [inactive, events],
        [there, events],
      ]),
    );
    assert.equal(await countOutbox(sql), 0);
  });

  test('makes nothing more for an endpoint that the service has paused since, and what it lacks is known', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { sql, accountId } = database;
    const [paused = 0, there = 0] = await endpoints(database, 2);
    await sql`update webhook set created_at = created_at - interval '1 hour'`;
    const events = await fill(database, 'x', 4, [{ accountId, webhookIds: [paused, there] }]);
    const [owner] = await selectQuotaOwners(sql, [paused]);
    assert.ok(owner);
    await pauseWebhooks(sql, owner, [{ webhookId: paused, reason: 'account_quota' }]);
    await empty(sql);
    const made = await queues(sql);
    assert.equal(made.get(paused), undefined);
    assert.deepEqual(
      made.get(there)?.filter((id) => events.includes(id)),
      events,
    );
    assert.equal(await countOutbox(sql), 0, 'nothing of it is left');
    const leftOut = await sql`
      select from webhook_left_out where webhook_id = ${paused} and from_at < now() - interval '30 seconds'`;
    assert.equal(leftOut.length, 1, 'from before the events that were waiting');
  });

  test('forgets a chunk that fails, as if it had never been asked for', async (t: TestContext) => {
    const database = await startDeliveryDatabase(t);
    const { sql, accountId } = database;
    const [a = 0] = await endpoints(database, 1);
    const events = await fill(database, 'x', 30, [{ accountId, webhookIds: [a] }]);
    await sql.unsafe("alter table webhook_delivery add constraint planted check (body not like '%_29\"}')");
    await assert.rejects(next(sql));
    assert.deepEqual([await countOutbox(sql), (await queues(sql)).size], [30, 0]);
    await sql.unsafe('alter table webhook_delivery drop constraint planted');
    await empty(sql);
    assert.deepEqual((await queues(sql)).get(a), events);
  });
});
