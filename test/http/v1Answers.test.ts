import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import { pino } from 'pino';
import { fingerprint } from '../../src/access/apiKey.ts';
import { CidrSet } from '../../src/access/cidrSet.ts';
import { ANYBODY } from '../../src/access/scopes.ts';
import { NOBODY } from '../../src/access/sessionCaller.ts';
import { DeadlineExceeded } from '../../src/base/deadline.ts';
import type { Admittance } from '../../src/flows/admit.ts';
import type { SessionAdmittance } from '../../src/flows/admitSession.ts';
import { createApp } from '../../src/http/app.ts';
import type { Route } from '../../src/http/route.ts';
import { createHttpServer } from '../../src/http/server.ts';
import { openSql } from '../../src/store/sql.ts';
import { adminOf } from '../support/admin.ts';
import { callApi, logIn, makeOwner, outcomeOf, PASSWORD, tryLogIn } from '../support/application.ts';
import { exchange, type RawReply, rawRequest } from '../support/http.ts';
import { NO_LIMITS, type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { newBodyPorts } from '../support/workTurns.ts';

const OWNER = 'owner@example.com';
const SCREEN = { name: 'Depot screen', scopes: ['read_devices'], allowlist: [] };

/** The app around one v1 route, with what it logged. */
async function serve(t: TestContext, handle: Route['handle'], loaded = true) {
  const lines: string[] = [];
  const log = (fields: object) => void lines.push(JSON.stringify(fields));
  const admit = () => ({ kind: 'admitted', caller: NOBODY });
  const ports = {
    ...newBodyPorts(),
    admittance: { admit } as unknown as Admittance,
    sessions: { admit, admitAnybody: admit } as unknown as SessionAdmittance,
    routes: [{ method: 'POST', path: '/session', scopes: ANYBODY, versions: ['v1'], handle } as const],
    trustedProxies: new CidrSet([]),
    clock: () => 0,
    probes: { loaded: () => loaded, ready: () => loaded },
    log: { error: log, warn: log },
    observe: () => undefined,
  };
  const server = createHttpServer(createApp(ports));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const post = (path: string): Promise<RawReply> =>
    rawRequest(`http://127.0.0.1:${port}`, path, { method: 'POST' });
  return { post, lines };
}

const marks = ({ headers }: RawReply) => [headers['deprecation'], headers['sunset']];

const assertMarked = (reply: RawReply, status: number): void => {
  assert.equal(reply.status, status);
  assert.deepEqual(marks(reply), ['true', '2027-03-08']);
};

describe('every answer of v1 says that it is deprecated and until when it is there', () => {
  test('500', async (t) => {
    const { post } = await serve(t, () => {
      throw new Error('secret detail');
    });
    const reply = await post('/api/v1/session');
    assertMarked(reply, 500);
    assert.doesNotMatch(reply.text, /secret/);
  });

  test('503, of a database that cannot be asked and of a service that is starting', async (t) => {
    const lost = await serve(t, () => Promise.reject(new DeadlineExceeded('too slow')));
    assertMarked(await lost.post('/api/v1/session'), 503);
    const starting = await serve(t, () => assert.fail('it was asked'), false);
    for (const path of ['/api/v1', '/api/v1/session', '/api/v1/keys']) {
      assertMarked(await starting.post(path), 503);
    }
  });

  test('and no answer of another prefix does', async (t) => {
    const { post } = await serve(t, () => ({ status: 200, body: '{}' }));
    for (const path of [
      '/api/v2/keys',
      '/api/v3/keys',
      '/api/webhooks/a/b/c',
      '/api/v10',
      '/api/v11/keys',
      '/x',
    ]) {
      assert.deepEqual(marks(await post(path)), [undefined, undefined], path);
    }
  });
});

describe('v1 behind its listener', () => {
  const logged: string[] = [];
  const secrets: string[] = [PASSWORD, 'a wrong secret password'];
  let pod: Pod;
  let token: string;
  let key: string;
  let stop: () => Promise<void>;

  before(async () => {
    const { url } = await createDatabase();
    const admin = adminOf(url);
    const sql = openSql(url, { maxConnections: 1, name: 'test' });
    const log = pino({ level: 'trace' }, { write: (line: string) => void logged.push(line) });
    pod = await startPod(url, { log, env: NO_LIMITS });
    await makeOwner(admin, OWNER);
    token = await logIn(pod, OWNER);
    ({ key } = await admin.key(OWNER));
    const [row] = await sql<{ password_hash: string }[]>`select password_hash from account`;
    secrets.push(token, fingerprint(token), key, fingerprint(key), row?.password_hash ?? '');
    stop = async () => {
      await sql.end();
      await pod.stop();
    };
  });
  after(() => stop());

  const REQUESTS: [
    method: string,
    path: string,
    as: 'session' | 'key' | 'nobody',
    status: number,
    body?: string,
  ][] = [
    ['POST', '/session', 'nobody', 422, '{}'],
    ['POST', '/session', 'nobody', 403, `{"email":"${OWNER}","password":"a wrong secret password"}`],
    ['POST', '/session', 'nobody', 413, 'x'.repeat(1024 * 1024 + 1)],
    ['POST', '/session?a=1&a=2', 'nobody', 400, '{}'],
    ['GET', '/keys', 'nobody', 403],
    ['GET', '', 'nobody', 403],
    ['OPTIONS', '/keys', 'nobody', 403],
    ['GET', '/keys', 'session', 200],
    ['GET', '/keys/', 'session', 200],
    ['HEAD', '/keys', 'key', 200],
    ['OPTIONS', '/keys', 'key', 204],
    ['OPTIONS', '/session', 'session', 204],
    ['POST', '/keys', 'key', 403, JSON.stringify(SCREEN)],
    ['POST', '/keys', 'session', 201, JSON.stringify(SCREEN)],
    ['POST', '/keys', 'session', 422, '{"name":'],
    ['PATCH', '/keys/x', 'session', 400, '{}'],
    ['PATCH', '/keys/%zz', 'session', 400, '{}'],
    ['PATCH', '/keys/', 'session', 405, '{}'],
    ['PATCH', '/keys/999', 'session', 404, '{}'],
    ['POST', '/keys//revoke', 'session', 400],
    ['GET', '/session', 'session', 405],
    ['GET', '/Keys', 'session', 404],
    ['GET', '/nowhere', 'key', 404],
    ['GET', '', 'key', 404],
    ['GET', '/', 'key', 404],
  ];
  for (const [method, path, as, status, body] of REQUESTS) {
    test(`${status}: ${method} ${path || '(the prefix)'} as ${as} ${(body ?? '').slice(0, 20)}`, async () => {
      const credentials = {
        session: { Authorization: `Bearer ${token}` },
        key: { 'X-API-Key': key },
        nobody: {},
      };
      const { headers, ...reply } = await rawRequest(pod.api, `/api/v1${path}`, {
        method,
        headers: { ...credentials[as], 'Content-Type': 'application/json' },
        ...(body !== undefined && { body }),
      });
      assert.equal(reply.status, status, reply.text);
      assert.deepEqual([headers['deprecation'], headers['sunset']], ['true', '2027-03-08']);
      assert.equal(headers['x-content-type-options'], 'nosniff');
    });
  }

  test('headers that are sent twice or are odd open nothing and break nothing', async () => {
    const get = async (...lines: string[]): Promise<string> => {
      const text = await exchange(pod.api, [
        `GET /api/v1/keys HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`,
      ]);
      const [, status] = /^HTTP\/1\.1 (\d+)/.exec(text) ?? [];
      return `${status} ${/"code":"(\w+)"/.exec(text)?.[1] ?? ''}`.trim();
    };
    const bearer = `Authorization: Bearer ${token}`;
    assert.equal(await get(bearer), '200');
    assert.equal(await get(bearer, bearer), '403 API_KEY_REQUIRED');
    assert.equal(await get(bearer, 'Authorization: Bearer x'), '403 API_KEY_REQUIRED');
    assert.equal(await get('Authorization: Bearer x', bearer), '403 API_KEY_REQUIRED');
    assert.equal(await get(`X-API-Key: ${key}`), '200');
    assert.equal(await get(`X-API-Key: ${key}`, `X-API-Key: ${key}`), '403 API_KEY_INVALID');
    assert.equal(await get(bearer, 'X-API-Key: ', 'X-API-Key: '), '403 API_KEY_INVALID');
    assert.equal(await get(`authorization: bEARER   ${token}`), '200');
    assert.equal(await get(`Authorization: Bearer ${token}\u00e9`), '403 API_KEY_REQUIRED');
    assert.equal(await get(`Authorization: ${'x'.repeat(15_000)}`), '403 API_KEY_REQUIRED');
    assert.equal(await get(`Authorization: Bearer ${'fs_A'.repeat(5_000)}`), '431 HEADERS_TOO_LARGE');
    assert.equal(await get(bearer, 'X-API-Version: v1'), '200');
    assert.equal(await get(bearer, 'X-API-Version: v2', 'X-API-Version: v3'), '200');
  });

  test('no answer and no line of the log shows a token, a key, a password or a hash of one', async () => {
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
      '403 FORBIDDEN',
      '200',
      '200',
      '200',
      '422 VALIDATION_ERROR',
      '422 VALIDATION_ERROR',
      '422 VALIDATION_ERROR',
      '204',
      '403 API_KEY_REQUIRED',
    ]);
    const said = [...replies.map(({ text, headers }) => text + JSON.stringify([...headers])), ...logged].join(
      '\n',
    );
    for (const secret of secrets) assert.ok(secret.length > 10 && !said.includes(secret));
    assert.ok(logged.length > 0, 'the log is looked at');
  });
});
