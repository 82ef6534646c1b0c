import assert from 'node:assert/strict';
import { test } from 'node:test';
import { insertDeliveries } from '../../src/webhooks/delivery/claims.sql.ts';
import { deleteWebhook } from '../../src/webhooks/webhooks.sql.ts';
import { waitFor } from '../support/waitFor.ts';
import { startDeliveryDatabase } from '../support/webhooks/deliveryDatabase.ts';

test('who deletes an endpoint waits for deliveries being queued to it, and takes them along', async (t) => {
  const database = await startDeliveryDatabase(t);
  const { sql, accountId } = database;
  const id = await database.endpoint();
  const queued = Promise.withResolvers<void>();
  const mayCommit = Promise.withResolvers<void>();
  const ingest = sql.begin(async (tx) => {
    const draft = { webhookId: id, eventId: 'evt_1', eventType: 'rfid', body: '{}' } as const;
    await insertDeliveries(tx, [draft], 'new_events');
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
