import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, describe, test } from 'node:test';
import { brotliCompressSync } from 'node:zlib';
import { pino } from 'pino';
import { fingerprint } from '../../src/access/credentials.ts';
import { SCOPES } from '../../src/access/scopes.ts';
import { EventCuts } from '../../src/events/eventPartitions.sql.ts';
import { tidy } from '../../src/housekeeping.ts';
import { HOUR_MS } from '../../src/lib/time.ts';
import type { Tx } from '../../src/postgres/sql.ts';
import {
  callApi,
  faceOf,
  logIn,
  makeOwner,
  outcomeOf,
  PASSWORD,
  setPassword,
  tryLogIn,
} from '../support/http/application.ts';
import { exchange, type RawReply, rawRequest } from '../support/http/http.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import type { Reply } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';

const NOBODYS_TOKEN = `fs_${'A'.repeat(43)}`;

const logged: string[] = [];
const log = pino({ level: 'trace' }, { write: (line: string) => void logged.push(line) });
const owner = ownerPod({ log, prepare: ({ admin }) => setPassword(admin, OWNER) });
const { pod, admin } = owner;

const post = (body: unknown, headers = {}): Promise<Reply> =>
  callApi(pod, 'POST', '/v1/session', { body, headers });

const opens = async (token: string): Promise<boolean> => {
  const reply = await callApi(pod, 'GET', '/v1/keys', { token });
  if (reply.status === 200) return true;
  assert.equal(outcomeOf(reply), '403 API_KEY_REQUIRED');
  return false;
};

/** Forgets all attempts, so that no test uses up those of another. */
const forgetAttempts = () => owner.sql`delete from login_window`;

describe('a login', () => {
  test('gives a token that lives for twelve hours, in an answer that no cache may keep', async () => {
    const beforeMs = Date.now();
    const { status, body, headers } = await tryLogIn(pod, OWNER, PASSWORD);
    assert.equal(status, 201);
    assert.deepEqual(Object.keys(body), ['data', 'meta']);
    assert.deepEqual(Object.keys(body.data), ['token', 'expires_at', 'role', 'scopes']);
    assert.deepEqual([body.data.role, body.data.scopes], ['member', SCOPES]);
    assert.deepEqual(body.meta, {});
    const livesMs = Date.parse(body.data.expires_at) - beforeMs;
    assert.ok(Math.abs(livesMs - 12 * HOUR_MS) < 60_000, body.data.expires_at);
    assert.match(body.data.expires_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.equal(headers.get('set-cookie'), null);
    assert.equal(await opens(body.data.token), true);
  });

  test('is stored with the SHA-256 of its token, and nothing else of it', async () => {
    const token = await logIn(pod, OWNER);
    const [row] = await owner.sql<{ fingerprint: Buffer; everything: string }[]>`
      select fingerprint, session::text as everything from session order by id desc limit 1`;
    assert.deepEqual(row?.fingerprint, createHash('sha256').update(token).digest());
    assert.ok(!row.everything.includes(token.slice(3)));
  });

  test('finds the account however its address is written, and a password however its accents are', async () => {
    await makeOwner(admin, 'accents@example.com');
    await admin.run('account:update', '--email', 'accents@example.com', '--password', 'cafe\u0301 🚚');
    const { status } = await tryLogIn(pod, ' Accents@Example.COM ', 'caf\u00e9 🚚');
    assert.equal(status, 201);
  });

  test('does not look at other credentials that the request carries', async () => {
    const body = { email: OWNER, password: PASSWORD };
    for (const credentials of [
      { key: 'fk_x' },
      { token: NOBODYS_TOKEN },
      { headers: { 'X-API-Version': 'v1' } },
    ]) {
      assert.equal((await callApi(pod, 'POST', '/v1/session', { body, ...credentials })).status, 201);
    }
    assert.equal((await callApi(pod, 'POST', '/v1/session/', { body })).status, 201, 'one slash more');
  });

  test('leaves earlier sessions alone, up to fifty, and ends the oldest of more', async () => {
    await forgetAttempts();
    await makeOwner(admin, 'many@example.com');
    const tokens = await Promise.all(Array.from({ length: 5 }, () => logIn(pod, 'many@example.com')));
    assert.equal(new Set(tokens).size, 5);
    assert.deepEqual(
      await Promise.all(tokens.map(opens)),
      tokens.map(() => true),
    );
    await owner.sql`
      insert into session (account_id, fingerprint, expires_at)
      select id, sha256(n::text::bytea), now() + interval '1 hour'
      from account, generate_series(1, 46) n where email = 'many@example.com'`;
    const newest = await logIn(pod, 'many@example.com');
    const live = await Promise.all([...tokens, newest].map(opens));
    assert.equal(live.filter(Boolean).length, 4, 'of 52, the two oldest have ended');
    assert.equal(live.at(-1), true);
  });
});

describe('a login with anything wrong', () => {
  test('is answered with the same 403 whatever it is, so that nobody learns which accounts there are', async () => {
    await forgetAttempts();
    await admin.account('keysonly@example.com');
    await makeOwner(admin, 'left@example.com');
    await admin.run('account:deactivate', '--email', 'left@example.com');
    const replies = [
      await tryLogIn(pod, OWNER, `${PASSWORD} `),
      await tryLogIn(pod, 'nobody@example.com', PASSWORD),
      await tryLogIn(pod, 'keysonly@example.com', PASSWORD),
      await tryLogIn(pod, 'left@example.com', PASSWORD),
      await tryLogIn(pod, 'left@example.com', 'wrong'),
    ];
    for (const reply of replies) assert.deepEqual(faceOf(reply), faceOf(replies[0] as (typeof replies)[0]));
    assert.equal(outcomeOf(replies[0] as (typeof replies)[0]), '403 FORBIDDEN');
  });

  const CHANGES: Record<string, (tx: Tx, email: string) => Promise<unknown>> = {
    'the password changes': (tx, email) => tx`update account set password_hash = 'x' where email = ${email}`,
    'the account is deactivated': (tx, email) => tx`update account set active = false where email = ${email}`,
  };
  for (const [what, change] of Object.entries(CHANGES)) {
    test(`opens no session when ${what} while the password is being checked`, async () => {
      await forgetAttempts();
      const email = `${what.replaceAll(' ', '.')}@example.com`;
      await makeOwner(admin, email);
      const racing = await owner.sql.begin(async (tx) => {
        await tx`select from account where email = ${email} for update`;
        const reply = tryLogIn(pod, email, PASSWORD);
        // The password fits; the login waits for the account.
        await waitFor(async () => {
          const waiting = await owner.sql`
            select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
          return waiting.length > 0;
        });
        await change(tx, email);
        return { reply };
      });
      assert.equal(outcomeOf(await racing.reply), '403 FORBIDDEN');
      const opened = await owner.sql`
        select 1 from session s join account a on a.id = s.account_id where a.email = ${email}`;
      assert.equal(opened.length, 0);
    });
  }
});

describe('the body of a login', () => {
  // Its fields are a table in test/tenants/login.test.ts.
  test('is refused with 422 for every wrong field, and when it is no JSON object or does not say that it is', async () => {
    const JSON_TYPE = 'application/json';
    for (const [body, type, ...expected] of [
      ['{"email":7}', JSON_TYPE, 'email INVALID', 'password REQUIRED'],
      ['', JSON_TYPE, 'null INVALID_BODY'],
      ['[]', JSON_TYPE, 'null INVALID_BODY'],
      ['[[['.repeat(1_000), JSON_TYPE, 'null INVALID_BODY'],
      ['{"email":"a@b","password":"x"}', 'text/plain', 'null INVALID_BODY'],
    ] as const) {
      const { status, body: answer } = await post(body, { 'Content-Type': type });
      const details: { field: string; code: string }[] = answer.error.details;
      const found = details.map(({ field, code }) => `${field} ${code}`);
      assert.deepEqual([status, found], [422, expected], body);
    }
  });

  test('has 4 KB at most, and more is refused with 413', async () => {
    const padded = (bytes: number) => `{"email":7,"padding":"${'x'.repeat(bytes - 24)}"}`;
    assert.equal(padded(4096).length, 4096);
    assert.equal(outcomeOf(await post(padded(4096))), '422 VALIDATION_ERROR');
    assert.equal(outcomeOf(await post(padded(4097))), '413 PAYLOAD_TOO_LARGE');
  });

  test('is refused with 400 when it is compressed, and not unpacked', async () => {
    const body = brotliCompressSync(Buffer.from(`{"x":[${'{},'.repeat(340_000)}{}]}`));
    assert.ok(body.length < 100);
    for (const encoding of ['br', 'gzip', 'deflate', 'zip']) {
      const reply = await post(body, { 'Content-Encoding': encoding });
      assert.equal(outcomeOf(reply), '400 BAD_REQUEST', encoding);
      assert.match(reply.text, /must not be compressed/);
    }
    assert.equal(outcomeOf(await post('{}', { 'Content-Encoding': 'identity' })), '422 VALIDATION_ERROR');
  });
});

describe('a session ends', () => {
  test('with a logout, which does not end the others', async () => {
    await forgetAttempts();
    const [ended, other] = [await logIn(pod, OWNER), await logIn(pod, OWNER)];
    const reply = await callApi(pod, 'DELETE', '/v1/session', { token: ended });
    assert.deepEqual([reply.status, reply.text], [204, '']);
    assert.deepEqual([await opens(ended), await opens(other)], [false, true]);
    assert.equal(
      outcomeOf(await callApi(pod, 'DELETE', '/v1/session', { token: ended })),
      '403 API_KEY_REQUIRED',
    );
  });

  test('after its time, and housekeeping removes it', async () => {
    await forgetAttempts();
    const [late, live] = [await logIn(pod, OWNER), await logIn(pod, OWNER)];
    const fingerprint = createHash('sha256').update(late).digest();
    await owner.sql`update session set expires_at = clock_timestamp() where fingerprint = ${fingerprint}`;
    assert.deepEqual([await opens(late), await opens(live)], [false, true]);
    const fail = () => assert.fail('nothing is to be logged');
    await tidy({
      sql: owner.sql,
      clock: Date.now,
      eventRetentionDays: 730,
      eventCuts: new EventCuts(),
      log: { info: fail, warn: fail },
    });
    assert.equal((await owner.sql`select 1 from session where fingerprint = ${fingerprint}`).length, 0);
    assert.equal(await opens(live), true);
  });

  const ENDINGS: [how: string, run: (email: string) => Promise<unknown>][] = [
    ['a new password', (email) => admin.run('account:update', '--email', email, '--password', 'another')],
    [
      'the same password set again',
      (email) => admin.run('account:update', '--email', email, '--password', PASSWORD),
    ],
    [
      'a deactivation that was taken back',
      async (email) => {
        await admin.run('account:deactivate', '--email', email);
        await admin.run('account:activate', '--email', email);
      },
    ],
    [
      'a deactivation in the database',
      (email) => owner.sql`update account set active = false where email = ${email}`,
    ],
  ];
  for (const [how, run] of ENDINGS) {
    test(`with ${how} of its account from the next call on, and none of another account does`, async () => {
      await forgetAttempts();
      const email = `${how.replaceAll(' ', '.')}@example.com`;
      await makeOwner(admin, email);
      const tokens = [await logIn(pod, email), await logIn(pod, email)];
      const other = await logIn(pod, OWNER);
      assert.deepEqual(await Promise.all(tokens.map(opens)), [true, true]);
      await run(email);
      assert.deepEqual(await Promise.all(tokens.map(opens)), [false, false]);
      assert.equal(await opens(other), true);
    });
  }

  test('with nothing else that is changed of its account', async () => {
    await forgetAttempts();
    await makeOwner(admin, 'stays@example.com');
    const token = await logIn(pod, 'stays@example.com');
    await admin.run('account:update', '--email', 'stays@example.com', '--name', 'N', '--plan', 'basic');
    await admin.run('account:update', '--email', 'stays@example.com', '--organization', 'Stays');
    await admin.run('account:activate', '--email', 'stays@example.com');
    assert.equal(await opens(token), true);
  });
});

describe('a token', () => {
  test('that is missing, malformed, unknown, ended or a key is answered with the same 403 API_KEY_REQUIRED', async () => {
    await forgetAttempts();
    const ended = await logIn(pod, OWNER);
    await callApi(pod, 'DELETE', '/v1/session', { token: ended });
    const { key } = await admin.key(OWNER);
    const values = [undefined, '', 'Bearer', 'Bearer x', 'Basic b3duZXI6eA==', `Bearer ${NOBODYS_TOKEN}`];
    for (const path of ['/v1/keys', '/webhooks']) {
      const none = await callApi(pod, 'GET', path);
      assert.equal(outcomeOf(none), '403 API_KEY_REQUIRED');
      assert.match(none.body.error.message, /X-API-Key.*Authorization: Bearer/);
      for (const value of [
        ...values,
        `Bearer ${ended}`,
        `Bearer ${key}`,
        `Bearer ${ended}, Bearer ${ended}`,
      ]) {
        const headers: Record<string, string> = value === undefined ? {} : { Authorization: value };
        assert.deepEqual(faceOf(await callApi(pod, 'GET', path, { headers })), faceOf(none), value ?? 'none');
      }
    }
  });
});

const assertMarked = (reply: RawReply, status: number): void => {
  assert.equal(reply.status, status);
  const { headers } = reply;
  assert.deepEqual([headers['deprecation'], headers['sunset']], ['true', '2027-03-08']);
};

describe('v1', () => {
  const SCREEN = { name: 'Depot screen', scopes: ['read_devices'], allowlist: [] };
  const secrets: string[] = [PASSWORD, 'a wrong secret password'];
  let token: string;
  let key: string;
  before(async () => {
    await forgetAttempts();
    token = await logIn(pod, OWNER);
    ({ key } = owner);
    const [row] = await owner.sql<{ password_hash: string }[]>`
      select password_hash from account where email = ${OWNER}`;
    secrets.push(token, fingerprint(token), key, fingerprint(key), row?.password_hash ?? '');
  });

  test('says in answers of every kind that it is deprecated and until when it is there', async () => {
    const screen = JSON.stringify(SCREEN);
    const wrong = `{"email":"${OWNER}","password":"a wrong secret password"}`;
    for (const [method, path, as, status, body] of [
      ['POST', '/session', 'nobody', 422, '{}'],
      ['POST', '/session', 'nobody', 403, wrong],
      ['POST', '/session', 'nobody', 413, 'x'.repeat(1024 * 1024 + 1)],
      ['POST', '/session?a=1&a=2', 'nobody', 400, '{}'],
      ['GET', '/session', 'session', 200],
      ['GET', '/session', 'key', 403],
      ['GET', '/session', 'nobody', 403],
      ['GET', '/keys/', 'session', 200],
      ['HEAD', '/keys', 'key', 200],
      ['OPTIONS', '/keys', 'key', 204],
      ['POST', '/keys', 'key', 403, screen],
      ['POST', '/keys', 'session', 201, screen],
      ['PATCH', '/keys/%zz', 'session', 400, '{}'],
      ['PATCH', '/keys/', 'session', 405, '{}'],
      ['POST', '/keys//revoke', 'session', 400],
      ['GET', '/Keys', 'session', 404],
      ['GET', '', 'key', 404],
    ] as const) {
      const credentials = {
        session: { Authorization: `Bearer ${token}` },
        key: { 'X-API-Key': key },
        nobody: {},
      };
      const headers = { ...credentials[as], 'Content-Type': 'application/json' };
      const options = { method, headers, ...(body !== undefined && { body }) };
      const reply = await rawRequest(pod.api, `/api/v1${path}`, options);
      assertMarked(reply, status);
      assert.equal(reply.headers['x-content-type-options'], 'nosniff');
    }
  });

  test('takes headers that are sent twice, or are odd, for no credentials', async () => {
    const get = async (...lines: string[]): Promise<string> => {
      const text = await exchange(pod.api, [
        `GET /api/v1/keys HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`,
      ]);
      const [, status] = /^HTTP\/1\.1 (\d+)/.exec(text) ?? [];
      return `${status} ${/"code":"(\w+)"/.exec(text)?.[1] ?? ''}`.trim();
    };
    const bearer = `Authorization: Bearer ${token}`;
    const rows: readonly (readonly [outcome: string, ...lines: string[]])[] = [
      ['200', bearer],
      ['403 API_KEY_REQUIRED', bearer, bearer],
      ['403 API_KEY_REQUIRED', bearer, 'Authorization: Bearer x'],
      ['403 API_KEY_REQUIRED', 'Authorization: Bearer x', bearer],
      ['200', `X-API-Key: ${key}`],
      ['403 API_KEY_INVALID', `X-API-Key: ${key}`, `X-API-Key: ${key}`],
      ['403 API_KEY_INVALID', bearer, 'X-API-Key: ', 'X-API-Key: '],
      ['200', `authorization: bEARER   ${token}`],
      ['403 API_KEY_REQUIRED', `Authorization: Bearer ${token}\u00e9`],
      ['403 API_KEY_REQUIRED', `Authorization: ${'x'.repeat(15_000)}`],
      ['431 HEADERS_TOO_LARGE', `Authorization: Bearer ${'fs_A'.repeat(5_000)}`],
      ['200', bearer, 'X-API-Version: v2', 'X-API-Version: v3'],
    ];
    for (const [outcome, ...lines] of rows)
      assert.equal(await get(...lines), outcome, String(lines).slice(0, 60));
  });

  test('shows no token, key, password or hash of one in its answers and its log', async () => {
    const replies = [
      await tryLogIn(pod, OWNER, 'a wrong secret password'),
      await callApi(pod, 'GET', '/v1/keys', { token }),
      await callApi(pod, 'GET', '/v1/keys', { key }),
      await callApi(pod, 'PATCH', '/v1/keys/1', { token, body: { name: 'N' } }),
      await callApi(pod, 'POST', '/v1/keys', {
        token,
        body: { name: token, scopes: [key], allowlist: [key] },
      }),
      await callApi(pod, 'POST', '/v1/session', { body: { email: PASSWORD, password: [PASSWORD] } }),
      await callApi(pod, 'POST', '/v1/session', { body: `{"email":"${PASSWORD}` }),
      await callApi(pod, 'DELETE', '/v1/session', { token }),
      await callApi(pod, 'GET', '/v1/keys', { token }),
    ];
    assert.deepEqual(replies.map(outcomeOf), [
      ...['403 FORBIDDEN', '200', '200', '200', '422 VALIDATION_ERROR', '422 VALIDATION_ERROR'],
      ...['422 VALIDATION_ERROR', '204', '403 API_KEY_REQUIRED'],
    ]);
    const said = [...replies.map(({ text, headers }) => text + JSON.stringify([...headers])), ...logged].join(
      '\n',
    );
    for (const secret of secrets) assert.ok(secret.length > 10 && !said.includes(secret));
    assert.ok(logged.length > 0, 'the log is looked at');
  });
});
