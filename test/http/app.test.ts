import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { CidrSet } from '../../src/access/cidrSet.ts';
import { scopeMask } from '../../src/access/scopes.ts';
import { DeadlineExceeded } from '../../src/base/deadline.ts';
import type { Admittance } from '../../src/flows/admit.ts';
import type { SessionAdmittance } from '../../src/flows/admitSession.ts';
import { createApp } from '../../src/http/app.ts';
import type { Operation } from '../../src/http/openapi/operation.ts';
import { BOTH_VERSIONS, type Route } from '../../src/http/route.ts';
import { createHttpServer } from '../../src/http/server.ts';
import { bareRequest, type Reply } from '../support/pod.ts';
import { newBodyPorts } from '../support/workTurns.ts';

interface Line {
  readonly level: string;
  readonly fields: { err?: unknown };
}

const THING: Operation = { id: 'getThing', tag: 'Devices', summary: 'Read a thing', answers: [] };

/** The app around one route, admitting everybody, with what it logged. */
async function serve(t: TestContext, handle: Route['handle'], loaded = true) {
  const lines: Line[] = [];
  const observed: string[] = [];
  const log = (level: string) => (fields: object) => void lines.push({ level, fields });
  const scopes = scopeMask('read_devices');
  const admittance = { admit: () => ({ kind: 'admitted', caller: { scopes } }) };
  const server = createHttpServer(
    createApp({
      ...newBodyPorts(),
      admittance: admittance as unknown as Admittance,
      sessions: admittance as unknown as SessionAdmittance,
      routes: [
        { method: 'GET', path: '/things/:id', scopes, versions: BOTH_VERSIONS, describe: THING, handle },
      ],
      trustedProxies: new CidrSet([]),
      clock: () => 0,
      probes: { loaded: () => loaded, ready: () => loaded },
      log: { error: log('error'), warn: log('warn') },
      observe: (route, method, status) => void observed.push(`${method} ${route} ${status}`),
    }),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const get = (path: string): Promise<Reply> => bareRequest(`http://127.0.0.1:${port}${path}`);
  return { get, lines, observed };
}

const fine: Route['handle'] = () => ({ status: 200, body: '{}' });

describe('503', () => {
  test('until memory is filled nothing is answered but the probes, and v3 says that it is a beta', async (t) => {
    const { get, lines } = await serve(t, fine, false);
    for (const path of ['/', '/api/v2/things/1', '/api/v3/things/1', '/api/v3', '/unknown']) {
      const { status, body, headers } = await get(path);
      assert.deepEqual([status, body.error.code], [503, 'SERVICE_UNAVAILABLE'], path);
      assert.equal(headers.get('x-api-status'), path.startsWith('/api/v3') ? 'beta' : null);
      assert.equal(headers.get('retry-after'), null);
    }
    assert.equal((await get('/healthz')).status, 200);
    assert.equal((await get('/readyz')).status, 503);
    assert.deepEqual(lines, []);
  });

  test('a database that cannot be asked is no fault of this service', async (t) => {
    const { get, lines } = await serve(t, () => Promise.reject(new DeadlineExceeded('too slow')));
    for (const version of ['v2', 'v3']) {
      const { status, body, headers } = await get(`/api/${version}/things/1`);
      assert.deepEqual([status, body.error.code], [503, 'SERVICE_UNAVAILABLE']);
      assert.equal(headers.get('x-api-status'), version === 'v3' ? 'beta' : null);
    }
    assert.deepEqual(
      lines.map(({ level }) => level),
      ['warn', 'warn'],
    );
  });
});

describe('500', () => {
  for (const [name, handle] of [
    [
      'throws',
      () => {
        throw new Error('secret detail');
      },
    ],
    ['rejects', () => Promise.reject(new Error('secret detail'))],
    ['rejects with no error at all', () => Promise.reject('secret detail')],
  ] as [string, Route['handle']][]) {
    test(`a route that ${name} is answered with INTERNAL_ERROR, logged, and tells nothing`, async (t) => {
      const { get, lines } = await serve(t, handle);
      for (const version of ['v2', 'v3']) {
        const { status, body, text, headers } = await get(`/api/${version}/things/1?x=1`);
        assert.deepEqual([status, body.error.code], [500, 'INTERNAL_ERROR']);
        assert.doesNotMatch(text, /secret|Error:/);
        assert.equal(headers.get('x-api-status'), version === 'v3' ? 'beta' : null);
      }
      assert.deepEqual(
        lines.map(({ level }) => level),
        ['error', 'error'],
      );
    });
  }
});

test('every answer is observed once, by the pattern of its route and never by its path', async (t) => {
  const { get, observed } = await serve(t, fine);
  await get('/api/v2/things/350000000000001');
  await get('/api/v3/things/x?y=z');
  await get('/api/v3/unknown/350000000000001');
  await get('/elsewhere');
  assert.deepEqual(observed, [
    'GET /api/v2/things/:id 200',
    'GET /api/v3/things/:id 200',
    'GET other 404',
    'GET other 404',
  ]);
});
