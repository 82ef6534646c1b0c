import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { MINUTE_MS } from '../../src/lib/time.ts';
import { type RawReply, rawRequest } from '../support/http/http.ts';
import { manualClock } from '../support/manualClock.ts';
import { NO_LIMITS, type Pod, startPod } from '../support/pod.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const OWNER = 'owner@example.com';

const clock = manualClock(Date.now());
let admin: Admin;
/** Without trusted proxies; behind one; and behind one with low limits. */
let bare: Pod;
let proxied: Pod;
let limited: Pod;
before(async () => {
  const { url } = await createDatabase();
  admin = adminOf(url);
  await admin.account(OWNER);
  const proxy = { TRUST_PROXY: '127.0.0.1, 10.0.0.0/8' };
  const limits = { RATE_LIMIT_KEY_MINUTE: '3', RATE_LIMIT_KEY_HOUR: '5', RATE_LIMIT_IP_MINUTE: '5' };
  [bare, proxied, limited] = await Promise.all([
    startPod(url),
    startPod(url, { env: { ...NO_LIMITS, ...proxy } }),
    startPod(url, { env: { ...proxy, ...limits }, clock }),
  ]);
});
after(() => Promise.all([bare, proxied, limited].map((pod) => pod.stop())));

const codeOf = ({ status, text }: RawReply): string => {
  const { error } = JSON.parse(text) as { error?: { code: string } };
  return error === undefined ? String(status) : `${status} ${error.code}`;
};

describe('only X-API-Key carries a key', () => {
  let key: string;
  before(async () => {
    ({ key } = await admin.key(OWNER));
  });

  const UNKNOWN = `fk_${'A'.repeat(43)}`;
  const cases = (): [name: string, headers: Record<string, string | string[]>, expected: string][] => [
    ['a key alone', { 'X-API-Key': key }, '200'],
    ['whatever the case of the header', { 'x-aPi-kEy': key }, '200'],
    ['no key', {}, '403 API_KEY_REQUIRED'],
    ['an empty key', { 'X-API-Key': '' }, '403 API_KEY_REQUIRED'],
    ['a key as a bearer token', { Authorization: `Bearer ${key}` }, '403 API_KEY_REQUIRED'],
    ['a key as a password', { Authorization: `Basic ${btoa(`key:${key}`)}` }, '403 API_KEY_REQUIRED'],
    ['a key beside a token that is none', { 'X-API-Key': key, Authorization: 'Bearer x' }, '200'],
    ['a key beside itself as a token', { 'X-API-Key': key, Authorization: `Bearer ${key}` }, '200'],
    [
      'an unknown key beside a known one',
      { 'X-API-Key': UNKNOWN, Authorization: `Bearer ${key}` },
      '403 API_KEY_INVALID',
    ],
    ['an unknown key', { 'X-API-Key': UNKNOWN }, '403 API_KEY_INVALID'],
    ['two keys', { 'X-API-Key': [key, key] }, '403 API_KEY_INVALID'],
    ['a known and an unknown key', { 'X-API-Key': [UNKNOWN, key] }, '403 API_KEY_INVALID'],
    ['a key and more', { 'X-API-Key': `${key}x` }, '403 API_KEY_INVALID'],
    ['a key in other letters', { 'X-API-Key': key.toUpperCase() }, '403 API_KEY_INVALID'],
    ['no text at all', { 'X-API-Key': '\u0001ÿ'.slice(1) }, '403 API_KEY_INVALID'],
    ['an endless key', { 'X-API-Key': 'k'.repeat(8_000) }, '403 API_KEY_INVALID'],
  ];
  for (const version of ['v2', 'v3']) {
    test(version, async () => {
      for (const [name, headers, expected] of cases()) {
        const reply = await rawRequest(bare.api, `/api/${version}/devices`, { headers });
        assert.equal(codeOf(reply), expected, name);
        assert.equal(reply.headers['x-api-status'], version === 'v3' ? 'beta' : undefined);
      }
      const inQuery = await rawRequest(bare.api, `/api/${version}/devices?api_key=${key}&x-api-key=${key}`);
      assert.equal(codeOf(inQuery), '403 API_KEY_REQUIRED');
    });
  }
});

describe('an allowlist lets in who is on it and nobody else', () => {
  const ALLOWED = '203.0.113.7';
  const LISTS = { single: ALLOWED, network: '203.0.113.0/24', six: '2001:db8::7' };
  const keys: Record<keyof typeof LISTS, string> = { single: '', network: '', six: '' };
  before(async () => {
    for (const [name, allow] of Object.entries(LISTS)) {
      ({ key: keys[name as keyof typeof LISTS] } = await admin.key(OWNER, { allow }));
    }
  });

  const IN = '200';
  const OUT = '403 API_KEY_IP_BLOCKED';
  const call = async (pod: Pod, name: keyof typeof LISTS, headers: Record<string, string | string[]>) =>
    codeOf(
      await rawRequest(pod.api, '/api/v3/devices', { headers: { 'X-API-Key': keys[name], ...headers } }),
    );

  test('without trusted proxies no header makes an address', async () => {
    const names = [
      'X-Forwarded-For',
      'X-Real-IP',
      'Forwarded',
      'X-Client-IP',
      'CF-Connecting-IP',
      'True-Client-IP',
    ];
    for (const name of names) {
      for (const value of [ALLOWED, `for=${ALLOWED}`])
        assert.equal(await call(bare, 'single', { [name]: value }), OUT);
    }
  });

  test('an empty list restricts nobody', async () => {
    const { key } = await admin.key(OWNER);
    for (const pod of [bare, proxied]) assert.equal((await pod.get('/api/v3/devices', key)).status, 200);
  });

  const FORWARDED: [name: string, key: keyof typeof LISTS, value: string | string[], expected: string][] = [
    ['the address itself', 'single', ALLOWED, IN],
    ['with a port', 'single', `${ALLOWED}:51234`, IN],
    ['mapped into IPv6', 'single', `::ffff:${ALLOWED}`, IN],
    ['through a further trusted proxy', 'single', `${ALLOWED}, 10.1.2.3`, IN],
    ['in two headers', 'single', [ALLOWED, '10.1.2.3'], IN],
    ['just outside of the network', 'network', '203.0.114.0', OUT],
    ['IPv6 in brackets', 'six', '[2001:db8::7]', IN],
    ['another address', 'single', '203.0.113.8', OUT],
    ['another address of the same IPv6 network', 'six', '2001:db8::8', OUT],
    ['no header: the proxy itself', 'single', [], OUT],
    ['forged in front of the true one', 'single', `${ALLOWED}, 198.51.100.1`, OUT],
    ['forged in a header of its own', 'single', [ALLOWED, '198.51.100.1'], OUT],
    ['forged behind an untrusted hop', 'single', `${ALLOWED}, 198.51.100.1, 10.1.2.3`, OUT],
  ];
  for (const [name, key, value, expected] of FORWARDED) {
    test(`behind a trusted proxy: ${name}: ${expected}`, async () => {
      assert.equal(await call(proxied, key, { 'X-Forwarded-For': value }), expected);
    });
  }

  test('headers before the true X-Forwarded-For do not push it out', async () => {
    const { key } = await admin.key(OWNER, { allow: '127.0.0.1' });
    const headers: Record<string, string> = { 'X-API-Key': key };
    for (let n = 0; n < 900; n++) headers[`A${n}`] = '1';
    // A caller's flood, and behind it what the proxy on 127.0.0.1 has added.
    headers['X-Forwarded-For'] = '198.51.100.1';
    assert.equal(codeOf(await rawRequest(proxied.api, '/api/v3/devices', { headers })), OUT);
  });
});

describe('429', () => {
  let addresses = 0;
  const call = (path: string, key: string | undefined, ip: string) =>
    limited.get(path, key, { 'X-Forwarded-For': ip });
  /** What each limit is by default is a table in test/config.test.ts. */
  const passTime = (minutes: number) => clock.set(clock() + minutes * MINUTE_MS);

  test('names the limit: as a string on v2, with a code on v3, without headers that say more', async () => {
    const { key } = await admin.key(OWNER);
    const exhaust = async (count: number) => {
      for (let n = 0; n < count; n++)
        assert.equal((await call(`/api/v${2 + (n % 2)}/devices`, key, `192.0.2.${++addresses}`)).status, 200);
    };
    const rejected = async (message: string) => {
      const v2 = await call('/api/v2/devices', key, '198.51.100.1');
      assert.deepEqual([v2.status, v2.body], [429, { error: message }]);
      const v3 = await call('/api/v3/devices', key, '198.51.100.2');
      assert.deepEqual([v3.status, v3.body], [429, { error: { code: 'TOO_MANY_REQUESTS', message } }]);
      assert.equal(v3.headers.get('x-api-status'), 'beta');
      for (const { headers } of [v2, v3]) {
        assert.deepEqual(
          [...headers.keys()].filter((name) => /retry|limit/i.test(name)),
          [],
        );
      }
    };
    await exhaust(3);
    await rejected('rate limit exceeded: requests per key per minute');
    passTime(1);
    await exhaust(2);
    await rejected('rate limit exceeded: requests per key per hour');
    passTime(59);
    await exhaust(3);
  });

  test('an address over its limit gets nothing from the API, but the probes', async () => {
    const { key } = await admin.key(OWNER);
    const ip = '203.0.113.50';
    for (let n = 0; n < 9; n++)
      assert.equal((await call('/healthz', undefined, ip)).status, 200, 'not counted');
    for (let n = 0; n < 4; n++) assert.equal((await call('/api/v2/devices', undefined, ip)).status, 403);
    assert.equal((await call('/api/v3/unknown', key, ip)).status, 404);
    const message = 'rate limit exceeded: requests per IP address per minute';
    assert.deepEqual((await call('/api/v2/devices', key, ip)).body, { error: message });
    assert.equal((await call('/api/v3/devices', key, ip)).body.error.message, message);
    assert.equal((await call('/readyz', undefined, ip)).status, 200);
    passTime(1);
    assert.equal((await call('/api/v3/devices', key, ip)).status, 200);
  });

  test('an IPv6 network of 64 bits has the limit of one address', async () => {
    const from = async (ip: string, path = '/api/v3/devices') => (await call(path, undefined, ip)).status;
    for (let n = 0; n < 5; n++) assert.equal(await from(`2001:db8:1:2::${n}`), 403);
    assert.equal(await from('2001:db8:1:2:ffff::1'), 429);
    assert.equal(await from('2001:db8:1:2::9', '/api/v1/keys'), 429, 'calls with a session count alike');
    assert.equal(await from('2001:db8:1:3::1'), 403, 'its neighbour has its own');
  });
});
