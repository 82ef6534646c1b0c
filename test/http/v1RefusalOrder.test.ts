import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSql, type Sql } from '../../src/store/sql.ts';
import { adminOf } from '../support/admin.ts';
import { BEHIND_PROXY, logIn, makeOwner, PASSWORD } from '../support/application.ts';
import { type RawReply, rawRequest } from '../support/http.ts';
import { manualClock } from '../support/manualClock.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const KEY_MINUTE = 8;
const IP_MINUTE = 30;
const EXHAUSTED_IP = '198.51.100.99';
const NOWHERE = '/nowhere?limit=1&limit=2';

/** Who calls; each carries every fault that is judged later as well. */
type Caller =
  | 'nobody'
  | 'malformed'
  | 'unknown'
  | 'expired'
  | 'inactive'
  | 'key in Authorization'
  | 'exhausted session'
  | 'session'
  | 'revoked key'
  | 'exhausted key'
  | 'key'
  | 'revoked key and session'
  | 'key and session';

interface Attempt {
  readonly caller: Caller;
  readonly ip?: string;
  readonly method?: string;
  readonly path: string;
  readonly body?: string;
}

const REQUIRED = '403 API_KEY_REQUIRED';
const LIMITED = '429 TOO_MANY_REQUESTS';
const BAD_BODY = { method: 'PATCH', body: '{"name":""}' };

/** Attempts with fewer and fewer defects: what is refused first on v1. */
const TABLE: [first: string, attempt: Attempt, expected: string][] = [
  ['the IP limit', { ip: EXHAUSTED_IP, caller: 'malformed', path: NOWHERE }, LIMITED],
  ['the IP limit', { ip: EXHAUSTED_IP, caller: 'session', path: '/keys' }, LIMITED],
  [
    'the IP limit',
    { ip: EXHAUSTED_IP, caller: 'nobody', method: 'POST', path: '/session', body: '[' },
    LIMITED,
  ],
  ['the credentials', { caller: 'nobody', path: NOWHERE }, REQUIRED],
  ['the credentials', { caller: 'malformed', method: 'PUT', path: '/keys' }, REQUIRED],
  ['the credentials', { caller: 'unknown', method: 'PUT', path: '/session' }, REQUIRED],
  ['the credentials', { caller: 'expired', path: NOWHERE }, REQUIRED],
  ['the credentials', { caller: 'inactive', path: '/keys/x', ...BAD_BODY }, REQUIRED],
  ['the credentials', { caller: 'key in Authorization', path: '/keys' }, REQUIRED],
  ['the credentials', { caller: 'nobody', method: 'OPTIONS', path: '/session' }, REQUIRED],
  ['the credentials', { caller: 'revoked key', path: NOWHERE }, '403 API_KEY_REVOKED'],
  ['the key, with both headers', { caller: 'revoked key and session', path: '/keys' }, '403 API_KEY_REVOKED'],
  ['the limit', { caller: 'exhausted session', path: NOWHERE }, LIMITED],
  ['the limit', { caller: 'exhausted key', method: 'PUT', path: '/keys' }, LIMITED],
  ['an unknown route', { caller: 'key', method: 'PUT', path: NOWHERE }, '404 NOT_FOUND'],
  ['an unknown route', { caller: 'session', path: '/keys/1/nowhere' }, '404 NOT_FOUND'],
  ['an unknown route', { caller: 'session', path: '' }, '404 NOT_FOUND'],
  ['the method', { caller: 'key', method: 'DELETE', path: '/keys/x?a=1&a=2' }, '405 METHOD_NOT_ALLOWED'],
  ['the method', { caller: 'session', method: 'PUT', path: '/session' }, '405 METHOD_NOT_ALLOWED'],
  ['the method', { caller: 'session', method: 'GET', path: '/keys/1/revoke' }, '405 METHOD_NOT_ALLOWED'],
  ['the permission', { caller: 'key', path: '/keys/x?a=1&a=2', ...BAD_BODY }, '403 FORBIDDEN'],
  ['the permission', { caller: 'key and session', path: '/keys/x', ...BAD_BODY }, '403 FORBIDDEN'],
  ['the permission', { caller: 'key', method: 'DELETE', path: '/session' }, '403 FORBIDDEN'],
  ['the query', { caller: 'session', path: '/keys/1?a=1&a=2', ...BAD_BODY }, '400 BAD_REQUEST'],
  ['the id', { caller: 'session', path: '/keys/x', ...BAD_BODY }, '400 BAD_REQUEST'],
  ['the body', { caller: 'session', path: '/keys/999', ...BAD_BODY }, '422 VALIDATION_ERROR'],
  ['the look-up', { caller: 'session', path: '/keys/999', method: 'PATCH', body: '{}' }, '404 NOT_FOUND'],
  ['nothing', { caller: 'session', path: '/keys' }, '200'],
  ['nothing', { caller: 'key', method: 'HEAD', path: '/keys' }, '200'],
  ['nothing', { caller: 'session', method: 'OPTIONS', path: '/keys/1' }, '204'],
];

describe('a call of v1 with several defects is refused for the first in the fixed order', () => {
  const clock = manualClock(Date.now());
  const headersOf = new Map<Caller, Record<string, string>>([['nobody', {}]]);
  let pod: Pod;
  let sql: Sql;
  let ips = 0;

  const send = ({ ip, caller, method = 'GET', path, body }: Attempt): Promise<RawReply> => {
    ips++;
    const headers = {
      'X-Forwarded-For': ip ?? `203.0.113.${ips}`,
      'Content-Type': 'application/json',
      'X-API-Version': 'v9',
      ...headersOf.get(caller),
    };
    return rawRequest(pod.api, `/api/v1${path}`, { method, headers, ...(body !== undefined && { body }) });
  };
  const times = async (count: number, attempt: Attempt): Promise<void> => {
    for (let n = 0; n < count; n++) await send(attempt);
  };

  before(async () => {
    const { url } = await createDatabase();
    const admin = adminOf(url);
    sql = openSql(url, { maxConnections: 1, name: 'test' });
    for (const name of ['owner', 'inactive', 'busy']) await makeOwner(admin, `${name}@example.com`);
    pod = await startPod(url, {
      clock,
      env: {
        ...BEHIND_PROXY,
        RATE_LIMIT_KEY_MINUTE: String(KEY_MINUTE),
        RATE_LIMIT_IP_MINUTE: String(IP_MINUTE),
      },
    });
    const session = async (caller: Caller, name: string) => {
      const token = await logIn(pod, `${name}@example.com`, PASSWORD, '192.0.2.1');
      headersOf.set(caller, { Authorization: `Bearer ${token}` });
    };
    await session('expired', 'owner');
    await sql`update session set expires_at = clock_timestamp()`;
    await session('session', 'owner');
    await session('inactive', 'inactive');
    await session('exhausted session', 'busy');
    await admin.run('account:deactivate', '--email', 'inactive@example.com');
    headersOf.set('malformed', { Authorization: 'Bearer x' });
    headersOf.set('unknown', { Authorization: `Bearer fs_${'A'.repeat(43)}` });
    const key = async (caller: Caller) => {
      const made = await admin.key('owner@example.com');
      headersOf.set(caller, { 'X-API-Key': made.key });
      return made;
    };
    await key('exhausted key');
    const { key: fine } = await key('key');
    const { id: revokedId } = await key('revoked key');
    await admin.run('key:revoke', '--id', String(revokedId));
    headersOf.set('key in Authorization', { Authorization: `Bearer ${fine}` });
    for (const caller of ['key', 'revoked key'] as const) {
      headersOf.set(`${caller} and session`, { ...headersOf.get('session'), ...headersOf.get(caller) });
    }
  });
  after(async () => {
    await pod.stop();
    await sql.end();
  });

  for (const [first, attempt, expected] of TABLE) {
    test(`${first}: ${attempt.caller}, ${attempt.method ?? 'GET'} ${attempt.path}`, async () => {
      clock.set(clock() + 61_000); // a new minute, so that no row uses up the calls of another
      if (attempt.ip === EXHAUSTED_IP) {
        await times(IP_MINUTE, { ip: EXHAUSTED_IP, caller: 'nobody', path: NOWHERE });
      }
      if (attempt.caller.startsWith('exhausted')) {
        await times(KEY_MINUTE, { caller: attempt.caller, path: NOWHERE });
      }
      const { status, headers, text } = await send(attempt);
      const code = text === '' ? undefined : JSON.parse(text).error?.code;
      assert.equal([status, ...(code === undefined ? [] : [code])].join(' '), expected, text);
      assert.deepEqual([headers['deprecation'], headers['sunset']], ['true', '2027-03-08']);
      for (const name of Object.keys(headers))
        assert.doesNotMatch(name, /ratelimit|retry-after|x-api-status/);
      if (status === 204 || status === 405) assert.match(headers.allow ?? '', /OPTIONS$/);
    });
  }

  test('the sessions of an account share the limits of one key, and its keys have their own', async () => {
    clock.set(clock() + 61_000);
    const other = await logIn(pod, 'owner@example.com', PASSWORD, '192.0.2.1');
    headersOf.set('unknown', { Authorization: `Bearer ${other}` });
    await times(KEY_MINUTE / 2, { caller: 'session', path: NOWHERE });
    await times(KEY_MINUTE / 2, { caller: 'unknown', path: '/keys' });
    for (const caller of ['session', 'unknown'] as const) {
      assert.equal((await send({ caller, path: '/keys' })).status, 429);
    }
    assert.equal((await send({ caller: 'key', path: '/keys' })).status, 200);
  });

  test('a session that is refused for its limits gives its address the count back', async () => {
    clock.set(clock() + 61_000);
    const at = { ip: '192.0.2.200', path: '/keys' };
    await times(IP_MINUTE + 5, { caller: 'exhausted session', ...at });
    assert.equal((await send({ caller: 'key', ...at })).status, 200);
  });
});
