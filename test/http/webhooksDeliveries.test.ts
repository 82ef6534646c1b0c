import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DELIVERIES, ensureWeeks, weekStartMs } from '../../src/store/partitions.ts';
import { openSql, type Sql } from '../../src/store/sql.ts';
import { adminOf } from '../support/admin.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { type WebhookApi, type WireDelivery, webhookApi, webhookEnv } from '../support/webhooks.ts';

const STATUSES = ['pending', 'delivered', 'failed', 'exhausted', 'requeued'] as const;
const DAY_MS = 86_400_000;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Nobody sends here: deliveries are in the state that a test puts them into. */
describe('deliveries of webhooks over HTTP', () => {
  let pod: Pod;
  let sql: Sql;
  let admin: ReturnType<typeof adminOf>;

  before(async () => {
    const { url } = await createDatabase();
    admin = adminOf(url);
    pod = await startPod(url, { env: webhookEnv(60_000, { ROLES: 'api' }) });
    sql = openSql(url, { maxConnections: 2, name: 'test' });
    await ensureWeeks(sql, DELIVERIES, [weekStartMs(Date.now() - 7 * DAY_MS)]); // for deliveries of yesterday
  });
  after(async () => {
    await sql.end();
    await pod.stop();
  });

  let accounts = 0;
  const newOwner = async (): Promise<WebhookApi> => {
    const email = `owner${accounts++}@example.com`;
    await admin.account(email);
    return webhookApi(pod.api, (await admin.key(email)).key);
  };
  const newEndpoint = (api: WebhookApi, others: object = {}) =>
    api.make({ url: 'https://hooks.example.com/', events: ['*'], ...others });
  const refusal = ({ status, body }: Reply): string => `${status} ${body.error.code}`;
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

  test('a test delivery is a ping: 202 with every field, also on an inactive endpoint and without its subscription', async () => {
    const owner = await newOwner();
    for (const others of [{}, { active: false }, { events: ['rfid'] }]) {
      const { id } = await newEndpoint(owner, others);
      const reply = await owner.call('POST', `/${id}/test`);
      assert.equal(reply.status, 202);
      const { id: deliveryId, event_id, created_at, next_attempt_at, ...fields } = reply.body.data;
      assert.match(deliveryId, /^dlv_[0-9a-f]{32}$/);
      assert.match(event_id, /^evt_[0-9a-f]+$/);
      assert.match(created_at, ISO);
      assert.match(next_attempt_at, ISO);
      assert.deepEqual(fields, {
        webhook_id: id,
        event_type: 'ping',
        status: 'pending',
        attempts: 0,
        last_status_code: null,
        last_error: null,
        last_duration_ms: null,
        delivered_at: null,
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

  test('lists: newest first, by state, limit and offset moved into their range', async () => {
    const owner = await newOwner();
    const { id } = await newEndpoint(owner);
    const made = await newDeliveries(owner, id, [...STATUSES, ...STATUSES]);
    const newest = made.toReversed();
    for (const [query, expected, limit, offset] of [
      ['', newest, 50, 0],
      ['?limit=0', newest.slice(0, 1), 1, 0],
      ['?limit=500&offset=-1', newest, 200, 0],
      ['?limit=x&offset=3.7', newest.slice(3), 50, 3],
      ['?limit=3&offset=8', newest.slice(8), 3, 8],
      ['?offset=77', [], 50, 77],
      ['?status=', newest, 50, 0],
      ...STATUSES.map((status, n) => [`?status=${status}`, [made[5 + n], made[n]], 50, 0] as const),
      ['?status=failed&limit=1&offset=1', [made[2]], 1, 1],
    ] as const) {
      const reply = await owner.call('GET', `/${id}/deliveries${query}`);
      assert.deepEqual(idsOf(reply), expected, query);
      assert.deepEqual(reply.body.meta, { pagination: { limit, offset, count: expected.length } });
    }
    for (const query of [
      '?status=unknown',
      '?status=Failed',
      '?status=failed,pending',
      '?status=failed&status=failed',
    ]) {
      assert.equal(refusal(await owner.call('GET', `/${id}/deliveries${query}`)), '400 BAD_REQUEST', query);
    }
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

  test('lists: of a window of creation, both ends included', async () => {
    const owner = await newOwner();
    const { id } = await newEndpoint(owner);
    await newDeliveries(owner, id, ['exhausted', 'exhausted', 'exhausted', 'exhausted', 'exhausted']);
    for (const path of [`/${id}/deliveries`, '/dead-letter/list']) {
      const { body } = await owner.call('GET', path);
      const [, second, , fourth] = body.data as { id: string; created_at: string }[];
      const found = idsOf(
        await owner.call('GET', `${path}?from=${fourth?.created_at}&to=${second?.created_at}`),
      );
      assert.deepEqual(found, idsOf({ body } as Reply).slice(1, 4));
      assert.equal(refusal(await owner.call('GET', `${path}?from=yesterday`)), '400 BAD_REQUEST');
    }
  });

  test('equal times: the higher id comes first', async () => {
    const owner = await newOwner();
    const { id } = await newEndpoint(owner);
    const made = await newDeliveries(owner, id, ['exhausted', 'exhausted', 'exhausted']);
    await sql`update webhook_delivery set created_at = date_trunc('hour', clock_timestamp()) where webhook_id = ${id}`;
    const expected = made.toSorted().reverse();
    assert.deepEqual(idsOf(await owner.call('GET', `/${id}/deliveries`)), expected);
    assert.deepEqual(idsOf(await owner.call('GET', '/dead-letter/list')), expected);
  });

  describe('replay', () => {
    for (const status of STATUSES) {
      const isAllowed = status === 'failed' || status === 'exhausted';
      test(`${status}: ${isAllowed ? '202, requeued at once, with its attempts kept' : '400, and nothing changes'}`, async () => {
        const owner = await newOwner();
        const { id } = await newEndpoint(owner);
        const [, , deliveryId = ''] = await newDeliveries(owner, id, ['failed', 'failed', status]);
        const before = (await owner.deliveries(id)).find((each) => each.id === deliveryId);
        const reply = await owner.replay(deliveryId);
        const after = (await owner.deliveries(id)).find((each) => each.id === deliveryId);
        if (!isAllowed) {
          assert.equal(refusal(reply), '400 BAD_REQUEST');
          assert.deepEqual(after, before);
          return;
        }
        assert.equal(reply.status, 202);
        assert.deepEqual(reply.body, { data: after, meta: {} });
        assert.match(after?.next_attempt_at ?? '', ISO);
        assert.deepEqual({ ...after, next_attempt_at: null }, { ...before, status: 'requeued' });
        assert.equal(refusal(await owner.replay(deliveryId)), '400 BAD_REQUEST', 'once is enough');
        const [row] = await sql<
          { spent: number }[]
        >`select spent from webhook_delivery where id = ${deliveryId}`;
        assert.equal(row?.spent, 0);
      });
    }

    test('one with an attempt in flight: 400', async () => {
      const owner = await newOwner();
      const { id } = await newEndpoint(owner);
      const [deliveryId = ''] = await newDeliveries(owner, id, ['failed']);
      await sql`update webhook_delivery set attempt_token = 1 where id = ${deliveryId}`;
      assert.equal(refusal(await owner.replay(deliveryId)), '400 BAD_REQUEST');
      assert.equal((await owner.deliveries(id))[0]?.status, 'failed');
    });

    test('50 at once: one requeues, the others are refused', async () => {
      const owner = await newOwner();
      const { id } = await newEndpoint(owner);
      const [deliveryId = ''] = await newDeliveries(owner, id, ['exhausted']);
      const replies = await Promise.all(Array.from({ length: 50 }, () => owner.replay(deliveryId)));
      const counts = Object.groupBy(replies, ({ status }) => String(status));
      assert.deepEqual([counts['202']?.length, counts['400']?.length], [1, 49]);
    });
  });

  test('the summary counts the last 24 hours of the account', async () => {
    const owner = await newOwner();
    const empty = {
      window_hours: 24,
      total: 0,
      delivered: 0,
      failed: 0,
      exhausted: 0,
      pending: 0,
      success_rate: null,
      attempts: 0,
      duration_ms: { p50: null, p95: null, p99: null },
    };
    assert.deepEqual((await owner.call('GET', '/metrics/summary')).body, { data: empty, meta: {} });
    const [a, b] = [await newEndpoint(owner), await newEndpoint(owner)];
    const states = [...STATUSES, ...STATUSES, 'delivered', 'delivered', 'delivered', 'delivered'];
    const made = await newDeliveries(owner, a.id, states);
    await newDeliveries(owner, b.id, ['delivered', 'exhausted']);
    // Out of the window, and of another account.
    await sql`update webhook_delivery set created_at = created_at - interval '24 hours' where id = ${made[0] ?? ''}`;
    const stranger = await newOwner();
    await newDeliveries(stranger, (await newEndpoint(stranger)).id, ['delivered']);
    const durations = [...Array.from({ length: 13 }, (_, n) => (n + 1) * 10), 0, 10].sort((x, y) => x - y);
    assert.deepEqual((await owner.call('GET', '/metrics/summary')).body.data, {
      ...empty,
      total: 15,
      delivered: 7,
      failed: 2,
      exhausted: 3,
      pending: 3,
      success_rate: 0.7,
      attempts: 92,
      duration_ms: { p50: durations[7], p95: durations[14], p99: durations[14] },
    });
  });
});
