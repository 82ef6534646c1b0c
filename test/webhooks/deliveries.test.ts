import assert from 'node:assert/strict';
import { test } from 'node:test';
import { insertDeliveries } from '../../src/webhooks/deliveries.sql.ts';
import { deleteWebhook } from '../../src/webhooks/webhooks.sql.ts';
import { waitFor } from '../support/waitFor.ts';
import { startDeliveryDatabase } from '../support/webhooks/deliveryDatabase.ts';

const draft = (webhookId: number, n: number) => ({
  id: `dlv_${n}`,
  webhookId,
  eventId: `evt_${n}`,
  eventType: 'rfid' as const,
  body: '{}',
});

test('who deletes an endpoint waits for deliveries being queued to it, and takes them along', async (t) => {
  const database = await startDeliveryDatabase(t);
  const { sql, accountId } = database;
  const id = await database.endpoint();
  const queued = Promise.withResolvers<void>();
  const mayCommit = Promise.withResolvers<void>();
  const ingest = sql.begin(async (tx) => {
    await insertDeliveries(tx, [draft(id, 1)], 'new_events');
    queued.resolve();
    await mayCommit.promise;
  });
  await queued.promise;
  const deletion = sql.begin((tx) => deleteWebhook(tx, accountId, id));
  await waitFor(async () => {
    const waiting = await sql`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    return waiting.length === 1;
  });
  mayCommit.resolve();
  await ingest;
  assert.equal(await deletion, true);
  assert.equal((await sql`select from webhook_delivery`).length, 0);
});

test('deliveries are queued to endpoints that are there and active, in their order; a ping also to an inactive one', async (t) => {
  const database = await startDeliveryDatabase(t);
  const [active, inactive] = [await database.endpoint(), await database.endpoint({ active: false })];
  const drafts = [draft(inactive, 1), draft(active, 2), draft(99_999, 3), draft(active, 4)];
  const made = await database.sql.begin((tx) => insertDeliveries(tx, drafts, 'new_events'));
  assert.deepEqual(
    made.map(({ id }) => id),
    ['dlv_2', 'dlv_4'],
  );
  const pinged = await database.sql.begin((tx) => insertDeliveries(tx, [draft(inactive, 5)], 'test'));
  assert.deepEqual(
    pinged.map(({ id, status, attempts }) => [id, status, attempts]),
    [['dlv_5', 'pending', 0]],
  );
});
