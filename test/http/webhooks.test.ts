import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Sql } from '../../src/store/sql.ts';
import { type Admin, adminOf } from '../support/admin.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { detailsOf, refusal, startWebhookDesk } from '../support/webhookDesk.ts';
import { type WebhookApi, webhookApi, webhookEnv } from '../support/webhooks.ts';

const URL_A = 'https://hooks.example.com/a';
const UNKNOWN_DELIVERY = `dlv_${'0'.repeat(32)}`;

describe('managing webhook endpoints', () => {
  let pod: Pod;
  let sql: Sql;
  let admin: Admin;
  let owner: WebhookApi;

  let end: () => Promise<void>;
  before(async () => {
    ({ pod, sql, admin, owner, end } = await startWebhookDesk());
  });
  after(() => end());

  describe('PUT', () => {
    test('changes only what is sent; {} changes nothing; null removes the description', async () => {
      const { secret: _, ...made } = (
        await owner.call('POST', '', { url: URL_A, events: ['*'], description: 'x' })
      ).body.data;
      const steps: readonly [object, object][] = [
        [{}, {}],
        [{ url: 'https://b.example.com/' }, { url: 'https://b.example.com/' }],
        [{ events: ['rfid', 'rfid'] }, { events: ['rfid'] }],
        [{ retry_policy: 'none' }, { retry_policy: 'none' }],
        [{ max_retries: 10 }, { max_retries: 10 }],
        [{ active: false }, { active: false }],
        [{ description: null }, { description: null }],
        [{ url: null, events: null, retry_policy: null, max_retries: null, active: null }, {}],
        [{ id: 1, created_at: 'x', signature_version: 'v2', secret: 'x' }, {}],
      ];
      let expected = made;
      for (const [body, changes] of steps) {
        const reply = await owner.call('PUT', `/${made.id}`, body);
        assert.equal(reply.status, 200, reply.text);
        const { updated_at } = reply.body.data;
        assert.ok(updated_at >= expected.updated_at);
        expected = { ...expected, ...changes, updated_at };
        assert.deepEqual(reply.body, { data: expected, meta: {} });
        assert.deepEqual((await owner.call('GET', `/${made.id}`)).body.data, expected);
      }
    });

    test('422 with every invalid field', async () => {
      const { id } = await owner.make({ url: URL_A, events: ['*'] });
      const reply = await owner.call('PUT', `/${id}`, { events: [], active: 1, max_retries: '5' });
      assert.deepEqual(detailsOf(reply).sort(), [
        'active INVALID',
        'events REQUIRED',
        'max_retries OUT_OF_RANGE',
      ]);
      assert.deepEqual(detailsOf(await owner.call('PUT', `/${id}`, '[]')), ['null INVALID_BODY']);
    });
  });

  test('rotate-secret shows a new secret once, and nothing else changes', async () => {
    const made = (await owner.call('POST', '', { url: URL_A, events: ['*'] })).body.data;
    const reply = await owner.call('POST', `/${made.id}/rotate-secret`);
    assert.equal(reply.status, 200);
    const { secret, updated_at, ...fields } = reply.body.data;
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.notEqual(secret, made.secret);
    assert.deepEqual({ ...made, ...fields }, made);
    assert.ok(updated_at >= made.updated_at);
  });

  test('lists are by id, with limit and offset moved into their range', async () => {
    await admin.account('lister@example.com');
    const lister = webhookApi(pod.api, (await admin.key('lister@example.com')).key);
    const ids: number[] = [];
    for (let n = 0; n < 3; n++) ids.push((await lister.make({ url: URL_A, events: ['*'] })).id);
    for (const [query, limit, offset] of [
      ['', 50, 0],
      ['?limit=0', 1, 0],
      ['?limit=1000&offset=-4', 200, 0],
      ['?limit=x&offset=1.9', 50, 1],
      ['?limit=2&offset=2', 2, 2],
      ['?offset=99', 50, 99],
    ] as const) {
      const { status, body } = await lister.call('GET', query);
      const expected = ids.slice(offset, offset + limit);
      assert.equal(status, 200);
      assert.deepEqual(
        body.data.map((each: { id: number }) => each.id),
        expected,
        query,
      );
      assert.deepEqual(body.meta, { pagination: { limit, offset, count: expected.length } });
    }
    assert.equal(refusal(await lister.call('GET', '?limit=1&limit=2')), '400 BAD_REQUEST');
  });

  test('DELETE answers 204 and takes the deliveries out of every list', async () => {
    const { id } = await owner.make({ url: URL_A, events: ['*'] });
    const { id: deliveryId } = await owner.ping(id);
    await sql`update webhook_delivery set status = 'exhausted', next_attempt_at = null where id = ${deliveryId}`;
    const before = (await owner.call('GET', '/metrics/summary')).body.data.total;
    const reply = await owner.call('DELETE', `/${id}`);
    assert.deepEqual([reply.status, reply.text], [204, '']);
    assert.equal(refusal(await owner.call('GET', `/${id}`)), '404 NOT_FOUND');
    assert.equal(refusal(await owner.call('DELETE', `/${id}`)), '404 NOT_FOUND');
    assert.equal(refusal(await owner.call('GET', `/${id}/deliveries`)), '404 NOT_FOUND');
    assert.equal(refusal(await owner.replay(deliveryId)), '404 NOT_FOUND');
    const dead = (await owner.call('GET', '/dead-letter/list?limit=200')).body.data;
    assert.ok(!dead.some((each: { id: string }) => each.id === deliveryId));
    assert.equal((await owner.call('GET', '/metrics/summary')).body.data.total, before - 1);
  });

  const ALLOWED: readonly [path: string, allow: string][] = [
    ['', 'GET, HEAD, OPTIONS, POST'],
    ['/1', 'DELETE, GET, HEAD, OPTIONS, PUT'],
    ['/1/test', 'OPTIONS, POST'],
    ['/1/rotate-secret', 'OPTIONS, POST'],
    ['/1/deliveries', 'GET, HEAD, OPTIONS'],
    ['/metrics/summary', 'GET, HEAD, OPTIONS'],
    ['/dead-letter/list', 'GET, HEAD, OPTIONS'],
    [`/deliveries/${UNKNOWN_DELIVERY}/replay`, 'OPTIONS, POST'],
  ];
  for (const [path, allow] of ALLOWED) {
    test(`${path || '/'} says what it allows, and refuses the rest`, async () => {
      const sorted = (reply: Reply) => (reply.headers.get('allow') ?? '').split(', ').sort().join(', ');
      const options = await owner.call('OPTIONS', path);
      assert.deepEqual([options.status, options.text, sorted(options)], [204, '', allow]);
      const refused = await owner.call('PATCH', path);
      assert.deepEqual([refusal(refused), sorted(refused)], ['405 METHOD_NOT_ALLOWED', allow]);
    });
  }

  test('limits hold as on v3', async () => {
    const { url } = await createDatabase();
    const limited = adminOf(url);
    await limited.account('owner@example.com');
    const small = await startPod(url, {
      env: { ...webhookEnv(1), RATE_LIMIT_KEY_MINUTE: '2', ROLES: 'api' },
    });
    try {
      const api = webhookApi(small.api, (await limited.key('owner@example.com')).key);
      assert.equal((await api.call('GET', '')).status, 200);
      assert.equal((await api.call('GET', '/x')).status, 400);
      assert.equal(refusal(await api.call('GET', '')), '429 TOO_MANY_REQUESTS');
    } finally {
      await small.stop();
    }
  });
});
