import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import type { Authorizer } from '../../src/access/authorizer.ts';
import { CidrSet } from '../../src/access/ipAddress.ts';
import { scopeMask } from '../../src/access/scopes.ts';
import type { Answer } from '../../src/http/answer.ts';
import { apiListener } from '../../src/http/dispatcher.ts';
import type { Operation } from '../../src/http/openapi/operation.ts';
import type { Route } from '../../src/http/route.ts';
import { createHttpServer } from '../../src/http/server.ts';
import { DeadlineExceeded } from '../../src/lib/time.ts';
import { bareRequest, type Reply } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';
import { newBodyPorts } from '../support/workTurns.ts';

const VERSIONS = ['v1', 'v2', 'v3'] as const;
const THING: Operation = { id: 'getThing', tag: 'Devices', summary: 'Read a thing', answers: [] };
const fine: Route['handle'] = () => ({ status: 200, body: '{}' });

/** The app around one route of every version, open to everybody, with the levels of what it logged. */
async function serve(t: TestContext, handle: Route['handle'], loaded = true) {
  const logged: string[] = [];
  const scopes = scopeMask('read_devices');
  const authorize = () => ({ kind: 'granted', caller: { scopes } });
  const authorizer = { authorize, authorizeSession: authorize };
  const route = {
    method: 'GET',
    path: '/things/:id',
    scopes,
    versions: VERSIONS,
    describe: THING,
    handle,
  } as const;
  const server = createHttpServer(
    apiListener({
      ...newBodyPorts(),
      authorizer: authorizer as unknown as Authorizer,
      routes: [route],
      trustedProxies: new CidrSet([]),
      clock: () => 0,
      probes: {
        loaded: () => loaded,
        canAnswer: () => true,
        degradations: () => [],
        writeTrouble: async () => null,
        lastWriteTrouble: () => null,
      },
      addPages: () => undefined,
      log: { error: () => void logged.push('error'), warn: () => void logged.push('warn') },
      onDamaged: () => assert.fail(),
      observe: () => undefined,
    }),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const get = (path: string, signal: AbortSignal | null = null): Promise<Reply> =>
    bareRequest(`http://127.0.0.1:${port}${path}`, { signal });
  return { get, logged };
}

/** v1 says that it is deprecated and until when it is there, v3 that it is a beta; nothing else does. */
function assertMarked({ headers }: Reply, path: string): void {
  const isV1 = /^\/api\/v1(\/|$)/.test(path);
  assert.deepEqual(
    [headers.get('deprecation'), headers.get('sunset'), headers.get('x-api-status')],
    [isV1 ? 'true' : null, isV1 ? '2027-03-08' : null, /^\/api\/v3(\/|$)/.test(path) ? 'beta' : null],
    path,
  );
}

test('a route that takes long can see that its caller has hung up', async (t) => {
  const began = Promise.withResolvers<() => boolean>();
  const answer = Promise.withResolvers<Answer>();
  const { get, logged } = await serve(t, ({ hasLeft }) => {
    began.resolve(hasLeft ?? (() => false));
    return answer.promise;
  });
  const caller = new AbortController();
  const asked = get('/api/v3/things/1', caller.signal);
  const hasLeft = await began.promise;
  assert.equal(hasLeft(), false);
  caller.abort();
  await assert.rejects(asked, { name: 'AbortError' });
  await waitFor(hasLeft);
  answer.resolve({ status: 200, body: '{}' });
  await answer.promise;
  assert.deepEqual(logged, []);
});

test('503 is the answer to everything but the probes while the service starts', async (t) => {
  const { get, logged } = await serve(t, fine, false);
  for (const path of [
    '/',
    '/unknown',
    ...VERSIONS.flatMap((v) => [`/api/${v}`, `/api/${v}/things/1`, `/api/${v}0`]),
  ]) {
    const reply = await get(path);
    assert.deepEqual([reply.status, reply.body.error.code], [503, 'SERVICE_UNAVAILABLE'], path);
    assert.equal(reply.headers.get('retry-after'), null);
    assertMarked(reply, path);
  }
  assert.deepEqual([(await get('/healthz')).status, (await get('/readyz')).status, logged], [200, 503, []]);
});

const secret = new Error('secret detail');
const failures: [what: string, handle: Route['handle'], expected: string, level: string][] = [
  ['throws', () => assert.fail(secret), '500 INTERNAL_ERROR', 'error'],
  ['rejects', () => Promise.reject(secret), '500 INTERNAL_ERROR', 'error'],
  ['rejects with no error at all', () => Promise.reject('secret detail'), '500 INTERNAL_ERROR', 'error'],
  [
    'cannot ask the database',
    () => Promise.reject(new DeadlineExceeded('secret detail')),
    '503 SERVICE_UNAVAILABLE',
    'warn',
  ],
];
describe('a route that', () => {
  for (const [what, handle, expected, level] of failures) {
    test(`${what} is answered with ${expected}, without its reason, and logged once`, async (t) => {
      const { get, logged } = await serve(t, handle);
      for (const version of VERSIONS) {
        const reply = await get(`/api/${version}/things/1?x=1`);
        assert.equal(`${reply.status} ${reply.body.error.code}`, expected);
        assert.doesNotMatch(reply.text, /secret|Error:/);
        assertMarked(reply, `/api/${version}`);
      }
      assert.deepEqual(logged, [level, level, level]);
    });
  }
});
