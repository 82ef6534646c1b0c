import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DAY_MS, weekStartMs } from '../../src/lib/time.ts';
import { DELIVERIES, ensureWeeks } from '../../src/postgres/partitions.ts';
import type { Reply } from '../support/pod.ts';
import { denial, detailsOf, type WebhookOwner, webhookOwner } from '../support/webhooks/webhookOwner.ts';
import type { WebhookApi, WireDelivery } from '../support/webhooks/webhooks.ts';

const STATUSES = ['pending', 'delivered', 'failed', 'exhausted', 'requeued'] as const;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const LEAST = { url: 'https://hooks.example.com/', events: ['*'] };

/** Nobody sends here: deliveries are in the state that a test puts them into. */
const setup = webhookOwner();
const call: WebhookOwner['owner']['call'] = (...args) => setup.owner.call(...args);

describe('deliveries of webhooks', () => {
  before(() => ensureWeeks(setup.sql, DELIVERIES, [weekStartMs(Date.now() - 7 * DAY_MS)])); // for those of yesterday

  const newEndpoint = (api: WebhookApi, others: object = {}) => api.make({ ...LEAST, ...others });
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
      await setup.sql`
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
      const [row] = await setup.sql<
        { body: string }[]
      >`select body from webhook_delivery where id = ${deliveryId}`;
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
    await setup.sql`update webhook_delivery set created_at = date_trunc('hour', clock_timestamp()) where webhook_id = ${id}`;
    const expected = made.toSorted().reverse();
    assert.deepEqual(idsOf(await owner.call('GET', `/${id}/deliveries`)), expected);
    assert.deepEqual(idsOf(await owner.call('GET', '/dead-letter/list')), expected);
  });

  test('are read one by one, with the body that is sent and the attempts that were made', async () => {
    const owner = await setup.newOwner();
    const { id } = await newEndpoint(owner);
    const listed = await owner.ping(id);
    const attempt = {
      attempt: 1,
      at: '2026-03-02T09:00:00.000Z',
      status_code: 503,
      error: 'http_503',
      duration_ms: 7,
      answer: '{"a":"b"}',
    };
    const [row] = await setup.sql<{ body: string }[]>`
      update webhook_delivery set attempt_log = array[${JSON.stringify(attempt)}::json]
      where id = ${listed.id} returning body`;
    const read = (api: WebhookApi, deliveryId = listed.id, webhookId = id) =>
      api.call('GET', `/${webhookId}/deliveries/${deliveryId}`);
    const detail = { in_flight: false, payload: row?.body, attempt_log: [attempt] };
    const reply = await read(owner);
    assert.deepEqual([reply.status, reply.body.data], [200, { ...listed, ...detail }]);
    await setup.sql`update webhook_delivery set attempt_token = 1, attempt_log = '{}' where id = ${listed.id}`;
    const sent = (await read(owner)).body.data;
    assert.deepEqual([sent.in_flight, sent.attempt_log], [true, []]);

    assert.equal(denial(await read(await setup.newOwner())), '404 NOT_FOUND');
    const unknown = listed.id.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    assert.equal(denial(await read(owner, unknown)), '404 NOT_FOUND');
    assert.equal(denial(await read(owner, 'dlv_x')), '400 BAD_REQUEST');
    const other = await newEndpoint(owner);
    assert.equal(denial(await read(owner, listed.id, other.id)), '404 NOT_FOUND');
    await owner.call('DELETE', `/${id}`);
    assert.equal(denial(await read(owner)), '404 NOT_FOUND', 'gone with its endpoint');
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
        const rows = await setup.sql`select 1 from webhook_delivery where id = ${deliveryId} and spent = 0`;
        assert.equal(rows.length, 1);
      });
    }

    test('not while an attempt is in flight, with 400', async () => {
      const { owner, id } = await newEndpointOfItsOwn();
      const [deliveryId = ''] = await newDeliveries(owner, id, ['failed']);
      await setup.sql`update webhook_delivery set attempt_token = 1 where id = ${deliveryId}`;
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
    await setup.sql`update webhook_delivery set created_at = created_at - interval '24 hours' where id = ${old ?? ''}`;
    const stranger = await newEndpointOfItsOwn();
    await newDeliveries(stranger.owner, stranger.id, ['delivered']);
    assert.deepEqual((await owner.call('GET', '/metrics/summary')).body.data, {
      ...empty,
      ...{ total: 9, delivered: 5, failed: 1, exhausted: 2, pending: 1, attempts: 29, success_rate: 5 / 7 },
      duration_ms: { p50: 30, p95: 70, p99: 70 },
    });
  });
});

describe('POST /api/webhooks/{id}/replay', () => {
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
    const { id } = await owner.make(LEAST);
    const other = await owner.make(LEAST);
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
    const { id } = await owner.make(LEAST);
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
    const { id } = await owner.make(LEAST);
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

/** An endpoint that the service has paused two hours ago. */
async function paused(): Promise<number> {
  const { id } = await setup.owner.make(LEAST);
  await setup.sql`
    update webhook set paused_at = '2026-03-02T08:40:00Z', paused_reason = 'endpoint_quota' where id = ${id}`;
  await setup.sql`
    insert into webhook_left_out (webhook_id, from_at) values (${id}, clock_timestamp() - interval '2 hours')`;
  return id;
}

const stateOf = async (id: number) => (await call('GET', `/${id}`)).body.data.paused;

describe('a paused endpoint', () => {
  test('says why and since when, where it is read and listed', async () => {
    const id = await paused();
    const expected = { reason: 'endpoint_quota', since: '2026-03-02T08:40:00.000Z' };
    assert.deepEqual(await stateOf(id), expected);
    const listed = (await call('GET', '?limit=200')).body.data;
    assert.deepEqual(listed.find((each: { id: number }) => each.id === id).paused, expected);
  });

  test('lists what it lacks by the hour', async () => {
    const id = await paused();
    const empty = await call('GET', `/${id}/left-out`);
    assert.deepEqual([empty.status, empty.body.data], [200, { events: 0, is_complete: true, hours: [] }]);
    await setup.sql`
      insert into fleet_event (world_id, device_id, device_imei, type, message, data, occurred_at)
      select a.world_id, 1, '350000000000001', 'rfid', 'm', '{}', clock_timestamp()
      from webhook w join account a on a.id = w.account_id cross join generate_series(1, 3) where w.id = ${id}`;
    const { events, is_complete, hours } = (await call('GET', `/${id}/left-out`)).body.data;
    assert.deepEqual([events, is_complete], [3, true]);
    for (const hour of hours) assert.match(hour.from, /^\d{4}-\d\d-\d\dT\d\d:00:00\.000Z$/);
  });

  test('is resumed, by its route and by being made active', async () => {
    const [first, second, third] = [await paused(), await paused(), await paused()];
    const resumed = await call('POST', `/${first}/resume`, {});
    assert.deepEqual([resumed.status, resumed.body.data.id, resumed.body.data.paused], [200, first, null]);
    assert.equal((await call('POST', `/${first}/resume`, {})).status, 200, 'again: nothing changes');
    await call('POST', `/${second}/resume`, { from: '2026-03-02T09:00:00Z' });
    await setup.owner.change(third, { active: true });
    for (const id of [first, second, third]) assert.equal(await stateOf(id), null);
    const rows = await setup.sql`
      select from webhook_left_out where webhook_id = any(${[first, second, third]}::bigint[]) and to_at is not null`;
    assert.equal(rows.length, 3, 'what they lack is made now');
  });

  test('stays paused when something else of it is changed, or when it is made inactive', async () => {
    const id = await paused();
    await setup.owner.change(id, { description: 'x' });
    await setup.owner.change(id, { active: false });
    assert.equal((await stateOf(id)).reason, 'endpoint_quota');
  });

  test('is resumed by its owner only, and with a sound body', async () => {
    const id = await paused();
    const stranger = await setup.newOwner();
    for (const [method, path] of [
      ['POST', `/${id}/resume`],
      ['GET', `/${id}/left-out`],
    ] as const) {
      const body = method === 'POST' ? {} : undefined;
      assert.equal(denial(await stranger.call(method, path, body)), '404 NOT_FOUND');
      assert.equal(denial(await call(method, path.replace(String(id), '999999'), body)), '404 NOT_FOUND');
      assert.equal(denial(await call(method, path.replace(String(id), 'x'), body)), '400 BAD_REQUEST');
    }
    for (const [body, detail] of [
      [{ from: 'yesterday' }, 'from INVALID'],
      [{ from: 7 }, 'from INVALID'],
      [[], 'null INVALID_BODY'],
      ['{', 'null INVALID_BODY'],
    ] as const) {
      const reply = await call('POST', `/${id}/resume`, body);
      assert.deepEqual([denial(reply), detailsOf(reply)], ['422 VALIDATION_ERROR', [detail]]);
    }
    assert.equal((await stateOf(id)).reason, 'endpoint_quota');
  });
});
