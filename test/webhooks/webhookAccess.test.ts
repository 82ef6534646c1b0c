import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import {
  type CallOptions,
  callApi,
  faceOf,
  logIn,
  makeOwner,
  outcomeOf,
} from '../support/http/application.ts';
import type { Reply } from '../support/pod.ts';
import { denial, webhookOwner } from '../support/webhooks/webhookOwner.ts';

// Permissions, methods and keys that open nothing are asked of every route in everyRoute.test.ts.

const ENDPOINT = { url: 'https://hooks.example.com/a', events: ['*'] };

const setup = webhookOwner();

type Calls = readonly [method: string, path: string, body?: object][];
const onId = (id: number | string, deliveryId: string): Calls => [
  ['GET', `/${id}`],
  ['PUT', `/${id}`, {}],
  ['DELETE', `/${id}`],
  ['POST', `/${id}/test`],
  ['POST', `/${id}/rotate-secret`],
  ['GET', `/${id}/deliveries`],
  ['POST', `/deliveries/${deliveryId}/replay`],
];

describe('an endpoint', () => {
  test('does not exist for other members of the organization and for strangers', async () => {
    const { owner, sql } = setup;
    const { id } = await owner.make(ENDPOINT);
    const { id: deliveryId } = await owner.ping(id);
    await sql`update webhook_delivery set status = 'failed', next_attempt_at = null where id = ${deliveryId}`;
    const missing = onId(999_999_999, `dlv_${'0'.repeat(32)}`);
    for (const other of [await setup.newOwner('Acme'), await setup.newOwner()]) {
      for (const [n, [method, path, body]] of onId(id, deliveryId).entries()) {
        const foreign = await other.call(method, path, body);
        assert.equal(denial(foreign), '404 NOT_FOUND', `${method} ${path}`);
        assert.deepEqual(faceOf(await other.call(method, missing[n]?.[1] ?? '', body)), faceOf(foreign));
      }
      for (const path of ['', '/dead-letter/list'])
        assert.deepEqual((await other.call('GET', path)).body.data, [], path);
    }
    assert.equal((await owner.deliveries(id))[0]?.status, 'failed');
    assert.equal((await owner.call('GET', `/${id}`)).status, 200);
  });

  test('is looked up after its id and then the body were found well-formed', async () => {
    const { owner } = setup;
    for (const id of ['0', 'x', '01x', '9007199254740992', '%20']) {
      for (const [method, path] of onId(id, `dlv_${id}`)) {
        const reply = await owner.call(method, path, method === 'PUT' ? [] : undefined);
        assert.equal(denial(reply), '400 BAD_REQUEST', `${method} ${path}`);
      }
    }
    for (const id of [`dlv_${'A'.repeat(32)}`, `dlv_${'0'.repeat(31)}`, 'evt_x', '%00'])
      assert.equal(denial(await owner.replay(id)), '400 BAD_REQUEST', id);
    assert.equal(denial(await owner.call('PUT', '/999999999', { active: 7 })), '422 VALIDATION_ERROR');
    assert.equal(denial(await owner.call('PUT', '/999999999', { active: true })), '404 NOT_FOUND');
  });
});

describe('a session', () => {
  let token: string;
  let colleague: string;
  before(async () => {
    for (const name of ['anna', 'ben']) await makeOwner(setup.admin, `${name}@example.com`);
    token = await logIn(setup.pod, 'anna@example.com');
    colleague = await logIn(setup.pod, 'ben@example.com');
  });

  const webhooks = (method: string, path: string, options: CallOptions = {}): Promise<Reply> =>
    callApi(setup.pod, method, `/webhooks${path}`, { token, ...options });

  test('opens every route of webhooks, which it shares with the keys of its account', async () => {
    const { key } = await setup.admin.key('anna@example.com', { scopes: 'manage_webhooks' });
    const made = await webhooks('POST', '', { body: ENDPOINT });
    assert.equal(made.status, 201, made.text);
    const { id } = made.body.data;
    const { data: ping } = (await webhooks('POST', `/${id}/test`)).body;
    for (const [method, path, body] of [
      ...onId(id, ping.id).filter(([method, path]) => method !== 'DELETE' && !/test|replay/.test(path)),
      ...(['', '/metrics/summary', '/dead-letter/list'].map((path) => ['GET', path]) as Calls),
    ]) {
      assert.equal(outcomeOf(await webhooks(method, path, { body })), '200', path);
    }
    const replayed = await webhooks('POST', `/deliveries/${ping.id}/replay`);
    assert.equal(outcomeOf(replayed), '400 BAD_REQUEST', 'it is pending');
    const byKey = await callApi(setup.pod, 'GET', `/webhooks/${id}`, { key });
    for (const reply of [made, byKey]) assert.equal(reply.headers.get('deprecation'), null);
    assert.equal(outcomeOf(await webhooks('DELETE', `/${id}`)), '204');
  });

  test('counts for nothing beside an X-API-Key, unless that is empty', async () => {
    const { key } = await setup.admin.key('ben@example.com');
    const { id } = (await webhooks('POST', '', { key, body: ENDPOINT })).body.data;
    assert.equal(outcomeOf(await webhooks('GET', `/${id}`)), '404 NOT_FOUND');
    assert.equal(outcomeOf(await webhooks('GET', `/${id}`, { token: colleague })), '200');
    const { key: scopeless } = await setup.admin.key('anna@example.com', { scopes: 'read_devices' });
    assert.equal(outcomeOf(await webhooks('GET', '', { key: scopeless })), '403 INSUFFICIENT_SCOPE');
    assert.equal(outcomeOf(await webhooks('GET', '', { key: 'x' })), '403 API_KEY_INVALID');
    assert.equal(outcomeOf(await webhooks('GET', '', { headers: { 'X-API-Key': '' } })), '200');
  });

  test('opens no route of v2 and v3', async () => {
    for (const version of ['v2', 'v3']) {
      for (const path of ['/devices', '/devices/nearest?lat=1&lng=1', '/events', '/areas', '/keys', '/x']) {
        for (const method of ['GET', 'POST']) {
          const reply = await callApi(setup.pod, method, `/${version}${path}`, { token });
          assert.equal(outcomeOf(reply), '403 API_KEY_REQUIRED', `${version}${path}`);
          assert.equal(reply.headers.get('sunset'), null);
          assert.equal(reply.body.error.message, 'an API key is required in the header X-API-Key');
        }
      }
    }
  });

  test('has its own routes under v1 only', async () => {
    const { key } = await setup.admin.key('anna@example.com');
    for (const path of ['/v2/keys', '/v3/keys', '/v3/session', '/v3/webhooks', '/v2/webhooks'])
      assert.equal(outcomeOf(await callApi(setup.pod, 'GET', path, { key })), '404 NOT_FOUND', path);
  });
});
