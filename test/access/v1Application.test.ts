import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { StreamClient } from '../support/feeds/feedReader.ts';
import { callApi, logIn, makeOwner, outcomeOf, PASSWORD, setPassword } from '../support/http/application.ts';
import { CIRCLE } from '../support/http/areas.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { NO_LIMITS, startPod } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';

const VAN = '350000000000001';
const HOOK = { url: 'https://hooks.example.com/', events: ['*'] };
const WINDOW = 'from=2099-01-01&to=2099-01-02';

const owner = ownerPod(
  { env: { ...NO_LIMITS, ROLES: 'api,ingest' }, devices: [{ imei: VAN }] },
  async ({ pod, admin }) => {
    await setPassword(admin, OWNER);
    await pod.points([
      { imei: VAN, recorded_at: Date.now(), latitude: 41.9, longitude: 12.5, ignition: true },
    ]);
  },
);
const { pod, admin } = owner;

const asSession = async (method: string, path: string, body?: unknown) =>
  callApi(pod, method, `/v1${path}`, { token: await logIn(pod, OWNER), ...(body !== undefined && { body }) });
const asKey = (method: string, path: string, body?: unknown, key = owner.key) =>
  callApi(pod, method, path, { key, ...(body !== undefined && { body }) });

const READS = [
  '/devices',
  `/devices/${VAN}`,
  `/devices/${VAN}/location`,
  `/devices/${VAN}/history`,
  `/devices/${VAN}/history/summary?${WINDOW}`,
  `/devices/${VAN}/commands`,
  '/devices/nearest?lat=41.9&lng=12.5',
  '/events',
  '/areas',
  '/areas/containing?lat=41.9&lng=12.5',
];

describe('a session on v1', () => {
  test('reads what a key with every permission reads on v3, byte for byte', async () => {
    for (const path of READS) {
      const [session, key] = [await asSession('GET', path), await asKey('GET', `/v3${path}`)];
      assert.equal(session.status, 200, session.text);
      assert.equal(session.text, key.text, path);
      assert.equal(session.headers.get('sunset'), '2027-03-08');
    }
  });

  test('writes an area, and reads its changes at once', async () => {
    const made = await asSession('POST', '/areas', CIRCLE);
    assert.equal(made.status, 201, made.text);
    const path = `/areas/${made.body.data.id}`;
    assert.equal(made.headers.get('location'), `/api/v1${path}`);
    assert.equal((await asSession('PATCH', path, { name: 'Renamed' })).status, 200);
    assert.equal((await asKey('GET', `/v3${path}`)).body.data.name, 'Renamed');
    const bad = await asSession('PATCH', path, { radius_m: -1 });
    assert.equal(outcomeOf(bad), '422 VALIDATION_ERROR');
    assert.equal((await asSession('DELETE', path)).status, 204);
    assert.equal(outcomeOf(await asSession('GET', path)), '404 NOT_FOUND');
    assert.equal(
      (await asSession('POST', '/devices/nearest/batch', { points: [{ lat: 1, lng: 1 }] })).status,
      200,
    );
  });

  test('manages webhooks there as under /api/webhooks', async () => {
    const made = await asSession('POST', '/webhooks', HOOK);
    assert.equal(made.status, 201, made.text);
    const path = `/webhooks/${made.body.data.id}`;
    assert.equal(made.headers.get('location'), `/api/v1${path}`);
    assert.equal((await asSession('POST', `${path}/test`)).status, 202);
    assert.equal((await asSession('GET', `${path}/deliveries`)).body.data.length, 1);
    assert.equal((await asSession('GET', '/webhooks/metrics/summary')).status, 200);
    assert.equal((await asSession('GET', '/webhooks')).text, (await asKey('GET', '/webhooks')).text);
    assert.equal((await asSession('DELETE', path)).status, 204);
  });

  test('sees nothing of others', async () => {
    await makeOwner(admin, 'other@example.com');
    const { id } = (await asSession('POST', '/areas', CIRCLE)).body.data;
    const token = await logIn(pod, 'other@example.com');
    for (const path of [`/areas/${id}`, `/devices/${VAN}`, `/devices/${VAN}/location`]) {
      assert.equal((await callApi(pod, 'GET', `/v1${path}`, { token })).status, 404);
    }
    assert.deepEqual((await callApi(pod, 'GET', '/v1/devices', { token })).body.data, []);
  });
});

describe('a key on v1', () => {
  test('reads what its permissions open', async () => {
    for (const path of READS) assert.equal((await asKey('GET', `/v1${path}`)).status, 200, path);
    const { key } = await admin.key(OWNER, { scopes: 'read_events' });
    assert.equal(outcomeOf(await asKey('GET', '/v1/devices', undefined, key)), '403 INSUFFICIENT_SCOPE');
    assert.equal((await asKey('GET', '/v1/events', undefined, key)).status, 200);
  });

  test('changes nothing, with every permission', async () => {
    for (const [method, path, body] of [
      ['POST', '/areas', CIRCLE],
      ['PATCH', '/areas/1', {}],
      ['DELETE', '/areas/1', undefined],
      ['PUT', '/areas/by-external-id/x', CIRCLE],
      ['POST', '/webhooks', HOOK],
      ['POST', '/webhooks/1/test', undefined],
      ['DELETE', '/webhooks/1', undefined],
    ] as const) {
      assert.equal(outcomeOf(await asKey(method, `/v1${path}`, body)), '403 FORBIDDEN', `${method} ${path}`);
    }
  });
});

describe('the stream of a session', () => {
  async function opened(t: TestContext, token: string, on = pod): Promise<StreamClient> {
    const client = await StreamClient.open(on, '', '', { Authorization: `Bearer ${token}` }, 'v1');
    t.after(() => client.close());
    assert.equal(client.response.status, 200);
    await waitFor(() => client.of('device').length === 1);
    return client;
  }

  test('ends with a logout, on every pod, and with no other', async (t) => {
    const other = await startPod(owner.url, { t, env: NO_LIMITS });
    const [leaving, staying] = [await logIn(pod, OWNER), await logIn(pod, OWNER)];
    const [here, there, kept] = [
      await opened(t, leaving),
      await opened(t, leaving, other),
      await opened(t, staying),
    ];
    assert.equal((await callApi(pod, 'DELETE', '/v1/session', { token: leaving })).status, 204);
    await Promise.all([here.ended, there.ended]);
    const seen = kept.of('device').length;
    await pod.points([{ imei: VAN, recorded_at: Date.now(), latitude: 41.91, longitude: 12.5 }]);
    await waitFor(() => kept.of('device').length > seen);
  });

  for (const [what, ...command] of [
    ['another organization', 'account:update', '--organization', 'Movers'],
    ['a new password', 'account:update', '--password', `${PASSWORD}!`],
    ['a deactivated account', 'account:deactivate'],
  ] as const) {
    test(`ends with ${what}`, async (t) => {
      const email = `${what.replaceAll(' ', '.')}@example.com`;
      await makeOwner(admin, email);
      await admin.device(email, `3500000000001${command.join('').length}`);
      const client = await opened(t, await logIn(pod, email));
      await admin.run(command[0], '--email', email, ...command.slice(1));
      await client.ended;
    });
  }

  test('ends with the session, when its time is over or too many others were opened', async (t) => {
    await makeOwner(admin, 'busy@example.com');
    await admin.device('busy@example.com', '350000000000900');
    const first = await opened(t, await logIn(pod, 'busy@example.com'));
    await owner.sql`
      insert into session (account_id, fingerprint, expires_at)
      select id, sha256(('busy' || n)::bytea), now() + interval '1 hour'
      from account, generate_series(1, 49) n where email = 'busy@example.com'`;
    const token = await logIn(pod, 'busy@example.com');
    await first.ended;
    await owner.sql`update session set expires_at = clock_timestamp() + interval '300 ms'
      where id = (select max(id) from session)`;
    const last = await opened(t, token);
    await last.ended;
  });
});
