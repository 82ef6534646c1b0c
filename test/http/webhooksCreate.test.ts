import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Sql } from '../../src/store/sql.ts';
import type { Admin } from '../support/admin.ts';
import type { Pod } from '../support/pod.ts';
import { detailsOf, refusal, startWebhookDesk } from '../support/webhookDesk.ts';
import { type WebhookApi, webhookApi } from '../support/webhooks.ts';

const URL_A = 'https://hooks.example.com/a';

describe('creating webhook endpoints', () => {
  let pod: Pod;
  let sql: Sql;
  let admin: Admin;
  let owner: WebhookApi;

  let end: () => Promise<void>;
  before(async () => {
    ({ pod, sql, admin, owner, end } = await startWebhookDesk());
  });
  after(() => end());

  describe('create', () => {
    test('answers 201 with every field, the secret, and where it is; reads never show the secret', async () => {
      const body = {
        url: 'https://HOOKS.example.com./a?b=C#d',
        description: 'Büro 🚚',
        events: ['geofence_enter', 'ignition_on', 'geofence_enter'],
        retry_policy: 'fixed',
        max_retries: 0,
        active: false,
        id: 7,
        secret: 'mine',
        unknown: true,
      };
      const reply = await owner.call('POST', '', body);
      assert.equal(reply.status, 201, reply.text);
      const { id, secret, created_at, updated_at, ...fields } = reply.body.data;
      assert.deepEqual(fields, {
        url: 'https://hooks.example.com/a?b=C#d',
        description: 'Büro 🚚',
        events: ['geofence_enter', 'ignition_on'],
        retry_policy: 'fixed',
        max_retries: 0,
        active: false,
        signature_version: 'v1',
      });
      assert.ok(Number.isInteger(id) && id !== 7);
      assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
      assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.ok(updated_at >= created_at);
      assert.deepEqual(reply.body.meta, {});
      assert.equal(reply.headers.get('location'), `/api/webhooks/${id}`);
      assert.equal(reply.headers.get('x-api-status'), null);
      const { secret: _, ...public_ } = reply.body.data;
      assert.deepEqual((await owner.call('GET', `/${id}`)).body, { data: public_, meta: {} });
      const { body: listed } = await owner.call('GET', '?limit=200');
      assert.deepEqual(
        listed.data.find((each: { id: number }) => each.id === id),
        public_,
      );
      const [row] = await sql<{ text: string }[]>`select w::text as text from webhook w where id = ${id}`;
      const hex = Buffer.from(secret).toString('hex');
      assert.ok(row && !row.text.includes(secret) && !row.text.includes(hex), 'encrypted at rest');
    });

    test('gives what is not sent, or null, its default', async () => {
      for (const others of [{}, { description: null, retry_policy: null, max_retries: null, active: null }]) {
        const { body, status } = await owner.call('POST', '', { url: URL_A, events: ['*'], ...others });
        assert.equal(status, 201);
        const { description, events, retry_policy, max_retries, active } = body.data;
        assert.deepEqual(
          [description, events, retry_policy, max_retries, active],
          [null, ['*'], 'exponential', 5, true],
        );
      }
    });

    const invalid: readonly [name: string, body: unknown, details: string[]][] = [
      ['an empty object', {}, ['url REQUIRED', 'events REQUIRED']],
      [
        'no url but other faults',
        { events: [], max_retries: 11 },
        ['url REQUIRED', 'events REQUIRED', 'max_retries OUT_OF_RANGE'],
      ],
      [
        'every field',
        {
          url: URL_A,
          description: 7,
          events: ['geofence'],
          retry_policy: 'linear',
          max_retries: 1.5,
          active: 'yes',
        },
        [
          'description INVALID',
          'events INVALID',
          'retry_policy INVALID',
          'max_retries OUT_OF_RANGE',
          'active INVALID',
        ],
      ],
      [
        'a long description',
        { url: URL_A, events: ['*'], description: 'x'.repeat(257) },
        ['description TOO_LONG'],
      ],
      ['max_retries below 0', { url: URL_A, events: ['*'], max_retries: -1 }, ['max_retries OUT_OF_RANGE']],
      ['events as text', { url: URL_A, events: '*' }, ['events INVALID']],
      ['a list', [], ['null INVALID_BODY']],
      ['text', '"x"', ['null INVALID_BODY']],
      ['no JSON', '{', ['null INVALID_BODY']],
      ['nothing', '', ['null INVALID_BODY']],
    ];
    for (const [name, body, details] of invalid) {
      test(`422 with every invalid field: ${name}`, async () => {
        const reply = await owner.call('POST', '', body);
        assert.equal(refusal(reply), '422 VALIDATION_ERROR');
        assert.deepEqual(detailsOf(reply).sort(), details.sort());
        for (const { message } of reply.body.error.details) assert.equal(typeof message, 'string');
      });
    }

    test('a url that is not acceptable is 400 before any other field is judged, here and at update', async () => {
      const { id } = await owner.make({ url: URL_A, events: ['*'] });
      for (const url of [
        'http://hooks.example.com',
        'https://127.0.0.1/',
        'https://localhost/',
        'nothing',
        '',
        7,
      ]) {
        for (const [method, path] of [
          ['POST', ''],
          ['PUT', `/${id}`],
        ] as const) {
          const reply = await owner.call(method, path, { url, events: [], max_retries: 99 });
          assert.equal(refusal(reply), '400 WEBHOOK_URL_INVALID', String(url));
          assert.equal(reply.body.error.details, undefined);
        }
      }
    });

    test('100 for an owner, also when they come in parallel; the next is refused until one goes', async () => {
      await admin.account('many@example.com');
      const many = webhookApi(pod.api, (await admin.key('many@example.com')).key);
      const replies = await Promise.all(
        Array.from({ length: 108 }, () => many.call('POST', '', { url: URL_A, events: ['*'] })),
      );
      const made = replies.filter(({ status }) => status === 201);
      const refused = replies.filter(({ status }) => status !== 201);
      assert.equal(made.length, 100);
      for (const reply of refused) {
        assert.equal(refusal(reply), '422 VALIDATION_ERROR');
        assert.deepEqual(detailsOf(reply), ['null LIMIT_REACHED']);
      }
      await many.call('DELETE', `/${made[0]?.body.data.id}`);
      await many.make({ url: URL_A, events: ['*'] });
      assert.equal((await many.call('POST', '', { url: URL_A, events: ['*'] })).status, 422);
    });
  });
});
