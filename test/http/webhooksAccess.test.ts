import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSql, type Sql } from '../../src/store/sql.ts';
import { adminOf } from '../support/admin.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { type WebhookApi, webhookApi, webhookEnv } from '../support/webhooks.ts';

const URL_A = 'https://hooks.example.com/a';
const UNKNOWN_DELIVERY = `dlv_${'0'.repeat(32)}`;

describe('access to webhook endpoints', () => {
  let pod: Pod;
  let sql: Sql;
  let admin: ReturnType<typeof adminOf>;
  let owner: WebhookApi;
  let colleague: WebhookApi;
  let stranger: WebhookApi;

  before(async () => {
    const { url } = await createDatabase();
    admin = adminOf(url);
    const apis: WebhookApi[] = [];
    // Nobody delivers here.
    pod = await startPod(url, {
      env: { ...webhookEnv(60_000), WEBHOOK_ALLOW_NETS: '', ROLES: 'api,ingest' },
    });
    for (const [email, organization] of [
      ['owner@example.com', 'Acme'],
      ['colleague@example.com', 'Acme'],
      ['stranger@example.com', undefined],
    ] as const) {
      await admin.account(email, organization === undefined ? {} : { organization });
      apis.push(webhookApi(pod.api, (await admin.key(email)).key));
    }
    [owner, colleague, stranger] = apis as [WebhookApi, WebhookApi, WebhookApi];
    sql = openSql(url, { maxConnections: 2, name: 'test' });
  });
  after(async () => {
    await sql.end();
    await pod.stop();
  });

  const refusal = ({ status, body }: Reply): string => `${status} ${body.error.code}`;

  const onId = (
    id: number | string,
    deliveryId: string,
  ): readonly [method: string, path: string, body?: object][] => [
    ['GET', `/${id}`],
    ['PUT', `/${id}`, {}],
    ['DELETE', `/${id}`],
    ['POST', `/${id}/test`],
    ['POST', `/${id}/rotate-secret`],
    ['GET', `/${id}/deliveries`],
    ['POST', `/deliveries/${deliveryId}/replay`],
  ];

  test('endpoints are private: to members of the same organization and to strangers they do not exist', async () => {
    const { id } = await owner.make({ url: URL_A, events: ['*'] });
    const { id: deliveryId } = await owner.ping(id);
    await sql`update webhook_delivery set status = 'failed', next_attempt_at = null where id = ${deliveryId}`;
    const missing = onId(999_999_999, UNKNOWN_DELIVERY);
    for (const other of [colleague, stranger]) {
      for (const [n, [method, path, body]] of onId(id, deliveryId).entries()) {
        const [, unknownPath = ''] = missing[n] ?? [];
        const foreign = await other.call(method, path, body);
        const unknown = await other.call(method, unknownPath, body);
        assert.equal(refusal(foreign), '404 NOT_FOUND', `${method} ${path}`);
        assert.deepEqual([foreign.text, foreign.status], [unknown.text, unknown.status]);
      }
      for (const path of ['', '/dead-letter/list']) {
        assert.deepEqual((await other.call('GET', path)).body.data, [], path);
      }
    }
    assert.equal((await owner.deliveries(id))[0]?.status, 'failed');
    assert.equal((await owner.call('GET', `/${id}`)).status, 200);
  });

  test('one trailing slash is tolerated on the list as anywhere, a second is not', async () => {
    const draft = { url: URL_A, events: ['rfid'] };
    assert.equal((await stranger.call('GET', '/')).status, 200);
    for (const [method, path] of [
      ['GET', '//'],
      ['GET', '//?limit=1'],
      ['DELETE', '//'],
      ['POST', '//'],
      ['GET', '///'],
    ] as const) {
      const reply = await stranger.call(method, path, method === 'POST' ? draft : undefined);
      assert.equal(refusal(reply), '404 NOT_FOUND', `${method} ${path}`);
    }
    assert.deepEqual((await stranger.call('GET', '')).body.data, []);
  });

  test('a key without manage_webhooks is refused before parameters are looked at, and after method and path', async () => {
    const others =
      'read_devices,read_locations,read_history,read_history_summary,send_commands,read_events,read_areas,write_areas';
    const { key } = await admin.key('owner@example.com', { scopes: others });
    const without = webhookApi(pod.api, key);
    const calls = [
      ...onId('x', 'x'),
      ['GET', ''],
      ['POST', '', []],
      ['GET', '/metrics/summary'],
      ['GET', '/dead-letter/list'],
    ];
    for (const [method, path, body] of calls as [string, string, object?][]) {
      assert.equal(
        refusal(await without.call(method, path, body)),
        '403 INSUFFICIENT_SCOPE',
        `${method} ${path}`,
      );
    }
    assert.equal(refusal(await without.call('PATCH', '/1')), '405 METHOD_NOT_ALLOWED');
    assert.equal(refusal(await without.call('GET', '/1/unknown')), '404 NOT_FOUND');
    const { key: only } = await admin.key('owner@example.com', { scopes: 'manage_webhooks' });
    assert.equal((await webhookApi(pod.api, only).call('GET', '')).status, 200);
  });

  test('without a key, with an unknown or a revoked one: 403, whatever is asked', async () => {
    const { id, key } = await admin.key('owner@example.com');
    await admin.run('key:revoke', '--id', String(id));
    for (const [using, code] of [
      ['', 'API_KEY_REQUIRED'],
      ['fk_x', 'API_KEY_INVALID'],
      [key, 'API_KEY_REVOKED'],
    ] as const) {
      for (const [method, path] of [
        ['GET', ''],
        ['PATCH', '/x'],
        ['GET', '/no/such/path'],
      ] as const) {
        const reply = await webhookApi(pod.api, using).call(method, path);
        assert.equal(refusal(reply), `403 ${code}`, `${method} ${path}`);
      }
    }
  });

  test('a malformed id is 400 before the body is judged, the body before the look-up', async () => {
    for (const id of ['0', '-1', '1.5', 'x', '01x', '9007199254740992', '%20', '1e3']) {
      for (const [method, path] of onId(id, `dlv_${id}`)) {
        assert.equal(
          refusal(await owner.call(method, path, method === 'PUT' ? [] : undefined)),
          '400 BAD_REQUEST',
          `${method} ${path}`,
        );
      }
    }
    for (const id of [`dlv_${'A'.repeat(32)}`, `dlv_${'0'.repeat(31)}`, 'evt_x', '%00']) {
      assert.equal(refusal(await owner.replay(id)), '400 BAD_REQUEST', id);
    }
    assert.equal(refusal(await owner.call('PUT', '/999999999', { active: 7 })), '422 VALIDATION_ERROR');
    assert.equal(refusal(await owner.call('PUT', '/999999999', { active: true })), '404 NOT_FOUND');
  });
});
