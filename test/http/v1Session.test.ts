import assert from 'node:assert/strict';
import { createHash, scryptSync } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { brotliCompressSync } from 'node:zlib';
import { tidy } from '../../src/flows/housekeeping.ts';
import { openSql, type Sql, type Tx } from '../../src/store/sql.ts';
import { type Admin, adminOf } from '../support/admin.ts';
import { callApi, faceOf, logIn, makeOwner, outcomeOf, PASSWORD, tryLogIn } from '../support/application.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const HOUR_MS = 3_600_000;
const NOBODYS_TOKEN = `fs_${'A'.repeat(43)}`;

let pod: Pod;
let sql: Sql;
let admin: Admin;

before(async () => {
  const { url } = await createDatabase();
  admin = adminOf(url);
  sql = openSql(url, { maxConnections: 4, name: 'test' });
  pod = await startPod(url);
  await makeOwner(admin, OWNER);
});
after(async () => {
  await pod.stop();
  await sql.end();
});

const opens = async (token: string): Promise<boolean> => {
  const reply = await callApi(pod, 'GET', '/v1/keys', { token });
  if (reply.status === 200) return true;
  assert.equal(outcomeOf(reply), '403 API_KEY_REQUIRED');
  return false;
};

/** Forgets all attempts, so that no test uses up those of another. */
const forgetAttempts = () => sql`delete from login_window`;

describe('201: a login', () => {
  test('gives a token that lives for twelve hours, and is not to be kept by anybody on the way', async () => {
    const beforeMs = Date.now();
    const { status, body, headers } = await tryLogIn(pod, OWNER, PASSWORD);
    assert.equal(status, 201);
    assert.deepEqual(Object.keys(body), ['data', 'meta']);
    assert.deepEqual(Object.keys(body.data), ['token', 'expires_at']);
    assert.deepEqual(body.meta, {});
    const livesMs = Date.parse(body.data.expires_at) - beforeMs;
    assert.ok(Math.abs(livesMs - 12 * HOUR_MS) < 60_000, body.data.expires_at);
    assert.match(body.data.expires_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.equal(headers.get('set-cookie'), null);
    assert.equal(await opens(body.data.token), true);
  });

  test('is stored as the SHA-256 of its token and nothing else of it', async () => {
    const token = await logIn(pod, OWNER);
    const [row] = await sql<{ fingerprint: Buffer; everything: string }[]>`
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

  test('does not look at the credentials that the request carries besides', async () => {
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

  test('leaves the sessions before it alone, all at once too, up to fifty; then the oldest ends', async () => {
    await forgetAttempts();
    await makeOwner(admin, 'many@example.com');
    const tokens = await Promise.all(Array.from({ length: 5 }, () => logIn(pod, 'many@example.com')));
    assert.equal(new Set(tokens).size, 5);
    assert.deepEqual(
      await Promise.all(tokens.map(opens)),
      tokens.map(() => true),
    );
    await sql`
      insert into session (account_id, fingerprint, expires_at)
      select id, sha256(n::text::bytea), now() + interval '1 hour'
      from account, generate_series(1, 46) n where email = 'many@example.com'`;
    const newest = await logIn(pod, 'many@example.com');
    const live = await Promise.all([...tokens, newest].map(opens));
    assert.equal(live.filter(Boolean).length, 4, 'of 52, the two oldest have ended');
    assert.equal(live.at(-1), true);
  });
});

describe('403 FORBIDDEN: a login with anything wrong', () => {
  test('is answered alike whatever it is, so that nobody learns which accounts there are', async () => {
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

  test('when the stored hash is of another kind: nothing fits it', async () => {
    await admin.account('imported@example.com');
    await sql`update account set password_hash = '$2b$10$abc' where email = 'imported@example.com'`;
    assert.equal(outcomeOf(await tryLogIn(pod, 'imported@example.com', '$2b$10$abc')), '403 FORBIDDEN');
  });

  const CHANGES: [what: string, change: (tx: Tx, email: string) => Promise<unknown>][] = [
    [
      'the password changes',
      (tx, email) => tx`update account set password_hash = 'x' where email = ${email}`,
    ],
    [
      'the account is deactivated',
      (tx, email) => tx`update account set active = false where email = ${email}`,
    ],
  ];
  for (const [what, change] of CHANGES) {
    test(`opens no session when ${what} while the password is being checked`, async () => {
      await forgetAttempts();
      const email = `${what.replaceAll(' ', '.')}@example.com`;
      await makeOwner(admin, email);
      const racing = await sql.begin(async (tx) => {
        await tx`select from account where email = ${email} for update`;
        const reply = tryLogIn(pod, email, PASSWORD);
        // The password fits; the login waits for the account.
        await waitFor(async () => {
          const waiting = await sql`
            select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
          return waiting.length > 0;
        });
        await change(tx, email);
        return { reply };
      });
      assert.equal(outcomeOf(await racing.reply), '403 FORBIDDEN');
      const opened = await sql`
        select 1 from session s join account a on a.id = s.account_id where a.email = ${email}`;
      assert.equal(opened.length, 0);
    });
  }
});

describe('422 VALIDATION_ERROR: a login', () => {
  const CASES: [body: unknown, type: string, faults: string[]][] = [
    ['{}', 'application/json', ['email REQUIRED', 'password REQUIRED']],
    [`{"email":"${OWNER}"}`, 'application/json', ['password REQUIRED']],
    ['{"email":7,"password":7}', 'application/json', ['email INVALID', 'password INVALID']],
    ['', 'application/json', ['null INVALID_BODY']],
    ['[]', 'application/json', ['null INVALID_BODY']],
    ['null', 'application/json', ['null INVALID_BODY']],
    ['{"email":', 'application/json', ['null INVALID_BODY']],
    ['[[['.repeat(1_000), 'application/json', ['null INVALID_BODY']],
    [`{"email":${'{"a":'.repeat(200)}1${'}'.repeat(200)}}`, 'application/json', ['null INVALID_BODY']],
    [Buffer.from('ff00ff', 'hex'), 'application/json', ['null INVALID_BODY']],
    [`{"email":"${OWNER}","password":"x"}`, 'text/plain', ['null INVALID_BODY']],
    [`email=${OWNER}&password=x`, 'application/x-www-form-urlencoded', ['null INVALID_BODY']],
  ];
  for (const [body, type, expected] of CASES) {
    const shown = Buffer.isBuffer(body) ? 'bytes that are no text' : String(body).slice(0, 40);
    test(`of ${shown} as ${type}`, async () => {
      const reply = await callApi(pod, 'POST', '/v1/session', { body, headers: { 'Content-Type': type } });
      assert.equal(outcomeOf(reply), '422 VALIDATION_ERROR');
      assert.deepEqual(
        reply.body.error.details.map(
          ({ field, code }: { field: string; code: string }) => `${field} ${code}`,
        ),
        expected,
      );
    });
  }

  test('of more than 4 KB is 413, of 4 KB it is read', async () => {
    const padded = (bytes: number) => `{"email":7,"padding":"${'x'.repeat(bytes - 24)}"}`;
    for (const [bytes, expected] of [
      [4096, '422 VALIDATION_ERROR'],
      [4097, '413 PAYLOAD_TOO_LARGE'],
    ] as const) {
      const reply = await callApi(pod, 'POST', '/v1/session', { body: padded(bytes) });
      assert.equal(padded(bytes).length, bytes);
      assert.equal(outcomeOf(reply), expected);
    }
  });

  test('is 400 when it is compressed, however small it is, and nothing is unpacked', async () => {
    const body = brotliCompressSync(Buffer.from(`{"x":[${'{},'.repeat(340_000)}{}]}`));
    assert.ok(body.length < 100);
    for (const encoding of ['br', 'gzip', 'deflate', 'zip']) {
      const headers = { 'Content-Type': 'application/json', 'Content-Encoding': encoding };
      const reply = await callApi(pod, 'POST', '/v1/session', { body, headers });
      assert.equal(outcomeOf(reply), '400 BAD_REQUEST', encoding);
      assert.match(reply.text, /must not be compressed/);
    }
    const plain = { 'Content-Type': 'application/json', 'Content-Encoding': 'identity' };
    const reply = await callApi(pod, 'POST', '/v1/session', { body: '{}', headers: plain });
    assert.equal(outcomeOf(reply), '422 VALIDATION_ERROR');
  });

  test('takes a field that is sent twice for what it was last', async () => {
    const twice = `{"email":"x@example.com","email":"${OWNER}","password":${JSON.stringify(PASSWORD)},"__proto__":{"a":1}}`;
    await forgetAttempts();
    assert.equal((await callApi(pod, 'POST', '/v1/session', { body: twice })).status, 201);
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
    await sql`update session set expires_at = clock_timestamp() where fingerprint = ${fingerprint}`;
    assert.deepEqual([await opens(late), await opens(live)], [false, true]);
    const say = () => assert.fail('nothing is to be told');
    await tidy({ sql, clock: Date.now, log: { info: say, warn: say } });
    assert.equal((await sql`select 1 from session where fingerprint = ${fingerprint}`).length, 0);
    assert.equal(await opens(live), true);
  });

  const ENDINGS: [how: string, run: (email: string) => Promise<unknown>][] = [
    ['a new password', (email) => admin.run('account:update', '--email', email, '--password', 'another')],
    [
      'the same password set anew',
      (email) => admin.run('account:update', '--email', email, '--password', PASSWORD),
    ],
    ['a deactivation', (email) => admin.run('account:deactivate', '--email', email)],
    [
      'a deactivation that was taken back',
      async (email) => {
        await admin.run('account:deactivate', '--email', email);
        await admin.run('account:activate', '--email', email);
      },
    ],
    // Whoever writes into the database by hand.
    [
      'a deactivation past the commands',
      (email) => sql`update account set active = false where email = ${email}`,
    ],
  ];
  for (const [how, run] of ENDINGS) {
    test(`with ${how} of its account, from the next call on, and no other account's`, async () => {
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

describe('403 API_KEY_REQUIRED: a token', () => {
  test('that is missing, malformed, unknown, ended or a key is answered alike', async () => {
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

test('a login counts how the hash was made then, not how it is made now', async () => {
  const salt = Buffer.alloc(16, 1);
  const hash = scryptSync(PASSWORD, salt, 32, { N: 1024, r: 8, p: 1 });
  await admin.account('old@example.com');
  const stored = `scrypt$1024$8$1$${salt.toString('base64url')}$${hash.toString('base64url')}`;
  await sql`update account set password_hash = ${stored} where email = 'old@example.com'`;
  await logIn(pod, 'old@example.com');
});
