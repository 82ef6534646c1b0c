import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fingerprint } from '../../src/access/apiKey.ts';
import { openSql, type Sql } from '../../src/store/sql.ts';
import { type Admin, adminOf } from '../support/admin.ts';
import {
  BEHIND_PROXY,
  type CallOptions,
  callApi,
  faceOf,
  logIn,
  makeOwner,
  outcomeOf,
} from '../support/application.ts';
import { NO_LIMITS, type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { waitFor } from '../support/waitFor.ts';

const FIELDS = ['id', 'name', 'prefix', 'scopes', 'allowlist', 'created_at', 'last_used_at', 'revoked_at'];
const SCREEN = { name: 'Depot screen', scopes: ['read_devices', 'read_locations'], allowlist: [] };

let pod: Pod;
let sql: Sql;
let admin: Admin;
let owner: string;
let colleague: string;

before(async () => {
  const { url } = await createDatabase();
  admin = adminOf(url);
  sql = openSql(url, { maxConnections: 4, name: 'test' });
  pod = await startPod(url, { env: { ...NO_LIMITS, ...BEHIND_PROXY } });
  await makeOwner(admin, 'owner@example.com', '--organization', 'Acme');
  await makeOwner(admin, 'colleague@example.com', '--organization', 'Acme');
  owner = await logIn(pod, 'owner@example.com');
  colleague = await logIn(pod, 'colleague@example.com');
});
after(async () => {
  await pod.stop();
  await sql.end();
});

const keys = (method: string, path: string, options: CallOptions = {}): Promise<Reply> =>
  callApi(pod, method, `/v1/keys${path}`, { token: owner, ...options });

/** A new key of the owner: its settings, and the key. */
async function make(body: object = SCREEN) {
  const { status, text, body: answer } = await keys('POST', '', { body });
  assert.equal(status, 201, text);
  return answer.data as { id: number; key: string; prefix: string; [field: string]: unknown };
}

const patch = async (id: number, body: unknown) => {
  const { status, text, body: answer } = await keys('PATCH', `/${id}`, { body });
  assert.equal(status, 200, text);
  return answer.data;
};

const opens = async (key: string, path = '/v3/devices', ip = '192.0.2.1'): Promise<string> =>
  outcomeOf(await callApi(pod, 'GET', path, { key, ip }));

describe('a new key', () => {
  test('is shown once, with its settings, and opens what was granted', async () => {
    const reply = await keys('POST', '', { body: { ...SCREEN, name: ' Depot screen ' } });
    assert.equal(reply.status, 201);
    const { id, key, prefix, created_at } = reply.body.data;
    assert.deepEqual(reply.body, {
      data: {
        id,
        name: 'Depot screen',
        prefix: key.slice(0, 6),
        scopes: ['read_devices', 'read_locations'],
        allowlist: [],
        created_at,
        last_used_at: null,
        revoked_at: null,
        key,
      },
      meta: {},
    });
    assert.match(key, /^fk_[A-Za-z0-9]{43}$/);
    assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000);
    assert.equal(prefix.length, 6);
    assert.equal(reply.headers.get('location'), `/api/v1/keys/${id}`);
    assert.equal(reply.headers.get('cache-control'), 'no-store');
    assert.deepEqual(
      [await opens(key), await opens(key, '/v3/areas'), await opens(key, '/v2/devices')],
      ['200', '403 INSUFFICIENT_SCOPE', '200'],
    );
    const [row] = await sql<{ fingerprint: Buffer; row: string }[]>`
      select fingerprint, api_key::text as row from api_key where id = ${id}`;
    assert.equal(row?.fingerprint.toString('hex'), fingerprint(key));
    assert.ok(!row.row.includes(key.slice(6)), 'the key is not stored');
  });

  test('may be used from its allowlist only', async () => {
    const { key } = await make({ ...SCREEN, allowlist: ['192.0.2.0/24', '2001:db8::1'] });
    assert.deepEqual(
      [
        await opens(key, '/v3/devices', '192.0.2.77'),
        await opens(key, '/v3/devices', '2001:db8:0::1'),
        await opens(key, '/v3/devices', '198.51.100.1'),
      ],
      ['200', '200', '403 API_KEY_IP_BLOCKED'],
    );
  });

  test('is refused with every field that is wrong, and nothing is made', async () => {
    const before = (await keys('GET', '?limit=200')).body.data.length;
    const body = { name: '', scopes: ['read_devices', 'fly'], allowlist: Array(51).fill('192.0.2.1') };
    const reply = await keys('POST', '', { body });
    assert.equal(outcomeOf(reply), '422 VALIDATION_ERROR');
    assert.deepEqual(
      reply.body.error.details.map((detail: object) => Object.keys(detail)),
      Array(3).fill(['field', 'code', 'message']),
    );
    assert.deepEqual(
      reply.body.error.details.map(({ field, code }: { field: string; code: string }) => [field, code]),
      [
        ['name', 'REQUIRED'],
        ['scopes', 'INVALID'],
        ['allowlist', 'TOO_LONG'],
      ],
    );
    assert.doesNotMatch(reply.text, /fly/);
    assert.equal((await keys('GET', '?limit=200')).body.data.length, before);
  });

  test('is the last one when the account has a thousand that are not revoked', async () => {
    await makeOwner(admin, 'many@example.com');
    const token = await logIn(pod, 'many@example.com');
    await sql`
      insert into api_key (account_id, fingerprint, prefix, scopes, revoked_at)
      select id, sha256(n::text::bytea), 'fk_abc', '{read_devices}', case when n > 999 then now() end
      from account, generate_series(1, 1100) n where email = 'many@example.com'`;
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => keys('POST', '', { token, body: SCREEN })),
    );
    assert.deepEqual(replies.map(outcomeOf).toSorted(), ['201', ...Array(9).fill('422 VALIDATION_ERROR')]);
    const refused = replies.find(({ status }) => status === 422);
    assert.deepEqual(refused?.body.error.details[0].code, 'LIMIT_REACHED');
  });
});

describe('the list of keys', () => {
  test('shows those of the account, revoked ones too, by id, a page at a time, and never a key', async () => {
    const first = await make({ ...SCREEN, name: 'first' });
    const second = await make({ ...SCREEN, name: 'second' });
    await keys('POST', `/${second.id}/revoke`);
    const { body, text } = await keys('GET', '?limit=200');
    const ids = body.data.map(({ id }: { id: number }) => id);
    assert.deepEqual(
      ids,
      ids.toSorted((a: number, b: number) => a - b),
    );
    assert.deepEqual(body.meta, { pagination: { limit: 200, offset: 0, count: ids.length } });
    for (const key of body.data) assert.deepEqual(Object.keys(key), FIELDS);
    const shown = body.data.find(({ id }: { id: number }) => id === second.id);
    assert.match(shown.revoked_at, /Z$/);
    for (const { key } of [first, second]) {
      assert.ok(!text.includes(key.slice(6)) && !text.includes(fingerprint(key)));
    }
    const page = await keys('GET', `?limit=1&offset=${ids.indexOf(second.id)}`);
    assert.deepEqual(page.body.data, [shown]);
    assert.deepEqual((await keys('GET', '?limit=0&offset=x')).body.meta.pagination, {
      limit: 1,
      offset: 0,
      count: 1,
    });
    const { body: other } = await keys('GET', '', { token: colleague });
    assert.deepEqual(other.data, [], 'members of an organization do not share their keys');
  });

  test('shows a key without a name that an administrator made', async () => {
    const { id } = await admin.key('owner@example.com', { scopes: 'read_areas', allow: '10.0.0.0/8' });
    const { body } = await keys('GET', '?limit=200');
    const { created_at: _, prefix: __, ...shown } = body.data.find((key: { id: number }) => key.id === id);
    assert.deepEqual(shown, {
      id,
      name: null,
      scopes: ['read_areas'],
      allowlist: ['10.0.0.0/8'],
      last_used_at: null,
      revoked_at: null,
    });
  });

  test('tells when a key was last used, within seconds, and not of calls that were refused', async () => {
    const [used, refused] = [await make(), await make({ ...SCREEN, allowlist: ['203.0.113.1'] })];
    await opens(used.key);
    await opens(refused.key);
    const lastUse = async (id: number): Promise<string | null> => {
      const { body } = await keys('GET', '?limit=200');
      return body.data.find((key: { id: number }) => key.id === id).last_used_at;
    };
    await waitFor(async () => (await lastUse(used.id)) !== null);
    assert.ok(Math.abs(Date.parse((await lastUse(used.id)) ?? '') - Date.now()) < 60_000);
    assert.equal(await lastUse(refused.id), null);
  });
});

describe('PATCH changes a key', () => {
  test('in what is sent, from the next call on', async () => {
    const { id, key } = await make();
    assert.equal(await opens(key, '/v3/areas'), '403 INSUFFICIENT_SCOPE');
    const widened = await patch(id, { scopes: ['read_areas'] });
    assert.deepEqual(Object.keys(widened), FIELDS);
    assert.deepEqual([widened.name, widened.scopes], ['Depot screen', ['read_areas']]);
    assert.deepEqual([await opens(key, '/v3/areas'), await opens(key)], ['200', '403 INSUFFICIENT_SCOPE']);
    await patch(id, { allowlist: ['198.51.100.0/24'] });
    assert.equal(await opens(key, '/v3/areas'), '403 API_KEY_IP_BLOCKED');
    assert.equal(await opens(key, '/v3/areas', '198.51.100.7'), '200');
    const renamed = await patch(id, { name: 'Gate', allowlist: [] });
    assert.deepEqual([renamed.name, renamed.scopes, renamed.allowlist], ['Gate', ['read_areas'], []]);
    assert.equal(await opens(key, '/v3/areas'), '200');
  });

  test('in nothing when nothing is sent, nor by fields that are not the owner’s to set', async () => {
    const { key: _, ...made } = await make();
    const others = {
      id: 1,
      prefix: 'fk_xyz',
      created_at: null,
      last_used_at: 'x',
      revoked_at: 'now',
      key: 'x',
    };
    for (const body of [{}, { name: null, scopes: null, allowlist: null }, others]) {
      assert.deepEqual(await patch(made.id, body), made);
    }
  });

  test('not at all when any field is wrong', async () => {
    const { key: _, ...made } = await make();
    const reply = await keys('PATCH', `/${made.id}`, {
      body: { name: 'Gate', scopes: [], allowlist: ['x'] },
    });
    assert.equal(outcomeOf(reply), '422 VALIDATION_ERROR');
    assert.deepEqual(
      reply.body.error.details.map(({ field }: { field: string }) => field),
      ['scopes', 'allowlist'],
    );
    assert.deepEqual(await patch(made.id, {}), made);
  });

  test('also when it is revoked; it stays revoked whatever is sent', async () => {
    const { id, key } = await make();
    const { body: revoked } = await keys('POST', `/${id}/revoke`);
    const edited = await patch(id, {
      name: 'Old',
      scopes: ['read_areas'],
      revoked_at: null,
      revoked: false,
      active: true,
    });
    assert.deepEqual(edited, { ...revoked.data, name: 'Old', scopes: ['read_areas'] });
    assert.equal(await opens(key, '/v3/areas'), '403 API_KEY_REVOKED');
  });
});

describe('a revocation', () => {
  test('holds from the next call on, for ever, and keeps its time when it is repeated', async () => {
    const { id, key } = await make();
    assert.equal(await opens(key), '200');
    const first = await keys('POST', `/${id}/revoke`);
    assert.equal(first.status, 200);
    assert.match(first.body.data.revoked_at, /Z$/);
    assert.equal(await opens(key), '403 API_KEY_REVOKED');
    assert.deepEqual((await keys('POST', `/${id}/revoke`, { body: 'anything' })).body, first.body);
    assert.equal(await opens(key), '403 API_KEY_REVOKED');
  });
});

describe('404 and 400', () => {
  const ROUTES: [method: string, after: string, body?: object][] = [
    ['PATCH', '', {}],
    ['PATCH', '', { name: 'Mine' }],
    ['POST', '/revoke'],
  ];

  test('a key of another account, of the same organization too, is like one that does not exist', async () => {
    const { id, key } = await make();
    for (const [method, after, body] of ROUTES) {
      const options = { token: colleague, ...(body && { body }) };
      const foreign = await keys(method, `/${id}${after}`, options);
      const unknown = await keys(method, `/999999999${after}`, options);
      assert.equal(outcomeOf(foreign), '404 NOT_FOUND');
      assert.deepEqual(faceOf(foreign), faceOf(unknown));
    }
    assert.equal(await opens(key), '200');
  });

  test('a malformed id is 400 before the body is judged, the body before the look-up', async () => {
    for (const id of ['0', '-1', '1.5', 'x', '9007199254740992', '%20', '1e3', '%00', '%zz']) {
      for (const [method, after] of ROUTES) {
        const options = method === 'PATCH' ? { body: [] } : {};
        assert.equal(outcomeOf(await keys(method, `/${id}${after}`, options)), '400 BAD_REQUEST', id);
      }
    }
    assert.equal(
      outcomeOf(await keys('PATCH', '/999999999', { body: { name: '' } })),
      '422 VALIDATION_ERROR',
    );
  });
});

describe('a key on v1', () => {
  test('reads the keys of its account, whatever its permissions, and manages none', async () => {
    const { id, key } = await make({ ...SCREEN, scopes: ['read_history_summary'] });
    const { key: everything } = await admin.key('owner@example.com');
    for (const using of [key, everything]) {
      const { body, status } = await callApi(pod, 'GET', '/v1/keys?limit=200', { key: using });
      assert.equal(status, 200);
      assert.deepEqual(body.data.map((shown: { id: number }) => shown.id).includes(id), true);
      for (const [method, path, body] of [
        ['POST', '/v1/keys', SCREEN],
        ['POST', '/v1/keys', []],
        ['PATCH', `/v1/keys/${id}`, { scopes: ['write_areas'] }],
        ['PATCH', '/v1/keys/x', {}],
        ['POST', `/v1/keys/${id}/revoke`, undefined],
        ['DELETE', '/v1/session', undefined],
      ] as const) {
        const reply = await callApi(pod, method, path, { key: using, body });
        assert.equal(outcomeOf(reply), '403 FORBIDDEN', `${method} ${path}`);
        // With both headers, X-API-Key decides.
        const both = await callApi(pod, method, path, { key: using, token: owner, body });
        assert.deepEqual(faceOf(both), faceOf(reply));
      }
    }
    assert.deepEqual((await patch(id, {})).scopes, ['read_history_summary']);
  });

  test('is refused as everywhere when it opens nothing', async () => {
    const { id, key } = await make();
    await keys('POST', `/${id}/revoke`);
    const { key: blocked } = await make({ ...SCREEN, allowlist: ['203.0.113.1'] });
    for (const [using, code] of [
      [key, 'API_KEY_REVOKED'],
      [blocked, 'API_KEY_IP_BLOCKED'],
      [`fk_${'A'.repeat(43)}`, 'API_KEY_INVALID'],
      ['x', 'API_KEY_INVALID'],
      [owner, 'API_KEY_INVALID'],
    ] as const) {
      assert.equal(await opens(using, '/v1/keys'), `403 ${code}`);
      const both = await callApi(pod, 'GET', '/v1/keys', { key: using, token: owner });
      assert.equal(outcomeOf(both), `403 ${code}`);
    }
  });
});
