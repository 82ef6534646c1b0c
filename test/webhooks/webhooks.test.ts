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
import { denial, detailsOf, type WebhookOwner, webhookOwner } from '../support/webhooks/webhookOwner.ts';

// Which bodies are taken is a table in test/webhooks/endpoint.test.ts, and which URLs in urlSafety.test.ts.

const LEAST = { url: 'https://hooks.example.com/a', events: ['*'] };
const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;

const setup = webhookOwner();
const call: WebhookOwner['owner']['call'] = (...args) => setup.owner.call(...args);

describe('POST /webhooks', () => {
  test('answers 201 with every field, the secret, which reads never show, and where the endpoint is', async () => {
    const reply = await call('POST', '', {
      url: 'https://HOOKS.example.com./a?b=C#d',
      description: 'Büro 🚚',
      events: ['geofence_enter', 'ignition_on', 'geofence_enter'],
      ...{ retry_policy: 'fixed', max_retries: 0, active: false },
      ...{ id: 7, secret: 'mine', unknown: true },
    });
    assert.equal(reply.status, 201, reply.text);
    const { secret, ...shown } = reply.body.data;
    const { id, created_at, updated_at } = shown;
    assert.deepEqual(shown, {
      id,
      url: 'https://hooks.example.com/a?b=C#d',
      description: 'Büro 🚚',
      events: ['geofence_enter', 'ignition_on'],
      ...{ retry_policy: 'fixed', max_retries: 0, active: false },
      paused: null,
      failing: null,
      signature_version: 'v1',
      created_at,
      updated_at,
    });
    assert.ok(Number.isInteger(id) && id !== 7);
    assert.match(secret, SECRET);
    assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.ok(updated_at >= created_at);
    assert.deepEqual(reply.body.meta, {});
    assert.equal(reply.headers.get('location'), `/api/webhooks/${id}`);
    assert.deepEqual((await call('GET', `/${id}`)).body, { data: shown, meta: {} });
    const listed = (await call('GET', '?limit=200')).body.data;
    assert.deepEqual(
      listed.find((each: { id: number }) => each.id === id),
      shown,
    );
    const [row] = await setup.sql<{ text: string }[]>`select w::text as text from webhook w where id = ${id}`;
    const hex = Buffer.from(secret).toString('hex');
    assert.ok(row && !row.text.includes(secret) && !row.text.includes(hex), 'encrypted at rest');
  });

  test('takes 100 endpoints of an owner, also when they come at once, and one more when one is deleted', async () => {
    const many = await setup.newOwner();
    const { id } = await many.make(LEAST);
    await setup.sql`
      insert into webhook (account_id, url, events, retry_policy, max_retries, active, secret)
      select account_id, url, events, retry_policy, max_retries, active, secret
      from webhook, generate_series(2, 80) where id = ${id}`;
    const replies = await Promise.all(Array.from({ length: 36 }, () => many.call('POST', '', LEAST)));
    const made = replies.filter(({ status }) => status === 201);
    assert.equal(made.length, 20);
    for (const reply of replies.filter(({ status }) => status !== 201))
      assert.deepEqual([reply.status, detailsOf(reply)], [422, ['null LIMIT_REACHED']]);
    await many.call('DELETE', `/${made[0]?.body.data.id}`);
    await many.make(LEAST);
    assert.equal((await many.call('POST', '', LEAST)).status, 422);
  });
});

describe('POST and PUT refuse', () => {
  const wrong = { events: [], active: 1, max_retries: '5' };
  const bodies: [title: string, body: unknown, details: string[]][] = [
    ['every invalid field at once', wrong, ['active INVALID', 'events REQUIRED', 'max_retries OUT_OF_RANGE']],
    ['a list', [], ['null INVALID_BODY']],
    ['what is no JSON', '{', ['null INVALID_BODY']],
  ];
  for (const [title, body, expected] of bodies) {
    test(`${title} with 422`, async () => {
      const { id } = await setup.owner.make(LEAST);
      const isObject = body === wrong;
      for (const reply of [
        await call('POST', '', isObject ? { ...wrong, url: LEAST.url } : body),
        await call('PUT', `/${id}`, body),
      ]) {
        assert.equal(denial(reply), '422 VALIDATION_ERROR');
        assert.deepEqual(detailsOf(reply).sort(), expected);
        for (const detail of reply.body.error.details)
          assert.deepEqual(Object.keys(detail), ['field', 'code', 'message']);
      }
    });
  }
});

describe('PUT /webhooks/{id}', () => {
  test('changes only what is sent, and removes the description with null', async () => {
    const { secret: _, ...made } = (await call('POST', '', { ...LEAST, description: 'x' })).body.data;
    const steps: readonly [body: object, changes: object][] = [
      [{}, {}],
      [
        { url: 'https://b.example.com/', events: ['rfid', 'rfid'] },
        { url: 'https://b.example.com/', events: ['rfid'] },
      ],
      [
        { retry_policy: 'none', max_retries: 10, active: false },
        { retry_policy: 'none', max_retries: 10, active: false },
      ],
      [{ description: null }, { description: null }],
      [{ url: null, events: null, retry_policy: null, max_retries: null, active: null }, {}],
      [{ id: 1, created_at: 'x', signature_version: 'v2', secret: 'x' }, {}],
    ];
    let expected = made;
    for (const [body, changes] of steps) {
      const reply = await call('PUT', `/${made.id}`, body);
      assert.equal(reply.status, 200, reply.text);
      const { updated_at } = reply.body.data;
      assert.ok(updated_at >= expected.updated_at);
      expected = { ...expected, ...changes, updated_at };
      assert.deepEqual(reply.body, { data: expected, meta: {} });
      assert.deepEqual((await call('GET', `/${made.id}`)).body.data, expected);
    }
  });
});

test('POST /webhooks/{id}/rotate-secret shows a new secret once, and changes nothing else', async () => {
  const made = (await call('POST', '', LEAST)).body.data;
  const reply = await call('POST', `/${made.id}/rotate-secret`);
  assert.equal(reply.status, 200);
  const { secret, updated_at, ...fields } = reply.body.data;
  assert.match(secret, SECRET);
  assert.notEqual(secret, made.secret);
  assert.deepEqual({ ...made, ...fields }, made);
  assert.ok(updated_at >= made.updated_at);
});

test('GET /webhooks lists endpoints by id, a page at a time', async () => {
  const lister = await setup.newOwner();
  const ids: number[] = [];
  for (let n = 0; n < 3; n++) ids.push((await lister.make(LEAST)).id);
  for (const [query, expected] of [
    ['', ids],
    ['?limit=1&offset=1', ids.slice(1, 2)],
  ] as const) {
    const listed: { id: number }[] = (await lister.call('GET', query)).body.data;
    assert.deepEqual(
      listed.map(({ id }) => id),
      expected,
    );
  }
});

test('DELETE /webhooks/{id} answers 204 and takes its deliveries out of every list', async () => {
  const { owner, sql } = setup;
  const { id } = await owner.make(LEAST);
  const { id: deliveryId } = await owner.ping(id);
  await sql`update webhook_delivery set status = 'exhausted', next_attempt_at = null where id = ${deliveryId}`;
  const before = (await call('GET', '/metrics/summary')).body.data.total;
  const reply = await call('DELETE', `/${id}`);
  assert.deepEqual([reply.status, reply.text], [204, '']);
  for (const gone of [
    await call('GET', `/${id}`),
    await call('DELETE', `/${id}`),
    await call('GET', `/${id}/deliveries`),
    await owner.replay(deliveryId),
  ])
    assert.equal(denial(gone), '404 NOT_FOUND');
  const dead = (await call('GET', '/dead-letter/list?limit=200')).body.data;
  assert.ok(!dead.some((each: { id: string }) => each.id === deliveryId));
  assert.equal((await call('GET', '/metrics/summary')).body.data.total, before - 1);
});

// Permissions, methods and keys that open nothing are asked of every route in everyRoute.test.ts.

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
    const { id } = await owner.make(LEAST);
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
    const made = await webhooks('POST', '', { body: LEAST });
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
    const { id } = (await webhooks('POST', '', { key, body: LEAST })).body.data;
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
