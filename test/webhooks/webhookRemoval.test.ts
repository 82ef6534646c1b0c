import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EventCuts } from '../../src/events/eventPartitions.sql.ts';
import { tidy } from '../../src/housekeeping.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { removeDeliveries, removeWebhooks, selectRemovedWebhooks } from '../../src/webhooks/webhooks.sql.ts';
import { waitFor } from '../support/waitFor.ts';
import { webhookOwner } from '../support/webhooks/webhookOwner.ts';
import { endpointBody } from '../support/webhooks/webhooks.ts';

const DELIVERIES = 3_500;
/** What one statement removes. */
const PIECE = 1_000;

const setup = webhookOwner();

/** An endpoint with many deliveries: exhausted, delivered and waiting. */
async function bigEndpoint(): Promise<number> {
  const { id } = await setup.owner.make(endpointBody('https://hooks.example.com/'));
  await setup.sql`
    insert into webhook_delivery (id, webhook_id, account_id, event_id, event_type, body, status, next_attempt_at)
    select 'dlv_' || md5(w.id || ' ' || n), w.id, w.account_id, 'evt_' || md5('e' || n), 'rfid', '{}',
      (array['exhausted', 'delivered', 'pending'])[1 + n % 3], case when n % 3 = 2 then now() end
    from webhook w, generate_series(1, ${DELIVERIES}::int) n where w.id = ${id}`;
  return id;
}
const rowsOf = async (id: number): Promise<number> =>
  (await setup.sql`select from webhook_delivery where webhook_id = ${id}`).length;
const nothing = { info: () => undefined, warn: () => undefined };

describe('an endpoint that is deleted with more deliveries than one transaction may remove', () => {
  test('is gone at once, and so is all that its owner sees of it; another is untouched', async () => {
    const { owner, sql } = setup;
    const [id, other] = [await bigEndpoint(), await bigEndpoint()];
    const [letter] = (await owner.call('GET', '/dead-letter/list')).body.data;
    const [own] = await sql<{ id: string }[]>`
      select id from webhook_delivery where webhook_id = ${id} and status = 'exhausted' limit 1`;
    assert.ok(letter);
    assert.equal((await owner.call('DELETE', `/${id}`)).status, 204);
    assert.equal(await rowsOf(id), DELIVERIES - PIECE, 'the answer waits for one piece at most');
    for (const path of [`/${id}`, `/${id}/deliveries`])
      assert.equal((await owner.call('GET', path)).status, 404, path);
    const left = await sql<{ id: string }[]>`
      select id from webhook_delivery where webhook_id = ${id} and status = 'exhausted' limit 1`;
    assert.ok(own && left[0]);
    assert.equal((await owner.replay(left[0].id)).status, 404);
    const letters = (await owner.call('GET', '/dead-letter/list?limit=200')).body.data;
    assert.deepEqual([...new Set(letters.map((each: { webhook_id: number }) => each.webhook_id))], [other]);
    const { total, exhausted } = (await owner.call('GET', '/metrics/summary')).body.data;
    const thirds = Math.floor(DELIVERIES / 3);
    assert.deepEqual([total, exhausted], [DELIVERIES, thirds]);
    await tidy({ sql, clock: Date.now, eventRetentionDays: 730, eventCuts: new EventCuts(), log: nothing });
    assert.deepEqual([await rowsOf(id), await rowsOf(other)], [0, DELIVERIES]);
    assert.deepEqual(await selectRemovedWebhooks(sql), []);
    assert.deepEqual((await owner.call('GET', '/metrics/summary')).body.data.total, DELIVERIES);
    await owner.call('DELETE', `/${other}`);
    await removeWebhooks(sql, () => false);
  });

  test('is removed by the next round when the pod that removes it is killed in the middle, or stops', async () => {
    const { owner, sql, url } = setup;
    const id = await bigEndpoint();
    await owner.call('DELETE', `/${id}`);
    const victim = openSql(url, { maxConnections: 1, name: 'victim' });
    const removed = Promise.withResolvers<void>();
    const killed = victim.begin(async (tx) => {
      await removeDeliveries(tx, id);
      removed.resolve();
      await new Promise(() => undefined);
    });
    killed.catch(() => undefined); // its session is cut off below
    await removed.promise;
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'victim'`;
    await waitFor(
      async () => (await sql`select from pg_stat_activity where application_name = 'victim'`).length === 0,
    );
    assert.equal(await rowsOf(id), DELIVERIES - PIECE);
    let asked = 0;
    await removeWebhooks(sql, () => asked++ > 0);
    assert.equal(await rowsOf(id), DELIVERIES - 2 * PIECE);
    assert.deepEqual(await selectRemovedWebhooks(sql), [id]);
    await removeWebhooks(sql, () => false);
    assert.equal(await rowsOf(id), 0);
    assert.deepEqual(await selectRemovedWebhooks(sql), []);
  });

  test('is removed but for a delivery that is locked, which goes in a later round', async () => {
    const { owner, sql } = setup;
    const id = await bigEndpoint();
    await owner.call('DELETE', `/${id}`);
    await sql.begin(async (tx) => {
      await tx`select from webhook_delivery where webhook_id = ${id} limit 1 for update`;
      await removeWebhooks(sql, () => false);
    });
    assert.equal(await rowsOf(id), 1);
    await removeWebhooks(sql, () => false);
    assert.deepEqual([await rowsOf(id), await selectRemovedWebhooks(sql)], [0, []]);
  });
});
