import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { areaApi, CIRCLE } from '../../support/http/areas.ts';
import { OWNER, ownerPod } from '../../support/ownerPod.ts';
import { runFleet } from '../runFleet.ts';

const IMEI = '350000000000001';
const OTHER = '350000000000002';
const STRANGER = 'stranger@example.com';
const INSIDE = { latitude: 41.9, longitude: 12.5, ignition: true };

const service = ownerPod({ devices: [{ imei: IMEI }, { imei: OTHER }] });
const fleet = (...argv: string[]) => runFleet(service.url, argv);

describe('device:delete', () => {
  test('takes a device away with its points and commands at once, and leaves its events', async () => {
    const { pod, admin, key, sql } = service;
    const area = await areaApi(pod, key).make(CIRCLE);
    const now = Date.now();
    const points = [3, 2, 1].map((n) => ({ imei: IMEI, recorded_at: now - n * 1_000, ...INSIDE }));
    await pod.points([...points, { ...points[0], imei: OTHER }]);
    await admin.run('command:enqueue', '--imei', IMEI, '--type', 'reboot');
    const events = (await pod.get('/api/v3/events?limit=200', key)).body.data;
    assert.ok(events.length >= 2, 'an entry of each');

    const { code, json } = await fleet('device:delete', '--imei', IMEI);
    assert.deepEqual([code, json], [0, { imei: IMEI, points: 3 }]);

    for (const path of ['', '/location', '/history', '/commands']) {
      assert.equal((await pod.get(`/api/v3/devices/${IMEI}${path}`, key)).status, 404, path);
    }
    const imeisOf = async (path: string) =>
      (await pod.get(path, key)).body.data.map(
        (item: { imei?: string; device?: { imei: string } }) => item.imei ?? item.device?.imei,
      );
    assert.deepEqual(await imeisOf('/api/v3/devices'), [OTHER]);
    assert.deepEqual(await imeisOf('/api/v3/devices/nearest?lat=41.9&lng=12.5&limit=9'), [OTHER]);
    assert.deepEqual(await imeisOf(`/api/v3/areas/${area}/devices`), [OTHER]);
    assert.deepEqual((await pod.get('/api/v3/events?limit=200', key)).body.data, events);
    const { rejected } = await pod.points(points);
    const codes = rejected.map((each: { code: string }) => each.code);
    assert.deepEqual(
      codes,
      points.map(() => 'UNKNOWN_DEVICE'),
    );
    const rows = await sql`select count(*)::int as count from position`;
    assert.deepEqual([...rows], [{ count: 1 }], 'points of a deleted device are not stored');
  });

  test('frees the IMEI: who registers it next sees nothing of what was before', async () => {
    const { pod, admin } = service;
    await admin.account(STRANGER);
    const { key } = await admin.key(STRANGER);
    await admin.device(STRANGER, IMEI);
    assert.deepEqual((await pod.get(`/api/v3/devices/${IMEI}/history?from=2020-01-01`, key)).body.data, []);
    assert.equal(
      (await pod.get(`/api/v3/devices/${IMEI}/location`, key)).body.error.code,
      'LOCATION_NOT_FOUND',
    );
    assert.deepEqual((await pod.get('/api/v3/events', key)).body.data, []);
    await pod.points([{ imei: IMEI, recorded_at: Date.now(), ...INSIDE }]);
    assert.equal((await pod.get(`/api/v3/devices/${IMEI}/location`, key)).status, 200);
  });

  test('makes room in the plan of its owner', async () => {
    const { sql } = service;
    const devices = async () => {
      const [row] = await sql<{ devices: number }[]>`
        select u.devices::int as devices from device_usage u join account a on a.world_id = u.world_id where a.email = ${OWNER}`;
      return row?.devices;
    };
    assert.equal(await devices(), 1);
    await fleet('device:delete', '--imei', OTHER);
    assert.equal(await devices(), 0);
  });

  test('says when there is no such device, or none any more', async () => {
    for (const imei of [OTHER, '350000000000999']) {
      const { code, stderr } = await fleet('device:delete', '--imei', imei);
      assert.deepEqual([code, stderr.includes(`there is no device ${imei}`)], [1, true]);
    }
  });

  test('interrupted, it deletes nothing more and can be repeated', async () => {
    const interrupt = new AbortController();
    interrupt.abort();
    const argv = ['device:delete', '--imei', IMEI];
    const first = await runFleet(service.url, argv, { interrupted: interrupt.signal });
    assert.deepEqual([first.code, /Repeat the command/.test(first.stderr)], [1, true]);
    assert.deepEqual((await runFleet(service.url, argv)).json, { imei: IMEI, points: 1 });
  });
});
