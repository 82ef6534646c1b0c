import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { BEHIND_PROXY, logIn, makeOwner, PASSWORD } from '../support/http/application.ts';
import { type RawReply, rawRequest } from '../support/http/http.ts';
import { manualClock } from '../support/manualClock.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const KEY_MINUTE = 8;
const IP_MINUTE = 30;
const EXHAUSTED_IP = '198.51.100.99';

/** Who calls, by what is wrong with it; each would be refused for what is checked later as well. */
type Caller =
  | 'nobody'
  | `${'unknown' | 'revoked' | 'inactive' | 'blocked' | 'exhausted' | 'scopeless' | 'good'} key`
  | `${'malformed' | 'unknown' | 'expired' | 'inactive' | 'exhausted' | 'good'} session`
  | 'good key in Authorization'
  | 'revoked key and good session'
  | 'good key and good session';

type Version = 'v1' | 'v2' | 'v3' | 'webhooks';
interface More {
  readonly ip?: string;
  readonly apiVersion?: string;
  readonly body?: string;
}
type Row = readonly [
  first: string,
  versions: readonly Version[],
  caller: Caller,
  request: string,
  expected: string,
  more?: More,
];

const ALL = ['v1', 'v2', 'v3', 'webhooks'] as const;
const BY_KEY = ['v2', 'v3', 'webhooks'] as const;
const BY_SESSION = ['v1', 'webhooks'] as const;
const READ = ['v2', 'v3'] as const;

const REQUIRED = '403 API_KEY_REQUIRED';
const LIMITED = '429 TOO_MANY_REQUESTS';
const NO_ROUTE = '404 NOT_FOUND';
const NO_METHOD = '405 METHOD_NOT_ALLOWED';
const NO_SCOPE = '403 INSUFFICIENT_SCOPE';
const MALFORMED = '400 BAD_REQUEST';

// What else is wrong with a request, so that an earlier error hides something.
const NOWHERE = '/nowhere/at/all?limit=1&limit=2';
const DEVICE = '/devices/350000000000099';
const FROM_EXHAUSTED = { ip: EXHAUSTED_IP, apiVersion: 'v9' };
const BAD_VERSION = { apiVersion: 'v9' };
const BAD_BODY = { body: '{"name":"","active":7}' };

/** Requests with fewer and fewer defects, and what is checked first of those that are left. */
const TABLE: readonly Row[] = [
  ['the limit of the address', ALL, 'nobody', `GET ${NOWHERE}`, LIMITED, FROM_EXHAUSTED],
  ['the limit of the address', ALL, 'revoked key', `GET ${NOWHERE}`, LIMITED, FROM_EXHAUSTED],
  ['the limit of the address', READ, 'exhausted key', 'GET /devices', LIMITED, FROM_EXHAUSTED],
  ['the limit of the address', ['v1'], 'good session', 'GET /keys', LIMITED, FROM_EXHAUSTED],
  ['the limit of the address', ['v1'], 'nobody', 'POST /session', LIMITED, { ...FROM_EXHAUSTED, body: '[' }],
  ['the credentials', ALL, 'nobody', `GET ${NOWHERE}`, REQUIRED, BAD_VERSION],
  ['the credentials', READ, 'nobody', 'PUT /devices', REQUIRED],
  ['the credentials', ['v1'], 'nobody', 'OPTIONS /session', REQUIRED],
  ['the credentials', ALL, 'unknown key', `GET ${NOWHERE}`, '403 API_KEY_INVALID', BAD_VERSION],
  ['the credentials', BY_SESSION, 'malformed session', `PUT ${NOWHERE}`, REQUIRED],
  ['the credentials', BY_SESSION, 'unknown session', `GET ${NOWHERE}`, REQUIRED],
  ['the credentials', BY_SESSION, 'expired session', `GET ${NOWHERE}`, REQUIRED],
  ['the credentials', BY_SESSION, 'inactive session', `GET ${NOWHERE}`, REQUIRED],
  ['the credentials', ALL, 'good key in Authorization', `GET ${NOWHERE}`, REQUIRED],
  ['whether the key is revoked', ALL, 'revoked key', `GET ${NOWHERE}`, '403 API_KEY_REVOKED', BAD_VERSION],
  ['the key of two', BY_SESSION, 'revoked key and good session', `GET ${NOWHERE}`, '403 API_KEY_REVOKED'],
  ['the owner', ALL, 'inactive key', `GET ${NOWHERE}`, '403 API_KEY_OWNER_INACTIVE', BAD_VERSION],
  ['the allowlist', ALL, 'blocked key', `GET ${NOWHERE}`, '403 API_KEY_IP_BLOCKED', BAD_VERSION],
  ['the limit of the key', ALL, 'exhausted key', `GET ${NOWHERE}`, LIMITED, BAD_VERSION],
  ['the limit of the key', BY_SESSION, 'exhausted session', `GET ${NOWHERE}`, LIMITED],
  ['X-API-Version', ['v2'], 'scopeless key', `GET ${NOWHERE}`, MALFORMED, BAD_VERSION],
  ['X-API-Version', ['v2'], 'scopeless key', 'PUT /devices', MALFORMED, BAD_VERSION],
  ['the route', BY_KEY, 'scopeless key', `PUT ${NOWHERE}`, NO_ROUTE],
  ['the route', ['v1'], 'good key', `PUT ${NOWHERE}`, NO_ROUTE],
  ['the route', ['v1'], 'good session', 'GET /keys/1/nowhere', NO_ROUTE],
  ['the method', READ, 'scopeless key', 'PUT /devices/12x?limit=1&limit=2', NO_METHOD],
  ['the method', READ, 'scopeless key', 'PUT /devices//location', NO_METHOD],
  ['the method', READ, 'scopeless key', 'PUT /devices/%zz', NO_METHOD],
  ['the method', ['webhooks'], 'scopeless key', 'PATCH /x?limit=1&limit=2', NO_METHOD],
  ['the method', ['v1'], 'good key', 'DELETE /keys/x?a=1&a=2', NO_METHOD],
  ['the permission', READ, 'scopeless key', 'GET /devices/12x?limit=1&limit=2', NO_SCOPE],
  ['the permission', READ, 'scopeless key', 'GET /devices//location', NO_SCOPE],
  ['the permission', READ, 'scopeless key', 'GET /devices/%ff?limit=1&limit=2', NO_SCOPE],
  ['the permission', READ, 'scopeless key', 'GET /devices/nearest', NO_SCOPE],
  ['the permission', READ, 'scopeless key', 'GET /events?type=x&from=y', NO_SCOPE],
  ['the permission', ['webhooks'], 'scopeless key', 'PUT /x?limit=1&limit=2', NO_SCOPE, BAD_BODY],
  ['the permission', ['v1'], 'good key', 'PATCH /keys/x?a=1&a=2', '403 FORBIDDEN', BAD_BODY],
  ['the permission', ['v1'], 'good key and good session', 'PATCH /keys/x', '403 FORBIDDEN', BAD_BODY],
  ['the parameters', READ, 'good key', `GET ${DEVICE}?limit=1&limit=2`, MALFORMED],
  ['the parameters', READ, 'good key', `GET ${DEVICE}/history?from=x`, MALFORMED],
  ['the parameters', READ, 'good key', 'GET /devices/12x/history', MALFORMED],
  ['the parameters', READ, 'good key', 'GET /devices/%zz', MALFORMED],
  ['the parameters', READ, 'good key', 'GET /devices//location', '400 IMEI_REQUIRED'],
  ['the parameters', ['webhooks'], 'good key', 'PUT /1?limit=1&limit=2', MALFORMED, BAD_BODY],
  ['the parameters', ['webhooks'], 'good key', 'PUT /x', MALFORMED, BAD_BODY],
  ['the parameters', ['v1'], 'good session', 'PATCH /keys/1?a=1&a=2', MALFORMED, BAD_BODY],
  ['the parameters', ['v1'], 'good session', 'PATCH /keys/x', MALFORMED, BAD_BODY],
  ['the body', ['webhooks'], 'good key', 'PUT /999', '422 VALIDATION_ERROR', BAD_BODY],
  ['the body', ['v1'], 'good session', 'PATCH /keys/999', '422 VALIDATION_ERROR', BAD_BODY],
  ['what is asked for', READ, 'good key', `GET ${DEVICE}/history`, '404 DEVICE_NOT_FOUND'],
  ['what is asked for', ['webhooks'], 'good key', 'PUT /999', NO_ROUTE, { body: '{}' }],
  ['what is asked for', ['v1'], 'good session', 'PATCH /keys/999', NO_ROUTE, { body: '{}' }],
];

describe('of a request with several defects is checked first', () => {
  const clock = manualClock(Date.now());
  const headersOf = new Map<Caller, Record<string, string>>([
    ['nobody', {}],
    ['unknown key', { 'X-API-Key': `fk_${'A'.repeat(43)}` }],
    ['malformed session', { Authorization: 'Bearer x' }],
    ['unknown session', { Authorization: `Bearer fs_${'A'.repeat(43)}` }],
  ]);
  let pod: Pod;
  let ips = 0;

  const send = (version: Version, caller: Caller, request: string, { ip, apiVersion, body }: More = {}) => {
    const [method = '', path] = request.split(' ');
    ips++;
    return rawRequest(pod.api, `/api/${version}${path}`, {
      method,
      headers: {
        'X-Forwarded-For': ip ?? `198.18.${ips >> 8}.${ips & 255}`,
        'Content-Type': 'application/json',
        ...(apiVersion === undefined ? {} : { 'X-API-Version': apiVersion }),
        ...headersOf.get(caller),
      },
      ...(body === undefined ? {} : { body }),
    });
  };
  const times = async (count: number, ...[version, caller, request, more]: Parameters<typeof send>) => {
    for (let n = 0; n < count; n++) await send(version, caller, request, more);
  };
  /** A new minute, so that no row uses up the calls of another. */
  const nextMinute = () => clock.set(clock() + 61_000);

  before(async () => {
    const { url } = await createDatabase();
    const admin = adminOf(url);
    for (const name of ['owner', 'inactive', 'busy']) await makeOwner(admin, `${name}@example.com`);
    const limits = { RATE_LIMIT_KEY_MINUTE: String(KEY_MINUTE), RATE_LIMIT_IP_MINUTE: String(IP_MINUTE) };
    pod = await startPod(url, { clock, env: { ...BEHIND_PROXY, ...limits, ROLES: 'api,ingest' } });
    const key = async (caller: Caller, name: string, options: Parameters<typeof admin.key>[1] = {}) => {
      const made = await admin.key(`${name}@example.com`, { scopes: 'read_history_summary', ...options });
      headersOf.set(caller, { 'X-API-Key': made.key });
      return made;
    };
    const allow = '192.0.2.1';
    const { id: revoked } = await key('revoked key', 'inactive', { allow });
    await key('inactive key', 'inactive', { allow });
    await key('blocked key', 'owner', { allow });
    await key('exhausted key', 'owner');
    await key('scopeless key', 'owner');
    const { key: good } = await key('good key', 'owner', { scopes: 'all' });
    headersOf.set('good key in Authorization', { Authorization: `Bearer ${good}` });
    const session = async (caller: Caller, name: string) => {
      const token = await logIn(pod, `${name}@example.com`, PASSWORD, '192.0.2.1');
      headersOf.set(caller, { Authorization: `Bearer ${token}` });
    };
    await session('expired session', 'owner');
    await admin.sql((sql) => sql`update session set expires_at = clock_timestamp()`);
    await session('good session', 'owner');
    await session('inactive session', 'inactive');
    await session('exhausted session', 'busy');
    for (const caller of ['good key', 'revoked key'] as const) {
      const both = { ...headersOf.get('good session'), ...headersOf.get(caller) };
      headersOf.set(`${caller} and good session`, both);
    }
    await admin.run('key:revoke', '--id', String(revoked));
    await admin.run('account:deactivate', '--email', 'inactive@example.com');
  });
  after(() => pod.stop());

  function assertDenied(
    version: Version,
    { status, headers, text }: RawReply,
    expected: string,
    first: string,
  ) {
    const { error } = JSON.parse(text);
    // v2 says in words which limit was exceeded and which permission is missing.
    if (typeof error !== 'string') assert.equal(`${status} ${error.code}`, expected);
    else
      assert.ok(
        version === 'v2' && [LIMITED, NO_SCOPE].includes(expected) && expected.startsWith(`${status}`),
      );
    const message = error.message ?? error;
    if (status === 429) assert.match(message, first.endsWith('address') ? /per IP address/ : /per key/);
    assert.equal(headers['x-api-status'], version === 'v3' ? 'beta' : undefined);
    assert.equal(headers['deprecation'], version === 'v1' ? 'true' : undefined);
    if (status === 405) assert.match(headers.allow ?? '', /OPTIONS$/);
    for (const name of Object.keys(headers)) assert.doesNotMatch(name, /ratelimit|retry-after/);
  }

  for (const [first, versions, caller, request, expected, more = {}] of TABLE) {
    test(`${first}, on ${versions.join(', ')}: ${request} by ${caller}`, async () => {
      nextMinute();
      if (more.ip === EXHAUSTED_IP) await times(IP_MINUTE, 'v2', 'nobody', `GET ${NOWHERE}`, more);
      if (caller.startsWith('exhausted')) await times(KEY_MINUTE, 'webhooks', caller, `GET ${NOWHERE}`);
      for (const version of versions) {
        // With a trailing slash a polled route is answered by the router.
        for (const spelling of request.startsWith('GET')
          ? [request, request.replace(/(?=\?|$)/, '/')]
          : [request])
          assertDenied(version, await send(version, caller, spelling, more), expected, first);
      }
    });
  }

  test('nothing, when there are none', async () => {
    nextMinute();
    assert.equal((await send('v1', 'good session', 'GET /keys')).status, 200);
    assert.equal((await send('v1', 'good key', 'HEAD /keys')).status, 200);
    assert.equal((await send('v1', 'good session', 'OPTIONS /keys/1', { apiVersion: 'v9' })).status, 204);
    assert.equal((await send('v3', 'good key', 'GET /devices', { apiVersion: 'v9' })).status, 200);
  });

  test('a limit that the sessions of an account share, and its keys do not', async () => {
    nextMinute();
    const other = await logIn(pod, 'owner@example.com', PASSWORD, '192.0.2.1');
    headersOf.set('unknown session', { Authorization: `Bearer ${other}` });
    await times(KEY_MINUTE / 2, 'v1', 'good session', `GET ${NOWHERE}`);
    await times(KEY_MINUTE / 2, 'v1', 'unknown session', 'GET /keys');
    for (const caller of ['good session', 'unknown session'] as const)
      assert.equal((await send('v1', caller, 'GET /keys')).status, 429);
    assert.equal((await send('v1', 'good key', 'GET /keys')).status, 200);
  });

  test('the limit of a session, which gives its address the count back', async () => {
    nextMinute();
    const at = { ip: '192.0.2.200' };
    await times(IP_MINUTE + 5, 'v1', 'exhausted session', 'GET /keys', at);
    assert.equal((await send('v1', 'good key', 'GET /keys', at)).status, 200);
  });
});
