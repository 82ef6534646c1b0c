import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DAY_MS, weekStartMs } from '../../src/lib/time.ts';
import { DELIVERIES, ensureWeeks } from '../../src/postgres/partitions.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import type { Reply } from '../support/pod.ts';
import { denial, webhookOwner } from '../support/webhooks/webhookOwner.ts';
import type { WebhookApi, WireDelivery } from '../support/webhooks/webhooks.ts';

const STATUSES = ['pending', 'delivered', 'failed', 'exhausted', 'requeued'] as const;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Nobody sends here: deliveries are in the state that a test puts them into. */
describe('deliveries of webhooks', () => {
  const setup = webhookOwner();
  let sql: Sql;
  before(async () => {
    ({ sql } = setup);
    await ensureWeeks(sql, DELIVERIES, [weekStartMs(Date.now() - 7 * DAY_MS)]); // for deliveries of yesterday
  });

  const newEndpoint = (api: WebhookApi, others: object = {}) =>
    api.make({ url: 'https://hooks.example.com/', events: ['*'], ...others });
  /** Of a new owner. */
  const newEndpointOfItsOwn = async () => {
    const owner = await setup.newOwner();
    return { owner, id: (await newEndpoint(owner)).id };
  };
  const idsOf = ({ body }: Reply): string[] => body.data.map((each: WireDelivery) => each.id);
  /** Pings, oldest first, `secondsApart`, in the given states. */
  const newDeliveries = async (api: WebhookApi, id: number, statuses: readonly string[]) => {
    const made: string[] = [];
    for (const [n, status] of statuses.entries()) {
      const { id: deliveryId } = await api.ping(id);
      made.push(deliveryId);
      await sql`
        update webhook_delivery set status = ${status}, attempts = ${n}, last_duration_ms = ${n * 10},
          next_attempt_at = case when ${status} in ('pending', 'requeued') then clock_timestamp() end,
          created_at = date_trunc('milliseconds', clock_timestamp()) - make_interval(secs => ${statuses.length - n})
        where id = ${deliveryId}`;
    }
    return made;
  };

  test('are made by the test route: a ping, answered 202 with every field, also of an inactive endpoint or one that did not ask for it', async () => {
    const owner = await setup.newOwner();
    for (const others of [{}, { active: false }, { events: ['rfid'] }]) {
      const { id } = await newEndpoint(owner, others);
      const reply = await owner.call('POST', `/${id}/test`);
      assert.equal(reply.status, 202);
      const { id: deliveryId, event_id, created_at, next_attempt_at, ...fields } = reply.body.data;
      assert.match(deliveryId, /^dlv_[0-9a-f]{32}$/);
      assert.match(event_id, /^evt_[0-9a-f]+$/);
      assert.match(created_at, ISO);
      assert.match(next_attempt_at, ISO);
      const unsent = { last_status_code: null, last_error: null, last_duration_ms: null, delivered_at: null };
      assert.deepEqual(fields, {
        webhook_id: id,
        event_type: 'ping',
        status: 'pending',
        attempts: 0,
        ...unsent,
      });
      assert.deepEqual(reply.body.meta, {});
      assert.deepEqual(await owner.deliveries(id), [reply.body.data]);
      const [row] = await sql<{ body: string }[]>`select body from webhook_delivery where id = ${deliveryId}`;
      const { data, ...message } = JSON.parse(row?.body ?? '');
      assert.deepEqual(message, { id: event_id, type: 'ping', created_at: message.created_at });
      assert.match(message.created_at, ISO);
      assert.deepEqual([typeof data.message, data.webhook_id, Object.keys(data).length], ['string', id, 2]);
    }
  });

  test('are listed newest first, by state, a page at a time', async () => {
    const { owner, id } = await newEndpointOfItsOwn();
    const made = await newDeliveries(owner, id, [...STATUSES, ...STATUSES]);
    const newest = made.toReversed();
    for (const [query, expected, limit, offset] of [
      ['', newest, 50, 0],
      ['?status=', newest, 50, 0],
      ['?limit=3&offset=8', newest.slice(8), 3, 8],
      ...STATUSES.map((status, n) => [`?status=${status}`, [made[5 + n], made[n]], 50, 0] as const),
      ['?status=failed&limit=1&offset=1', [made[2]], 1, 1],
    ] as const) {
      const reply = await owner.call('GET', `/${id}/deliveries${query}`);
      assert.deepEqual(idsOf(reply), expected, query);
      assert.deepEqual(reply.body.meta, { pagination: { limit, offset, count: expected.length } });
    }
    for (const query of ['?status=unknown', '?status=failed,pending', '?status=failed&status=failed'])
      assert.equal(denial(await owner.call('GET', `/${id}/deliveries${query}`)), '400 BAD_REQUEST', query);
    const other = await newEndpoint(owner);
    const [dead] = await newDeliveries(owner, other.id, ['exhausted']);
    for (const [query, expected] of [
      ['', [dead, made[8], made[3]].toSorted()],
      ['?limit=1&offset=2', [made[3]]],
      ['?limit=0', [idsOf(await owner.call('GET', '/dead-letter/list'))[0]]],
    ] as const) {
      const reply = await owner.call('GET', `/dead-letter/list${query}`);
      const ids = idsOf(reply);
      assert.deepEqual(query === '' ? ids.toSorted() : ids, expected, query);
      for (const each of reply.body.data) assert.equal(each.status, 'exhausted');
    }
  });

  test('are listed by their time of creation, both ends included', async () => {
    const { owner, id } = await newEndpointOfItsOwn();
    await newDeliveries(owner, id, ['exhausted', 'exhausted', 'exhausted', 'exhausted', 'exhausted']);
    for (const path of [`/${id}/deliveries`, '/dead-letter/list']) {
      const { body } = await owner.call('GET', path);
      const [, second, , fourth] = body.data as { id: string; created_at: string }[];
      const found = idsOf(
        await owner.call('GET', `${path}?from=${fourth?.created_at}&to=${second?.created_at}`),
      );
      assert.deepEqual(found, idsOf({ body } as Reply).slice(1, 4));
      assert.equal(denial(await owner.call('GET', `${path}?from=yesterday`)), '400 BAD_REQUEST');
    }
  });

  test('of equal times are listed by id, the higher first', async () => {
    const { owner, id } = await newEndpointOfItsOwn();
    const made = await newDeliveries(owner, id, ['exhausted', 'exhausted', 'exhausted']);
    await sql`update webhook_delivery set created_at = date_trunc('hour', clock_timestamp()) where webhook_id = ${id}`;
    const expected = made.toSorted().reverse();
    assert.deepEqual(idsOf(await owner.call('GET', `/${id}/deliveries`)), expected);
    assert.deepEqual(idsOf(await owner.call('GET', '/dead-letter/list')), expected);
  });

  describe('are replayed', () => {
    for (const status of STATUSES) {
      const isAllowed = status === 'failed' || status === 'exhausted';
      test(`${isAllowed ? 'at once, with their attempts kept' : 'not at all, with 400'}, when they are ${status}`, async () => {
        const { owner, id } = await newEndpointOfItsOwn();
        const [, , deliveryId = ''] = await newDeliveries(owner, id, ['failed', 'failed', status]);
        const before = (await owner.deliveries(id)).find((each) => each.id === deliveryId);
        const reply = await owner.replay(deliveryId);
        const after = (await owner.deliveries(id)).find((each) => each.id === deliveryId);
        if (!isAllowed) {
          assert.equal(denial(reply), '400 BAD_REQUEST');
          assert.deepEqual(after, before);
          return;
        }
        assert.equal(reply.status, 202);
        assert.deepEqual(reply.body, { data: after, meta: {} });
        assert.match(after?.next_attempt_at ?? '', ISO);
        assert.deepEqual({ ...after, next_attempt_at: null }, { ...before, status: 'requeued' });
        assert.equal(denial(await owner.replay(deliveryId)), '400 BAD_REQUEST', 'once is enough');
        const rows = await sql`select 1 from webhook_delivery where id = ${deliveryId} and spent = 0`;
        assert.equal(rows.length, 1);
      });
    }

    test('not while an attempt is in flight, with 400', async () => {
      const { owner, id } = await newEndpointOfItsOwn();
      const [deliveryId = ''] = await newDeliveries(owner, id, ['failed']);
      await sql`update webhook_delivery set attempt_token = 1 where id = ${deliveryId}`;
      assert.equal(denial(await owner.replay(deliveryId)), '400 BAD_REQUEST');
      assert.equal((await owner.deliveries(id))[0]?.status, 'failed');
    });
  });

  test('of the last 24 hours of the account are counted in the summary', async () => {
    const owner = await setup.newOwner();
    const counts = { total: 0, delivered: 0, failed: 0, exhausted: 0, pending: 0, attempts: 0 };
    const durations = { p50: null, p95: null, p99: null };
    const empty = { window_hours: 24, ...counts, success_rate: null, duration_ms: durations };
    assert.deepEqual((await owner.call('GET', '/metrics/summary')).body, { data: empty, meta: {} });
    const [a, b] = [await newEndpoint(owner), await newEndpoint(owner)];
    const [old] = await newDeliveries(owner, a.id, [...STATUSES, 'delivered', 'delivered', 'delivered']);
    await newDeliveries(owner, b.id, ['delivered', 'exhausted']);
    // Out of the window, and of another account.
    await sql`update webhook_delivery set created_at = created_at - interval '24 hours' where id = ${old ?? ''}`;
    const stranger = await newEndpointOfItsOwn();
    await newDeliveries(stranger.owner, stranger.id, ['delivered']);
    assert.deepEqual((await owner.call('GET', '/metrics/summary')).body.data, {
      ...empty,
      ...{ total: 9, delivered: 5, failed: 1, exhausted: 2, pending: 1, attempts: 29, success_rate: 5 / 7 },
      duration_ms: { p50: 30, p95: 70, p99: 70 },
    });
  });
});
