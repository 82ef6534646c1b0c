import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { imeiOf } from '../support/devices.ts';
import { DeviceReader, openAnswer } from '../support/feeds/feedReader.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { startPod } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';

let clockMs = Date.now();

const devices = Array.from({ length: 12 }, (_, n) => ({ imei: imeiOf(n), name: `Van ${n}` }));
const owner = ownerPod({ scopes: 'read_devices', devices }, async ({ admin }) => {
  await admin.run('account:update', '--email', OWNER, '--organization', 'Haulage');
  await admin.account('member@example.com', { organization: 'Haulage' });
  await admin.account('other@example.com');
});
const { pod, admin } = owner;
let key: string;
before(() => {
  ({ key } = owner);
});

const point = (n: number, more: object = {}) => {
  clockMs += 1;
  return {
    imei: imeiOf(n),
    recorded_at: clockMs - 60_000,
    latitude: 41 + n / 100,
    longitude: 12,
    speed_kmh: 40,
    ...more,
  };
};

describe('GET /devices/changes', () => {
  test('lists every device first, page by page, and then says that there is no more', async () => {
    const reader = new DeviceReader(key);
    const items = await reader.follow(pod, 'limit=5');
    assert.deepEqual(
      items.map(({ imei }) => imei),
      Array.from({ length: 12 }, (_, n) => imeiOf(n)),
    );
    assert.equal(reader.pages, 3);
    assert.deepEqual((await reader.page(pod)).body.data, []);
  });

  test('brings a point with what the device said, a repeat that changes the ignition, and an edit', async () => {
    const reader = new DeviceReader(key);
    await reader.follow(pod);
    const first = point(3, { heading: 214.5, altitude_m: 31, ignition: true, odometer_km: 12.5 });
    await pod.points([first]);
    const item = (await reader.follow(pod)).find(({ imei }) => imei === imeiOf(3));
    assert.deepEqual(item?.location, {
      latitude: 41.03,
      longitude: 12,
      speed_kmh: 40,
      recorded_at: new Date(clockMs - 60_000).toISOString(),
      heading: 214.5,
      altitude_m: 31,
    });
    assert.equal(item?.ignition, true);
    await pod.points([{ ...first, ignition: false }]);
    await reader.follow(pod);
    assert.equal(reader.devices.get(imeiOf(3))?.ignition, false);
    await admin.importDevices(OWNER, [{ imei: imeiOf(3), name: 'Renamed' }]);
    await reader.follow(pod);
    assert.equal(reader.devices.get(imeiOf(3))?.name, 'Renamed');
  });

  test('is the device of the list with three fields more', async () => {
    const reader = new DeviceReader(key);
    await reader.follow(pod);
    const { body } = await pod.get('/api/v3/devices?limit=200', key);
    for (const device of body.data) {
      const { ignition: _, ...item } = reader.devices.get(device.imei) as unknown as Record<string, unknown>;
      const location = item['location'] as Record<string, unknown> | null;
      if (location !== null) {
        delete location['heading'];
        delete location['altitude_m'];
      }
      assert.deepEqual(item, device);
    }
  });

  test('says of a device that the key does not see any more that it is removed, and brings it back', async () => {
    const member = (await admin.key('member@example.com')).key;
    const reader = new DeviceReader(member);
    await admin.device(OWNER, imeiOf(20), '--organization');
    await reader.follow(pod);
    assert.ok(reader.devices.has(imeiOf(20)));
    await admin.importDevices(OWNER, [{ imei: imeiOf(20), organization: false }]);
    const items = await reader.follow(pod);
    assert.deepEqual(items, [{ id: imeiOf(20), imei: imeiOf(20), removed: true }]);
    const own = new DeviceReader(key);
    await own.follow(pod);
    assert.ok(own.devices.has(imeiOf(20)), 'its owner sees it in the other world');
    await admin.importDevices(OWNER, [{ imei: imeiOf(20), organization: true }]);
    await reader.follow(pod);
    assert.ok(reader.devices.has(imeiOf(20)));
    const again = await own.follow(pod);
    assert.ok(again.every((item) => item.removed === undefined));
  });

  test('a cursor goes on after a restart, on another pod, and loses no removal', async () => {
    const member = (await admin.key('member@example.com')).key;
    const reader = new DeviceReader(member);
    await admin.device(OWNER, imeiOf(21), '--organization');
    await admin.device(OWNER, imeiOf(22), '--organization');
    await reader.follow(pod);
    await pod.points([point(22)]);
    await admin.importDevices(OWNER, [{ imei: imeiOf(21), organization: false }]);
    const second = await startPod(owner.url);
    try {
      const items = await reader.follow(second);
      assert.deepEqual(items.map(({ imei, removed }) => [imei, removed]).sort(), [
        [imeiOf(21), true],
        [imeiOf(22), undefined],
      ]);
      assert.deepEqual(await reader.follow(second), []);
    } finally {
      await second.stop();
    }
  });

  test('waits for something new, and not for others', async () => {
    const reader = new DeviceReader(key);
    await reader.settle(pod);
    let isDone = false;
    const waiting = reader.page(pod, 'wait=25').finally(() => {
      isDone = true;
    });
    await admin.device('other@example.com', imeiOf(99));
    await pod.points([point(99)]);
    assert.equal(isDone, false);
    await pod.points([point(6)]);
    const { body } = await waiting;
    assert.deepEqual(
      body.data.map(({ imei }: { imei: string }) => imei),
      [imeiOf(6)],
    );
  });

  test('with nothing new a wait ends after its time', async () => {
    const reader = new DeviceReader(key);
    await reader.settle(pod);
    const startMs = performance.now();
    const { body } = await reader.page(pod, 'wait=1');
    assert.deepEqual(body.data, []);
    assert.ok(performance.now() - startMs >= 950);
  });

  test('what gathers is answered after its time at the earliest', async () => {
    const reader = new DeviceReader(key);
    await reader.settle(pod);
    const startMs = performance.now();
    const gathering = reader.page(pod, 'wait=25&gather=1');
    await pod.points([point(6)]);
    const { body } = await gathering;
    assert.ok(performance.now() - startMs >= 950);
    assert.deepEqual(
      body.data.map(({ imei }: { imei: string }) => imei),
      [imeiOf(6)],
    );
  });

  test('a caller that hangs up leaves its place to another, on both feeds', async () => {
    const reader = new DeviceReader(key);
    await reader.settle(pod);
    const events = (await admin.key(OWNER, { scopes: 'read_events' })).key;
    const { body } = await pod.get('/api/v3/events/feed', events);
    for (const [path, cursor, by] of [
      ['devices/changes?wait=25', reader.cursor, key],
      ['devices/changes?gather=25', reader.cursor, key],
      ['events/feed?wait=25', body.meta.cursor, events],
      ['events/feed?gather=25', body.meta.cursor, events],
    ] as const) {
      const url = `${pod.api}/api/v3/${path}&cursor=${cursor}`;
      const ask = (signal: AbortSignal) =>
        openAnswer(url, { 'X-API-Key': by }, signal).then(
          (answer) => answer.resume() && 'answered',
          () => 'hung up',
        );
      const leaving = new AbortController();
      const left = Array.from({ length: 20 }, () => ask(leaving.signal));
      // The key has no further place: such a call is answered at once.
      await waitFor(async () => (await ask(AbortSignal.timeout(200))) === 'answered');
      leaving.abort();
      assert.deepEqual([...new Set(await Promise.all(left))], ['hung up']);
      // A call that waits until it hangs up has a place.
      await waitFor(async () => (await ask(AbortSignal.timeout(200))) === 'hung up');
    }
  });

  test('refuses cursors that are malformed, of another account, or cut off', async () => {
    const other = (await admin.key('other@example.com')).key;
    const reader = new DeviceReader(key);
    await reader.follow(pod);
    const cursor = reader.cursor as string;
    const flipped = `${cursor.slice(0, 20)}${cursor[20] === 'A' ? 'B' : 'A'}${cursor.slice(21)}`;
    for (const [text, by] of [
      ['x', key],
      ['%00', key],
      [cursor.slice(0, -1), key],
      [`${cursor}A`, key],
      [flipped, key],
      ['A'.repeat(501), key],
      [cursor, other],
    ] as const) {
      const { status, body } = await pod.get(`/api/v3/devices/changes?cursor=${text}`, by);
      assert.deepEqual([status, body.error?.code], [400, 'BAD_REQUEST'], text);
    }
    assert.equal(
      (await pod.get(`/api/v3/devices/changes?cursor=${cursor}&cursor=${cursor}`, key)).status,
      400,
    );
  });

  test('needs one of two permissions, and costs one call', async () => {
    const scopeless = (await admin.key(OWNER, { scopes: 'read_events' })).key;
    assert.equal((await pod.get('/api/v3/devices/changes', scopeless)).status, 403);
    const locations = (await admin.key(OWNER, { scopes: 'read_locations' })).key;
    assert.equal((await pod.get('/api/v3/devices/changes', locations)).status, 200);
  });
});
