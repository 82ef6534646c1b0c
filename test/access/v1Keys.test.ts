import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fingerprint } from '../../src/access/credentials.ts';
import {
  BEHIND_PROXY,
  type CallOptions,
  callApi,
  faceOf,
  logIn,
  makeOwner,
  outcomeOf,
  setPassword,
} from '../support/http/application.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { NO_LIMITS, type Reply } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';

// Which bodies are taken is a table in test/tenants/keyBody.test.ts; each code is the answer to a request in
// codes.slow.test.ts.

const TIMES = ['created_at', 'last_used_at', 'revoked_at', 'expires_at'];
const FIELDS = ['id', 'name', 'prefix', 'scopes', 'allowlist', 'groups', ...TIMES];
const SCREEN = { name: 'Depot screen', scopes: ['read_devices', 'read_locations'], allowlist: [] };
const UNKNOWN_ID = 999_999_999;

const COLLEAGUE = 'colleague@example.com';
let token: string;
let colleague: string;
const owner = ownerPod({ env: { ...NO_LIMITS, ...BEHIND_PROXY } }, async ({ pod, admin }) => {
  await admin.run('account:update', '--email', OWNER, '--organization', 'Acme');
  await setPassword(admin, OWNER);
  await makeOwner(admin, COLLEAGUE, '--organization', 'Acme');
  token = await logIn(pod, OWNER);
  colleague = await logIn(pod, COLLEAGUE);
});
const { pod, admin } = owner;

interface ShownKey {
  readonly id: number;
  readonly [field: string]: unknown;
}

const keys = (method: string, path: string, options: CallOptions = {}): Promise<Reply> =>
  callApi(pod, method, `/v1/keys${path}`, { token, ...options });

/** A new key of the owner: its settings, and the key. */
async function make(body: object = SCREEN) {
  const { status, text, body: answer } = await keys('POST', '', { body });
  assert.equal(status, 201, text);
  return answer.data as ShownKey & { key: string; prefix: string };
}

async function patch(id: number, body: unknown): Promise<ShownKey> {
  const { status, text, body: answer } = await keys('PATCH', `/${id}`, { body });
  assert.equal(status, 200, text);
  return answer.data;
}

const list = async (): Promise<ShownKey[]> => (await keys('GET', '?limit=200')).body.data;
const opens = async (key: string, path = '/v3/devices', ip = '192.0.2.1'): Promise<string> =>
  outcomeOf(await callApi(pod, 'GET', path, { key, ip }));

describe('a new key', () => {
  test('is shown once, with its settings, and opens what was granted', async () => {
    const reply = await keys('POST', '', { body: { ...SCREEN, name: ' Depot screen ' } });
    assert.equal(reply.status, 201);
    const { id, key, created_at } = reply.body.data;
    const unused = { created_at, last_used_at: null, revoked_at: null, expires_at: null };
    assert.deepEqual(reply.body, {
      data: { id, ...SCREEN, prefix: key.slice(0, 6), groups: [], ...unused, key },
      meta: {},
    });
    assert.match(key, /^fk_[A-Za-z0-9]{43}$/);
    assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000);
    assert.equal(reply.headers.get('location'), `/api/v1/keys/${id}`);
    assert.equal(reply.headers.get('cache-control'), 'no-store');
    assert.deepEqual(
      [await opens(key), await opens(key, '/v3/areas'), await opens(key, '/v2/devices')],
      ['200', '403 INSUFFICIENT_SCOPE', '200'],
    );
    const [row] = await owner.sql<{ fingerprint: Buffer; row: string }[]>`
      select fingerprint, api_key::text as row from api_key where id = ${id}`;
    assert.equal(row?.fingerprint.toString('hex'), fingerprint(key));
    assert.ok(!row.row.includes(key.slice(6)), 'the key is not stored');
  });

  test('is the last one when the account has a thousand that can be used', async () => {
    await makeOwner(admin, 'many@example.com');
    const token = await logIn(pod, 'many@example.com');
    await owner.sql`
      insert into api_key (account_id, fingerprint, prefix, scopes, revoked_at, expires_at)
      select id, sha256(n::text::bytea), 'fk_abc', '{read_devices}', case when n > 1050 then now() end,
        case when n between 1000 and 1050 then now() when n < 10 then now() + interval '1 day' end
      from account, generate_series(1, 1100) n where email = 'many@example.com'`;
    const calls = Array.from({ length: 10 }, () => keys('POST', '', { token, body: SCREEN }));
    const outcomes = (await Promise.all(calls)).map(outcomeOf).toSorted();
    assert.deepEqual(outcomes, ['201', ...Array(9).fill('422 VALIDATION_ERROR')]);
  });
});

describe('the list of keys', () => {
  test('shows those of the account, also revoked ones, by id, a page at a time, and never a key', async () => {
    const [first, second] = [await make(), await make()];
    await keys('POST', `/${second.id}/revoke`);
    const { body, text } = await keys('GET', '?limit=200');
    const shown: ShownKey[] = body.data;
    const ids = shown.map(({ id }) => id);
    assert.deepEqual(
      ids,
      ids.toSorted((a, b) => a - b),
    );
    assert.deepEqual(body.meta, { pagination: { limit: 200, offset: 0, count: ids.length } });
    for (const key of shown) assert.deepEqual(Object.keys(key), FIELDS);
    for (const { key } of [first, second])
      assert.ok(!text.includes(key.slice(6)) && !text.includes(fingerprint(key)));
    const place = ids.indexOf(second.id);
    assert.match(String(shown[place]?.['revoked_at']), /Z$/);
    assert.deepEqual((await keys('GET', `?limit=1&offset=${place}`)).body.data, [shown[place]]);
    const foreign = await keys('GET', '', { token: colleague });
    assert.deepEqual(foreign.body.data, [], 'members of an organization do not share their keys');
  });

  test('shows a key without a name that an administrator made', async () => {
    const { id } = await admin.key(OWNER, { scopes: 'read_areas', allow: '10.0.0.0/8' });
    const shown = (await list()).find((key) => key.id === id);
    const settings = { name: null, scopes: ['read_areas'], allowlist: ['10.0.0.0/8'] };
    assert.deepEqual(
      { ...shown, ...settings, last_used_at: null, revoked_at: null, expires_at: null },
      shown,
    );
  });

  test('shows within seconds when a key was last used, without calls that were refused', async () => {
    const [used, rejected] = [await make(), await make({ ...SCREEN, allowlist: ['203.0.113.1'] })];
    await opens(used.key);
    await opens(rejected.key);
    const lastUse = async ({ id }: ShownKey) => (await list()).find((key) => key.id === id)?.['last_used_at'];
    await waitFor(async () => (await lastUse(used)) !== null);
    assert.ok(Math.abs(Date.parse(String(await lastUse(used))) - Date.now()) < 60_000);
    assert.equal(await lastUse(rejected), null);
  });
});

describe('PATCH /keys/{id}', () => {
  test('changes what is sent, from the next call on', async () => {
    const { id, key } = await make();
    const widened = await patch(id, { scopes: ['read_areas'] });
    assert.deepEqual(Object.keys(widened), FIELDS);
    assert.deepEqual([widened['name'], widened['scopes']], ['Depot screen', ['read_areas']]);
    assert.deepEqual([await opens(key, '/v3/areas'), await opens(key)], ['200', '403 INSUFFICIENT_SCOPE']);
    await patch(id, { allowlist: ['198.51.100.0/24'] });
    assert.equal(await opens(key, '/v3/areas'), '403 API_KEY_IP_BLOCKED');
    assert.equal(await opens(key, '/v3/areas', '198.51.100.7'), '200');
    const renamed = await patch(id, { name: 'Gate', allowlist: [] });
    assert.deepEqual({ ...renamed, name: 'Gate', scopes: ['read_areas'], allowlist: [] }, renamed);
    assert.equal(await opens(key, '/v3/areas'), '200');
  });

  test('changes nothing when any field is wrong', async () => {
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

  test('changes a revoked key too, which stays revoked whatever is sent', async () => {
    const { id, key } = await make();
    const { data } = (await keys('POST', `/${id}/revoke`)).body;
    const changes = { name: 'Old', scopes: ['read_areas'] };
    const edited = await patch(id, { ...changes, revoked_at: null, revoked: false, active: true });
    assert.deepEqual(edited, { ...data, ...changes });
    assert.equal(await opens(key, '/v3/areas'), '403 API_KEY_REVOKED');
  });
});

test('a revocation holds from the next call on, and keeps its time when it is repeated', async () => {
  const { id, key } = await make();
  assert.equal(await opens(key), '200');
  const first = await keys('POST', `/${id}/revoke`);
  assert.equal(first.status, 200);
  assert.match(first.body.data.revoked_at, /Z$/);
  assert.equal(await opens(key), '403 API_KEY_REVOKED');
  assert.deepEqual((await keys('POST', `/${id}/revoke`, { body: 'anything' })).body, first.body);
});

describe('an id of a key', () => {
  const CALLS: [method: string, below: string, body?: object][] = [
    ['PATCH', '', { name: 'Mine' }],
    ['POST', '/revoke'],
  ];

  test('of another account is like one that nobody has: 404', async () => {
    const { id, key } = await make();
    for (const [method, below, body] of CALLS) {
      const options = { token: colleague, body };
      const foreign = await keys(method, `/${id}${below}`, options);
      assert.equal(outcomeOf(foreign), '404 NOT_FOUND');
      assert.deepEqual(faceOf(await keys(method, `/${UNKNOWN_ID}${below}`, options)), faceOf(foreign));
    }
    assert.equal(await opens(key), '200');
  });

  test('that is malformed is refused with 400 before the body is looked at', async () => {
    for (const id of ['0', 'x', '9007199254740992', '%00', '%zz']) {
      for (const [method, below, body] of CALLS)
        assert.equal(
          outcomeOf(await keys(method, `/${id}${below}`, { body: body && [] })),
          '400 BAD_REQUEST',
          id,
        );
    }
  });
});

test('a key reads the keys of its account, whatever its permissions, and manages none', async () => {
  const { id, key } = await make({ ...SCREEN, scopes: ['read_history_summary'] });
  const { key: everything } = await admin.key(OWNER);
  for (const using of [key, everything]) {
    const { status, body } = await callApi(pod, 'GET', '/v1/keys?limit=200', { key: using });
    assert.ok(status === 200 && body.data.some((shown: ShownKey) => shown.id === id));
    for (const [method, path, body] of [
      ['POST', '/v1/keys', SCREEN],
      ['PATCH', `/v1/keys/${id}`, { scopes: ['write_areas'] }],
      ['POST', `/v1/keys/${id}/revoke`, undefined],
      ['DELETE', '/v1/session', undefined],
    ] as const) {
      const reply = await callApi(pod, method, path, { key: using, body });
      assert.equal(outcomeOf(reply), '403 FORBIDDEN', `${method} ${path}`);
      const both = await callApi(pod, method, path, { key: using, token, body });
      assert.deepEqual(faceOf(both), faceOf(reply), 'X-API-Key decides beside a session');
    }
  }
  assert.deepEqual((await patch(id, {}))['scopes'], ['read_history_summary']);
  assert.equal(await opens(token, '/v1/keys'), '403 API_KEY_INVALID', 'the token of a session is no key');
});
