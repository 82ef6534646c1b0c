import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pino } from 'pino';
import { fingerprint } from '../../src/access/credentials.ts';
import { callApi, logIn, outcomeOf, PASSWORD, setPassword, tryLogIn } from '../support/http/application.ts';
import { exchange, type RawReply, rawRequest } from '../support/http/http.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';

const SCREEN = { name: 'Depot screen', scopes: ['read_devices'], allowlist: [] };

const assertMarked = (reply: RawReply, status: number): void => {
  assert.equal(reply.status, status);
  const { headers } = reply;
  assert.deepEqual([headers['deprecation'], headers['sunset']], ['true', '2027-03-08']);
};

describe('v1', () => {
  const logged: string[] = [];
  const secrets: string[] = [PASSWORD, 'a wrong secret password'];
  let token: string;
  let key: string;
  const log = pino({ level: 'trace' }, { write: (line: string) => void logged.push(line) });
  const { pod } = ownerPod({ log }, async ({ pod, admin, sql, ...owner }) => {
    await setPassword(admin, OWNER);
    token = await logIn(pod, OWNER);
    ({ key } = owner);
    const [row] = await sql<{ password_hash: string }[]>`select password_hash from account`;
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
