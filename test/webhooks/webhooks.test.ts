import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
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
    const replies = await Promise.all(Array.from({ length: 108 }, () => many.call('POST', '', LEAST)));
    const made = replies.filter(({ status }) => status === 201);
    assert.equal(made.length, 100);
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
