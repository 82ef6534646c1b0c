import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Admin, adminOf } from '../support/admin.ts';
import { type CallOptions, callApi, logIn, makeOwner, outcomeOf } from '../support/application.ts';
import { NO_LIMITS, type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const ENDPOINT = { url: 'https://hooks.example.com/a', events: ['*'] };

let pod: Pod;
let admin: Admin;
let owner: string;
let colleague: string;

before(async () => {
  const { url } = await createDatabase();
  admin = adminOf(url);
  // Nobody delivers here.
  pod = await startPod(url, { env: { ...NO_LIMITS, ROLES: 'api,ingest' } });
  await makeOwner(admin, 'owner@example.com', '--organization', 'Acme');
  await makeOwner(admin, 'colleague@example.com', '--organization', 'Acme');
  owner = await logIn(pod, 'owner@example.com');
  colleague = await logIn(pod, 'colleague@example.com');
});
after(() => pod.stop());

const webhooks = (method: string, path: string, options: CallOptions = {}): Promise<Reply> =>
  callApi(pod, method, `/webhooks${path}`, { token: owner, ...options });

describe('a session manages webhooks', () => {
  test('by every route, without a scope and without a key, and shares them with the keys of its account', async () => {
    const made = await webhooks('POST', '', { body: ENDPOINT });
    assert.equal(made.status, 201, made.text);
    const { id } = made.body.data;
    const { body: ping } = await webhooks('POST', `/${id}/test`);
    const outcomes = [
      await webhooks('GET', ''),
      await webhooks('GET', `/${id}`),
      await webhooks('PUT', `/${id}`, { body: { description: 'yard' } }),
      await webhooks('GET', `/${id}/deliveries`),
      await webhooks('GET', '/metrics/summary'),
      await webhooks('GET', '/dead-letter/list'),
      await webhooks('POST', `/${id}/rotate-secret`),
    ].map(outcomeOf);
    assert.deepEqual(outcomes, Array(outcomes.length).fill('200'));
    const replayed = await webhooks('POST', `/deliveries/${ping.data.id}/replay`);
    assert.equal(outcomeOf(replayed), '400 BAD_REQUEST', 'it is pending');
    const { key } = await admin.key('owner@example.com', { scopes: 'manage_webhooks' });
    const byKey = await callApi(pod, 'GET', `/webhooks/${id}`, { key });
    assert.equal(byKey.body.data.description, 'yard');
    for (const reply of [made, byKey]) assert.equal(reply.headers.get('deprecation'), null);
    assert.equal(outcomeOf(await webhooks('DELETE', `/${id}`)), '204');
  });

  test('of its own account only', async () => {
    const { body } = await webhooks('POST', '', { body: ENDPOINT });
    const path = `/${body.data.id}`;
    for (const [method, options] of [
      ['GET', {}],
      ['PUT', { body: {} }],
      ['DELETE', {}],
    ] as const) {
      const reply = await webhooks(method, path, { token: colleague, ...options });
      assert.equal(outcomeOf(reply), '404 NOT_FOUND');
    }
    assert.deepEqual((await webhooks('GET', '', { token: colleague })).body.data, []);
  });

  test('no longer after its logout', async () => {
    const token = await logIn(pod, 'owner@example.com');
    assert.equal(outcomeOf(await webhooks('GET', '', { token })), '200');
    await callApi(pod, 'DELETE', '/v1/session', { token });
    assert.equal(outcomeOf(await webhooks('GET', '', { token })), '403 API_KEY_REQUIRED');
  });
});

test('without credentials nothing is let in, whatever the path is called', async () => {
  for (const path of ['', '/session', '/1']) {
    const reply = await callApi(pod, 'POST', `/webhooks${path}`, { body: {} });
    assert.equal(outcomeOf(reply), '403 API_KEY_REQUIRED', path);
  }
});

describe('with both headers X-API-Key decides', () => {
  test('whose webhooks they are, and whether the call may', async () => {
    const { key } = await admin.key('colleague@example.com');
    const { body } = await webhooks('POST', '', { key, body: ENDPOINT });
    assert.equal(outcomeOf(await webhooks('GET', `/${body.data.id}`)), '404 NOT_FOUND');
    assert.equal(outcomeOf(await webhooks('GET', `/${body.data.id}`, { token: colleague })), '200');
    const { key: scopeless } = await admin.key('owner@example.com', { scopes: 'read_devices' });
    assert.equal(outcomeOf(await webhooks('GET', '', { key: scopeless })), '403 INSUFFICIENT_SCOPE');
    assert.equal(outcomeOf(await webhooks('GET', '', { key: 'x' })), '403 API_KEY_INVALID');
  });

  test('an empty X-API-Key is none', async () => {
    assert.equal(outcomeOf(await webhooks('GET', '', { headers: { 'X-API-Key': '' } })), '200');
    assert.equal(
      outcomeOf(await callApi(pod, 'GET', '/v1/keys', { headers: { 'X-API-Key': '' } })),
      '403 API_KEY_REQUIRED',
    );
  });
});

describe('a session opens nothing else', () => {
  const PATHS = [
    '/devices',
    '/devices/nearest?lat=1&lng=1',
    '/devices/350000000000001/location',
    '/events',
    '/x',
  ];

  test('v2 and v3 answer as if it were not there: 403 API_KEY_REQUIRED', async () => {
    for (const version of ['v2', 'v3']) {
      for (const path of [...PATHS, '/areas', '/keys', '/session']) {
        const reply = await callApi(pod, 'GET', `/${version}${path}`, { token: owner });
        assert.equal(outcomeOf(reply), '403 API_KEY_REQUIRED', `${version}${path}`);
        assert.equal(reply.headers.get('sunset'), null);
        assert.match(reply.body.error.message, /^an API key is required in the header X-API-Key$/);
      }
      assert.equal(
        outcomeOf(await callApi(pod, 'POST', `/${version}/areas`, { token: owner, body: {} })),
        '403 API_KEY_REQUIRED',
      );
    }
  });

  test('nor are v1’s routes under other prefixes, or other routes under v1', async () => {
    const { key } = await admin.key('owner@example.com');
    for (const path of ['/v2/keys', '/v3/keys', '/v3/session', '/v1/devices', '/v1/areas', '/v1/webhooks']) {
      assert.equal(outcomeOf(await callApi(pod, 'GET', path, { key })), '404 NOT_FOUND', path);
    }
  });
});
