import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { weekStartMs } from '../../src/lib/time.ts';
import { DELIVERIES, ensureWeeks } from '../../src/postgres/partitions.ts';
import { denial, webhookOwner } from '../support/webhooks/webhookOwner.ts';

const WEEK_MS = 7 * 86_400_000;

/** Nobody sends here: deliveries are in the state that a test puts them into. */
describe('POST /api/webhooks/{id}/replay', () => {
  const setup = webhookOwner();
  before(() => ensureWeeks(setup.sql, DELIVERIES, [weekStartMs(Date.now() - WEEK_MS)]));

  const insert = (
    webhookId: number,
    count: number,
    status: string,
    createdAt: string,
    token: number | null = null,
  ) =>
    setup.sql`
      insert into webhook_delivery (id, webhook_id, account_id, event_id, event_type, body, status, attempts,
        next_attempt_at, attempt_token, created_at)
      select 'dlv_' || md5(random()::text), w.id, w.account_id, 'evt_' || md5(random()::text), 'alarm', '{}', ${status}, 5,
        null, ${token}, ${createdAt}::timestamptz + n * interval '1 microsecond'
      from webhook w, generate_series(1, ${count}) n where w.id = ${webhookId}`;

  test('takes all that a single replay would take, in chunks, oldest first, and none twice', async () => {
    const owner = await setup.newOwner();
    const { id } = await owner.make({ url: 'https://hooks.example.com/', events: ['*'] });
    const other = await owner.make({ url: 'https://hooks.example.com/', events: ['*'] });
    const at = new Date(Date.now() - 60_000).toISOString();
    await insert(id, 2_400, 'exhausted', at);
    await insert(id, 300, 'failed', at);
    await insert(id, 20, 'delivered', at);
    await insert(id, 5, 'failed', at, 7);
    await insert(other.id, 9, 'failed', at);
    const replay = (body: unknown) => owner.call('POST', `/${id}/replay`, body);
    const first = await replay({ status: ['failed', 'exhausted'] });
    assert.deepEqual([first.status, first.body.data], [202, { requeued: 2_700 }]);
    const again = await replay({ status: ['failed', 'exhausted'] });
    assert.deepEqual(again.body.data, { requeued: 0 });
    const rows = await setup.sql<{ id: string }[]>`
      select id from webhook_delivery where webhook_id = ${id} and status = 'requeued' order by next_attempt_at, id`;
    const byAge = await setup.sql<{ id: string }[]>`
      select id from webhook_delivery where webhook_id = ${id} and status = 'requeued' order by created_at, id`;
    assert.equal(rows.length, 2_700);
    assert.deepEqual(rows, byAge);
    const left = await setup.sql<{ count: number }[]>`
      select count(*)::int as count from webhook_delivery where webhook_id = ${other.id} and status = 'failed'`;
    assert.equal(left[0]?.count, 9);
  });

  test('keeps to its window and states', async () => {
    const owner = await setup.newOwner();
    const { id } = await owner.make({ url: 'https://hooks.example.com/', events: ['*'] });
    const at = Math.floor(Date.now() / 1000) * 1000;
    for (const [n, status] of ['failed', 'exhausted', 'failed', 'failed'].entries()) {
      await insert(id, 1, status, new Date(at - (4 - n) * 60_000).toISOString());
    }
    const body = {
      status: ['failed'],
      from: new Date(at - 200_000).toISOString(),
      to: new Date(at - 120_000).toISOString(),
    };
    assert.deepEqual((await owner.call('POST', `/${id}/replay`, body)).body.data, { requeued: 1 });
  });

  test('refuses what it cannot read, and endpoints of others', async () => {
    const owner = await setup.newOwner();
    const { id } = await owner.make({ url: 'https://hooks.example.com/', events: ['*'] });
    for (const body of [
      {},
      { status: [] },
      { status: ['pending'] },
      { status: ['failed'], from: 'x', to: 1 },
      [],
    ]) {
      assert.equal(denial(await owner.call('POST', `/${id}/replay`, body)), '422 VALIDATION_ERROR');
    }
    const stranger = await setup.newOwner();
    const status = ['failed'];
    assert.equal(denial(await stranger.call('POST', `/${id}/replay`, { status })), '404 NOT_FOUND');
    assert.equal(denial(await owner.call('POST', '/x/replay', { status })), '400 BAD_REQUEST');
  });
});
