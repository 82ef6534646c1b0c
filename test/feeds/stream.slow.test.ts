import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { imeiOf } from '../support/devices.ts';
import { StreamClient } from '../support/feeds/feedReader.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { bareRequest, startPod } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';

let clockMs = Date.now() - 3_600_000;

const owner = ownerPod({ devices: Array.from({ length: 6 }, (_, n) => ({ imei: imeiOf(n) })) });
const { pod, admin } = owner;

let isOn = false;

/** A point that produces an ignition event, unless it is the first of its device. */
async function toggle(n: number): Promise<void> {
  clockMs += 1_000;
  isOn = !isOn;
  await pod.points([{ imei: imeiOf(n), recorded_at: clockMs, latitude: 41, longitude: 12, ignition: isOn }]);
}

async function opened(
  t: TestContext,
  query = '',
  headers = {},
  by = owner.key,
  on = pod,
): Promise<StreamClient> {
  const client = await StreamClient.open(on, by, query, headers);
  t.after(() => client.close());
  return client;
}

describe('GET /stream', () => {
  test('begins with every device and goes on with what happens', async (t) => {
    const client = await opened(t);
    assert.deepEqual(
      ['content-type', 'cache-control', 'x-accel-buffering', 'x-api-status'].map((name) =>
        client.response.headers.get(name),
      ),
      ['text/event-stream; charset=utf-8', 'no-store', 'no', 'beta'],
    );
    await waitFor(() => client.of('device').length === 6);
    await toggle(0);
    await toggle(0);
    await waitFor(() => client.of('fleet_event').length === 1);
    const { body } = await pod.get('/api/v3/events?limit=1', owner.key);
    const { recorded_at: _, ...event } = client.of('fleet_event')[0]?.data ?? {};
    assert.deepEqual(event, body.data[0]);
    const last = client.of('device').at(-1);
    assert.equal(last?.data.imei, imeiOf(0));
    assert.equal(last?.data.ignition, isOn);
  });

  test('without a snapshot says only what is new, and of one part where that is asked for', async (t) => {
    const both = await opened(t, 'snapshot=false');
    const events = await opened(t, 'snapshot=false&include=events');
    const devices = await opened(t, 'snapshot=false&include=devices');
    await toggle(1);
    await toggle(1);
    await waitFor(() => events.of('fleet_event').length === 1 && both.of('fleet_event').length === 1);
    await waitFor(() => devices.of('device').length > 0);
    assert.equal(events.of('device').length, 0);
    assert.equal(devices.of('fleet_event').length, 0);
    assert.ok(both.of('device').every(({ data }) => data.imei === imeiOf(1)));
  });

  test('is resumed behind any message, on another pod, and every event comes once', async (t) => {
    const first = await opened(t, 'snapshot=false');
    for (let n = 0; n < 5; n++) await toggle(2);
    await waitFor(() => first.of('fleet_event').length === 4);
    first.close();
    const all = first.of('fleet_event').map(({ data }) => data.id);
    await toggle(2);
    const second = await startPod(owner.url);
    t.after(() => second.stop());
    for (const [n, message] of first.messages.entries()) {
      const before = first.messages.slice(0, n + 1).filter(({ event }) => event === 'fleet_event');
      const resumed = await opened(t, '', { 'Last-Event-ID': message.id }, owner.key, second);
      const missing = 5 - before.length;
      await waitFor(() => resumed.of('fleet_event').length >= missing);
      const ids = [...before, ...resumed.of('fleet_event')].map(({ data }) => data.id);
      assert.deepEqual(ids.slice(0, 4), all);
      assert.equal(new Set(ids).size, 5);
      resumed.close();
      await resumed.ended;
    }
  });

  test('its ids are cursors of both feeds', async (t) => {
    const client = await opened(t);
    await waitFor(() => client.of('device').length === 6);
    await toggle(3);
    await toggle(3);
    await waitFor(() => client.of('fleet_event').length === 1);
    await toggle(3);
    for (const path of ['devices/changes', 'events/feed']) {
      const { status, body, text } = await pod.get(
        `/api/v3/${path}?cursor=${client.lastId}&wait=5`,
        owner.key,
      );
      assert.equal(status, 200, text);
      assert.equal(body.data.length, 1);
    }
  });

  test('ends within a second when its key is revoked or changed', async (t) => {
    const revoked = await admin.key(OWNER);
    const client = await opened(t, '', {}, revoked.key);
    await waitFor(() => client.of('device').length === 6);
    const startMs = performance.now();
    await admin.run('key:revoke', '--id', String(revoked.id));
    await client.ended;
    assert.ok(performance.now() - startMs < 2_000);
    const again = await bareRequest(`${pod.api}/api/v3/stream`, { headers: { 'X-API-Key': revoked.key } });
    assert.deepEqual([again.status, again.body.error.code], [403, 'API_KEY_REVOKED']);
  });

  test('of a box it begins with what is in it, also behind a cursor, and says what leaves; events are resumed', async (t) => {
    const at = (n: number, longitude: number, ignition = isOn) => {
      clockMs += 1_000;
      const point = { imei: imeiOf(n), recorded_at: clockMs, latitude: 50, longitude, ignition };
      return pod.points([point]);
    };
    await at(4, 179.5);
    await at(5, 10);
    const query = 'bbox=179,49,-179,51';
    const first = await opened(t, query);
    await waitFor(() => first.of('device').length === 1);
    assert.equal(first.of('device')[0]?.data.imei, imeiOf(4));
    await at(5, -179.5);
    await waitFor(() => first.of('device').length === 2);
    await at(4, 10);
    await waitFor(() => first.of('device').length === 3);
    assert.deepEqual(first.of('device')[2]?.data, { id: imeiOf(4), imei: imeiOf(4), left: true });
    await toggle(3);
    await toggle(3);
    await waitFor(() => first.of('fleet_event').length === 2);
    assert.equal(first.of('device').length, 3);
    const between = first.of('fleet_event')[0]?.id ?? '';
    first.close();

    const resumed = await opened(t, query, { 'Last-Event-ID': between });
    await waitFor(() => resumed.of('fleet_event').length === 1 && resumed.of('device').length === 1);
    assert.equal(resumed.of('fleet_event')[0]?.data.id, first.of('fleet_event')[1]?.data.id);
    assert.equal(resumed.of('device')[0]?.data.imei, imeiOf(5));
    const whole = await opened(t, '', { 'Last-Event-ID': between });
    await waitFor(() => whole.of('fleet_event').length === 1 && whole.of('device').length === 6);
    const changes = await pod.get(`/api/v3/devices/changes?cursor=${between}`, owner.key);
    assert.equal(changes.status, 400, 'a cursor of a box says nothing of other devices');
  });

  test('with a filter it shows what passes, and events of every device', async (t) => {
    await admin.importDevices(OWNER, [{ imei: imeiOf(0), groups: ['north'] }]);
    const client = await opened(t, 'group=north');
    await waitFor(() => client.of('device').length === 1);
    await toggle(2);
    await toggle(2);
    await waitFor(() => client.of('fleet_event').length > 0);
    await admin.importDevices(OWNER, [
      { imei: imeiOf(1), groups: ['north', 'vans'] },
      { imei: imeiOf(0), groups: [] },
    ]);
    await waitFor(() => client.of('device').length === 3);
    const shown = client.of('device').map(({ data }) => [data.imei, data.left]);
    assert.deepEqual(shown[0], [imeiOf(0), undefined]);
    assert.deepEqual(shown.slice(1).sort(), [
      [imeiOf(0), true],
      [imeiOf(1), undefined],
    ]);
  });

  test('a key has ten at most', async (t) => {
    const own = (await admin.key(OWNER)).key;
    const clients = await Promise.all(Array.from({ length: 10 }, () => opened(t, 'snapshot=false', {}, own)));
    const headers = { 'X-API-Key': own };
    const eleventh = await bareRequest(`${pod.api}/api/v3/stream`, { headers });
    assert.deepEqual([eleventh.status, eleventh.body.error.code], [429, 'TOO_MANY_REQUESTS']);
    clients[0]?.close();
    await waitFor(async () => {
      const client = await opened(t, 'snapshot=false', {}, own);
      return client.response.status === 200;
    });
  });

  test('a pod that stops ends it and says when to come back', async (t) => {
    const second = await startPod(owner.url);
    const client = await opened(t, '', {}, owner.key, second);
    await waitFor(() => client.of('device').length === 6);
    await second.stop();
    await client.ended;
    assert.deepEqual(client.others, ['retry: 500']);
  });

  test('HEAD has its headers, and what cannot be read is refused', async () => {
    const headers = { 'X-API-Key': owner.key };
    const head = await bareRequest(`${pod.api}/api/v3/stream`, { method: 'HEAD', headers });
    assert.equal(head.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    const wrong = ['cursor=x', 'include=areas', 'snapshot=no', 'bbox=1,2,3', 'bbox=0,2,1,1', 'status=lost'];
    for (const query of wrong) {
      assert.equal((await bareRequest(`${pod.api}/api/v3/stream?${query}`, { headers })).status, 400, query);
    }
    const areas = (await admin.key(OWNER, { scopes: 'read_areas' })).key;
    const rejected = await bareRequest(`${pod.api}/api/v3/stream`, { headers: { 'X-API-Key': areas } });
    assert.equal(rejected.body.error.code, 'INSUFFICIENT_SCOPE');
  });

  test('a permission that is missing for what is included is named, before any other parameter', async () => {
    const refused = async (scopes: string, query: string) => {
      const { key } = await admin.key(OWNER, { scopes });
      const headers = { 'X-API-Key': key };
      const { status, body } = await bareRequest(`${pod.api}/api/v3/stream?${query}`, { headers });
      return [status, body.error.message];
    };
    assert.deepEqual(await refused('read_events', 'include=devices&bbox=9'), [
      403,
      'this API key lacks the permission read_devices or read_locations',
    ]);
    assert.deepEqual(await refused('read_devices', 'include=events&snapshot=no'), [
      403,
      'this API key lacks the permission read_events',
    ]);
  });
});
