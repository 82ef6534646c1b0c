import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SCOPES, SESSION_ONLY, scopeMask, VIEWER } from '../../src/access/scopes.ts';
import { isDeniedToViewer } from '../../src/http/authorize.ts';
import { callApi, logIn, makeOwner, outcomeOf, PASSWORD, setPassword } from '../support/http/application.ts';
import { CIRCLE } from '../support/http/areas.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { NO_LIMITS } from '../support/pod.ts';

const VAN = '350000000000001';
const VIEWER_EMAIL = 'viewer@example.com';
const HOOK = { url: 'https://hooks.example.com/', events: ['*'] };
const NOWHERE = { lat: 1, lng: 1 };

const ids: Record<string, number> = {};
const owner = ownerPod({ env: { ...NO_LIMITS, ROLES: 'api,ingest' } }, async ({ pod, admin }) => {
  await admin.run('account:update', '--email', OWNER, '--organization', 'Acme');
  await setPassword(admin, OWNER);
  await makeOwner(admin, VIEWER_EMAIL, '--organization', 'Acme', '--role', 'viewer');
  await admin.run('device:create', '--email', OWNER, '--imei', VAN, '--organization');
  await admin.run('command:enqueue', '--imei', VAN, '--type', 'reboot');
  const token = await logIn(pod, VIEWER_EMAIL);
  tokens.viewer = token;
  tokens.member = await logIn(pod, OWNER);
  for (const [name, path, body] of [
    ['area', '/areas', CIRCLE],
    ['webhook', '/webhooks', HOOK],
    ['key', '/keys', { name: 'K', scopes: ['read_devices'] }],
  ] as const) {
    const made = await callApi(pod, 'POST', `/v1${path}`, { token: tokens.member, body });
    assert.equal(made.status, 201, made.text);
    ids[name] = made.body.data.id;
  }
  await admin.run('area:share', '--id', String(ids['area']));
});
const { pod, admin } = owner;
const tokens = { viewer: '', member: '' };

const call = (method: string, path: string, body?: unknown, token = tokens.viewer) =>
  callApi(pod, method, path, { token, ...(body !== undefined && { body }) });

describe('the session of a viewer', () => {
  test('reads what a member of its organization reads', async () => {
    for (const path of [
      '/v1/devices',
      `/v1/devices/${VAN}`,
      `/v1/devices/${VAN}/history`,
      `/v1/devices/${VAN}/commands`,
      '/v1/devices/changes',
      '/v1/devices/count',
      '/v1/events',
      '/v1/areas',
    ]) {
      const [viewer, member] = [await call('GET', path), await call('GET', path, undefined, tokens.member)];
      assert.equal(viewer.status, 200, viewer.text);
      if (path !== '/v1/devices/changes') assert.equal(viewer.text, member.text, path);
    }
    for (const path of ['/v1/webhooks', '/webhooks', '/v1/keys'])
      assert.deepEqual((await call('GET', path)).body.data, [], 'those of its own account');
  });

  test('asks what takes a body', async () => {
    for (const [path, body] of [
      ['/v1/devices/nearest/batch', { points: [NOWHERE] }],
      ['/v1/areas/containing/batch', { points: [NOWHERE] }],
      ['/v1/devices/within', { area: CIRCLE }],
      ['/v1/areas/backtest', { area: CIRCLE, from: '2026-01-01', to: '2026-01-02', devices: [VAN] }],
    ] as const) {
      const { status, text } = await call('POST', path, body);
      assert.equal(status, 200, `${path}: ${text}`);
    }
  });

  test('changes nothing', async () => {
    const before = await everything();
    for (const [method, path, body] of [
      ['POST', '/v1/areas', CIRCLE],
      ['PATCH', `/v1/areas/${ids['area']}`, { name: 'X' }],
      ['DELETE', `/v1/areas/${ids['area']}`, undefined],
      ['PUT', '/v1/areas/by-external-id/x', CIRCLE],
      ['POST', '/v1/areas/import', { type: 'FeatureCollection', features: [] }],
      ['POST', '/v1/webhooks', HOOK],
      ['POST', '/webhooks', HOOK],
      ['PUT', `/v1/webhooks/${ids['webhook']}`, { active: false }],
      ['DELETE', `/webhooks/${ids['webhook']}`, undefined],
      ['POST', `/webhooks/${ids['webhook']}/test`, undefined],
      ['POST', `/webhooks/${ids['webhook']}/rotate-secret`, undefined],
      ['POST', '/v1/keys', { name: 'K', scopes: ['read_devices'] }],
      ['PATCH', `/v1/keys/${ids['key']}`, { name: 'X' }],
      ['POST', `/v1/keys/${ids['key']}/revoke`, undefined],
    ] as const) {
      const refused = await call(method, path, body);
      assert.equal(outcomeOf(refused), '403 INSUFFICIENT_SCOPE', `${method} ${path}`);
      assert.match(refused.body.error.message, /viewer/);
    }
    assert.deepEqual(await everything(), before);
  });

  test('may do more, or less, from its next call on', async () => {
    const name = { name: 'K', scopes: ['read_devices'] };
    await admin.run('account:update', '--email', VIEWER_EMAIL, '--role', 'member');
    assert.equal((await call('POST', '/v1/keys', name)).status, 201);
    assert.deepEqual(await rightsOf(call('GET', '/v1/session')), ['member', SCOPES]);
    await admin.run('account:update', '--email', VIEWER_EMAIL, '--role', 'viewer');
    assert.deepEqual(await rightsOf(call('GET', '/v1/session')), ['viewer', READING]);
    const body = { email: VIEWER_EMAIL, password: PASSWORD };
    assert.deepEqual(await rightsOf(callApi(pod, 'POST', '/v1/session', { body })), ['viewer', READING]);
    assert.equal(outcomeOf(await call('POST', '/v1/keys', name)), '403 INSUFFICIENT_SCOPE');
  });

  test('ends with its logout', async () => {
    const token = await logIn(pod, VIEWER_EMAIL);
    assert.equal((await call('DELETE', '/v1/session', undefined, token)).status, 204);
    assert.equal(outcomeOf(await call('GET', '/v1/devices', undefined, token)), '403 API_KEY_REQUIRED');
  });
});

const READING = SCOPES.filter((scope) => scope.startsWith('read_'));

async function rightsOf(reply: ReturnType<typeof call>): Promise<unknown> {
  const { role, scopes } = (await reply).body.data;
  return [role, scopes];
}

/** All rows that a session can change. */
async function everything(): Promise<unknown> {
  const rows = await owner.sql`
    select (select jsonb_agg(a order by id) from area a) as areas, (select jsonb_agg(k order by id) from api_key k) as keys,
      (select jsonb_agg(w order by id) from webhook w) as webhooks, (select count(*) from webhook_delivery) as deliveries`;
  return rows[0];
}

test('no scope that writes opens a route to a viewer, by whatever method but GET', () => {
  const everyScope = scopeMask(...SCOPES) | SESSION_ONLY;
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    for (const scope of SCOPES) {
      const writes = ['send_commands', 'write_areas', 'manage_webhooks', 'manage_shares'].includes(scope);
      assert.equal(
        isDeniedToViewer(VIEWER | everyScope, method, scopeMask(scope)),
        writes,
        `${method} ${scope}`,
      );
      assert.equal(isDeniedToViewer(everyScope, method, scopeMask(scope)), false);
    }
    assert.equal(isDeniedToViewer(VIEWER | everyScope, method, SESSION_ONLY), true);
  }
  assert.equal(isDeniedToViewer(VIEWER | everyScope, 'GET', scopeMask('manage_webhooks')), false);
});
