import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { adminOf } from '../support/admin.ts';
import { rawRequest } from '../support/http.ts';
import { manualClock } from '../support/manualClock.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const KEY_MINUTE = 8;
const IP_MINUTE = 30;
const UNKNOWN_KEY = `fk_${'A'.repeat(43)}`;
const EXHAUSTED_IP = '198.51.100.99';

/** Keys by what is wrong with them; each carries every fault that is judged later as well. */
type Fault = 'unknown' | 'revoked' | 'inactive' | 'blocked' | 'exhausted' | 'scopeless' | 'fine';

interface Attempt {
  readonly ip?: string;
  readonly key: Fault | null;
  readonly method?: string;
  /** Below the version's prefix. */
  readonly path: string;
  readonly apiVersion?: string;
}

// What else is wrong with a request, so that an earlier refusal has something to hide.
const NOWHERE = '/nowhere?limit=1&limit=2';
const UNKNOWN_DEVICE = '/devices/350000000000099';

/** Attempts with fewer and fewer defects: what is refused first, on v2 and v3 (null: not refused there for that). */
const TABLE: [first: string, attempt: Attempt, v2: string | null, v3: string | null][] = [
  [
    'the IP limit',
    { ip: EXHAUSTED_IP, key: null, path: NOWHERE, apiVersion: 'v9' },
    '429',
    '429 TOO_MANY_REQUESTS',
  ],
  ['the IP limit', { ip: EXHAUSTED_IP, key: 'revoked', path: NOWHERE }, '429', '429 TOO_MANY_REQUESTS'],
  ['the IP limit', { ip: EXHAUSTED_IP, key: 'exhausted', path: '/devices' }, '429', '429 TOO_MANY_REQUESTS'],
  ['no key', { key: null, path: NOWHERE, apiVersion: 'v9' }, '403 API_KEY_REQUIRED', '403 API_KEY_REQUIRED'],
  ['no key', { key: null, method: 'PUT', path: '/devices' }, '403 API_KEY_REQUIRED', '403 API_KEY_REQUIRED'],
  [
    'an unknown key',
    { key: 'unknown', path: NOWHERE, apiVersion: 'v9' },
    '403 API_KEY_INVALID',
    '403 API_KEY_INVALID',
  ],
  [
    'a revoked key',
    { key: 'revoked', path: NOWHERE, apiVersion: 'v9' },
    '403 API_KEY_REVOKED',
    '403 API_KEY_REVOKED',
  ],
  [
    'an inactive owner',
    { key: 'inactive', path: NOWHERE, apiVersion: 'v9' },
    '403 API_KEY_OWNER_INACTIVE',
    '403 API_KEY_OWNER_INACTIVE',
  ],
  [
    'the allowlist',
    { key: 'blocked', path: NOWHERE, apiVersion: 'v9' },
    '403 API_KEY_IP_BLOCKED',
    '403 API_KEY_IP_BLOCKED',
  ],
  ['the key limit', { key: 'exhausted', path: NOWHERE, apiVersion: 'v9' }, '429', '429 TOO_MANY_REQUESTS'],
  ['X-API-Version', { key: 'scopeless', path: NOWHERE, apiVersion: 'v9' }, '400 BAD_REQUEST', null],
  [
    'X-API-Version',
    { key: 'scopeless', method: 'PUT', path: '/devices', apiVersion: 'v9' },
    '400 BAD_REQUEST',
    null,
  ],
  ['an unknown route', { key: 'scopeless', method: 'PUT', path: NOWHERE }, '404 NOT_FOUND', '404 NOT_FOUND'],
  [
    'the method',
    { key: 'scopeless', method: 'PUT', path: '/devices/12x?limit=1&limit=2' },
    '405 METHOD_NOT_ALLOWED',
    '405 METHOD_NOT_ALLOWED',
  ],
  [
    'the method',
    { key: 'scopeless', method: 'PUT', path: '/devices//location?limit=1&limit=2' },
    '405 METHOD_NOT_ALLOWED',
    '405 METHOD_NOT_ALLOWED',
  ],
  ['the scope', { key: 'scopeless', path: '/devices/12x?limit=1&limit=2' }, '403', '403 INSUFFICIENT_SCOPE'],
  [
    'the method',
    { key: 'scopeless', method: 'PUT', path: '/devices/%zz' },
    '405 METHOD_NOT_ALLOWED',
    '405 METHOD_NOT_ALLOWED',
  ],
  ['the scope', { key: 'scopeless', path: '/devices//location' }, '403', '403 INSUFFICIENT_SCOPE'],
  ['the scope', { key: 'scopeless', path: '/devices/%ff?limit=1&limit=2' }, '403', '403 INSUFFICIENT_SCOPE'],
  ['the scope', { key: 'scopeless', path: '/devices/%/history' }, '403', '403 INSUFFICIENT_SCOPE'],
  ['the scope', { key: 'scopeless', path: '/devices/nearest' }, '403', '403 INSUFFICIENT_SCOPE'],
  ['the scope', { key: 'scopeless', path: '/events?type=x&from=y' }, '403', '403 INSUFFICIENT_SCOPE'],
  [
    'the parameters',
    { key: 'fine', path: `${UNKNOWN_DEVICE}?limit=1&limit=2` },
    '400 BAD_REQUEST',
    '400 BAD_REQUEST',
  ],
  [
    'the parameters',
    { key: 'fine', path: `${UNKNOWN_DEVICE}/history?from=x` },
    '400 BAD_REQUEST',
    '400 BAD_REQUEST',
  ],
  [
    'the parameters',
    { key: 'fine', path: `${UNKNOWN_DEVICE}/commands?status=x` },
    '400 BAD_REQUEST',
    '400 BAD_REQUEST',
  ],
  ['the parameters', { key: 'fine', path: '/devices/12x/history' }, '400 BAD_REQUEST', '400 BAD_REQUEST'],
  ['the parameters', { key: 'fine', path: '/devices/%zz' }, '400 BAD_REQUEST', '400 BAD_REQUEST'],
  ['the parameters', { key: 'fine', path: '/devices//location' }, '400 IMEI_REQUIRED', '400 IMEI_REQUIRED'],
  [
    'the lookup',
    { key: 'fine', path: `${UNKNOWN_DEVICE}/history` },
    '404 DEVICE_NOT_FOUND',
    '404 DEVICE_NOT_FOUND',
  ],
];

describe('a request with several defects is refused for the first in the fixed order', () => {
  const clock = manualClock(Date.now());
  const keys = new Map<Fault, string>([['unknown', UNKNOWN_KEY]]);
  let pod: Pod;
  let ips = 0;

  const send = ({ ip, key, method = 'GET', path, apiVersion }: Attempt, version: string) => {
    ips++;
    const headers: Record<string, string> = { 'X-Forwarded-For': ip ?? `203.0.113.${ips}` };
    if (key !== null) headers['X-API-Key'] = keys.get(key) as string;
    if (apiVersion !== undefined) headers['X-API-Version'] = apiVersion;
    return rawRequest(pod.api, `/api/${version}${path}`, { method, headers });
  };

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    await admin.account('owner@example.com');
    await admin.account('inactive@example.com');
    const make = async (fault: Fault, email: string, allow?: string) => {
      const made = await admin.key(email, {
        scopes: fault === 'fine' ? 'all' : 'read_history_summary',
        ...(allow === undefined ? {} : { allow }),
      });
      keys.set(fault, made.key);
      return made.id;
    };
    const revoked = await make('revoked', 'inactive@example.com', '192.0.2.1');
    await make('inactive', 'inactive@example.com', '192.0.2.1');
    await make('blocked', 'owner@example.com', '192.0.2.1');
    await make('exhausted', 'owner@example.com');
    await make('scopeless', 'owner@example.com');
    await make('fine', 'owner@example.com');
    await admin.run('key:revoke', '--id', String(revoked));
    await admin.run('account:deactivate', '--email', 'inactive@example.com');
    pod = await startPod(database.url, {
      clock,
      env: {
        TRUST_PROXY: '127.0.0.0/8',
        RATE_LIMIT_KEY_MINUTE: String(KEY_MINUTE),
        RATE_LIMIT_IP_MINUTE: String(IP_MINUTE),
      },
    });
    for (let n = 0; n < IP_MINUTE; n++) await send({ ip: EXHAUSTED_IP, key: null, path: NOWHERE }, 'v2');
    for (let n = 0; n < KEY_MINUTE; n++) await send({ key: 'exhausted', path: NOWHERE }, 'v2');
  });

  after(() => pod.stop());

  for (const [first, attempt, v2, v3] of TABLE) {
    const story = [attempt.method ?? 'GET', attempt.path, `key: ${attempt.key}`].join(' ');
    test(`${first} before all that follows: ${story}`, async () => {
      clock.set(clock() + 61_000); // a new minute, so that no row uses up the calls of another
      if (attempt.ip === EXHAUSTED_IP) {
        for (let n = 0; n < IP_MINUTE; n++) await send({ ip: EXHAUSTED_IP, key: null, path: NOWHERE }, 'v2');
      }
      if (attempt.key === 'exhausted') {
        for (let n = 0; n < KEY_MINUTE; n++) await send({ key: 'exhausted', path: NOWHERE }, 'v3');
      }
      for (const [version, expected] of [
        ['v2', v2],
        ['v3', v3],
      ] as const) {
        if (expected === null) continue;
        const [status, code] = expected.split(' ');
        const { status: got, headers, text } = await send(attempt, version);
        const { error } = JSON.parse(text);
        assert.equal(String(got), status, `${version}: ${text}`);
        if (code !== undefined) assert.equal(error.code, code);
        else if (got === 429) assert.match(error, first === 'the IP limit' ? /per IP address/ : /per key/);
        else assert.equal(typeof error, 'string');
        for (const name of Object.keys(headers)) assert.doesNotMatch(name, /ratelimit|retry-after/);
        assert.equal(headers['x-api-status'], version === 'v3' ? 'beta' : undefined);
      }
    });
  }
});
