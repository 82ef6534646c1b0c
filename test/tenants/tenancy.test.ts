import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readBothVersions } from '../support/http/readBothVersions.ts';
import { ownerPod } from '../support/ownerPod.ts';
import type { Reply } from '../support/pod.ts';

const NOW_MS = Date.now();

/** Device by what it is, and who may see it. */
const DEVICES = {
  annasOwn: '350000000000001',
  bensOwn: '350000000000002',
  sharedByAnna: '350000000000003',
  sharedByBen: '350000000000004',
  carlasOwn: '350000000000005',
  sharedByDario: '350000000000006',
  dariosOwn: '350000000000007',
} as const;
type DeviceName = keyof typeof DEVICES;
const NEAR = '/devices/nearest?lat=41.9&lng=12.5&limit=50';

const OWNERS: { readonly [Name in DeviceName]: [owner: string, shared: boolean] } = {
  annasOwn: ['anna', false],
  bensOwn: ['ben', false],
  sharedByAnna: ['anna', true],
  sharedByBen: ['ben', true],
  carlasOwn: ['carla', false],
  sharedByDario: ['dario', true],
  dariosOwn: ['dario', false],
};

/** Anna and Ben share an organization, Dario has another one, Carla has none. */
const ORGANIZATIONS: Record<string, string | null> = {
  anna: 'Haulage',
  ben: 'Haulage',
  carla: null,
  dario: 'Taxi',
};
const VISIBLE: Record<string, readonly DeviceName[]> = {
  anna: ['annasOwn', 'sharedByAnna', 'sharedByBen'],
  ben: ['bensOwn', 'sharedByAnna', 'sharedByBen'],
  carla: ['carlasOwn'],
  dario: ['sharedByDario', 'dariosOwn'],
};

describe('a key shows the devices of its account and those shared in its organization:', () => {
  const keys = new Map<string, string>();
  const mailOf = (name: string): string => `${name}@example.com`;

  const { pod, admin } = ownerPod({}, async ({ pod, admin }) => {
    for (const [name, organization] of Object.entries(ORGANIZATIONS)) {
      await admin.account(mailOf(name), organization === null ? {} : { organization });
      keys.set(name, (await admin.key(mailOf(name))).key);
    }
    for (const [name, [owner, shared]] of Object.entries(OWNERS)) {
      const imei = DEVICES[name as DeviceName];
      await admin.device(mailOf(owner), imei, ...(shared ? ['--organization'] : []));
      await admin.run('command:enqueue', '--imei', imei, '--type', 'reboot');
    }
    // All on one spot, where those that should not be seen would be found as well.
    const point = { recorded_at: NOW_MS, latitude: 41.9, longitude: 12.5, rfid: 'card' };
    await pod.points(Object.values(DEVICES).map((imei) => ({ ...point, imei })));
  });

  const imeisOf = (names: readonly DeviceName[]): string[] => names.map((name) => DEVICES[name]).toSorted();
  const field = ({ body }: Reply, name: string): string[] =>
    body.data.map((item: Record<string, string>) => item[name]).toSorted();

  /** Every way to look at devices shows exactly these. */
  async function assertSees(reader: string, visible: readonly DeviceName[]): Promise<void> {
    const get = (path: string): Promise<Reply> => readBothVersions(pod, path, keys.get(reader));
    const expected = imeisOf(visible);
    assert.deepEqual(field(await get('/devices'), 'imei'), expected, 'list');
    assert.deepEqual(field(await get(NEAR), 'imei'), expected, 'nearest');
    assert.deepEqual(field(await get('/events'), 'device_imei'), expected, 'events');
    for (const imei of Object.values(DEVICES)) {
      const seen = expected.includes(imei);
      for (const below of ['', '/location', '/history', '/history/summary', '/commands']) {
        const { status, body } = await pod.get(`/api/v3/devices/${imei}${below}`, keys.get(reader));
        assert.equal(status, seen ? 200 : 404, `${imei}${below}`);
        if (!seen) assert.equal(body.error.code, 'DEVICE_NOT_FOUND');
        else if (Array.isArray(body.data)) assert.equal(body.data.length, 1, `${imei}${below}`);
      }
      const filtered = await pod.get(`/api/v3/events?device=${imei}`, keys.get(reader));
      assert.deepEqual([filtered.status, filtered.body.data.length], [200, seen ? 1 : 0], 'device filter');
    }
  }

  for (const [reader, visible] of Object.entries(VISIBLE)) {
    test(`${reader} sees ${visible.join(', ')}`, async () => {
      await assertSees(reader, visible);
    });
  }

  test('a member who leaves sees only what is private; what was shared stays with the organization', async () => {
    await admin.run('account:update', '--email', mailOf('anna'), '--organization', 'none');
    await assertSees('anna', ['annasOwn']);
    await assertSees('ben', VISIBLE['ben'] as DeviceName[]);
  });

  test('a member who joins another organization sees what is shared there', async () => {
    await admin.run('account:update', '--email', mailOf('anna'), '--organization', 'Taxi');
    await assertSees('anna', ['annasOwn', 'sharedByDario']);
    await assertSees('dario', VISIBLE['dario'] as DeviceName[]);
  });

  test('a private device that becomes shared is seen by all members; its events of before stay private', async () => {
    await admin.importDevices(mailOf('dario'), [{ imei: DEVICES.dariosOwn, organization: true }]);
    await pod.points([
      {
        imei: DEVICES.dariosOwn,
        recorded_at: NOW_MS + 1_000,
        latitude: 41.9,
        longitude: 12.5,
        rfid: 'other',
      },
    ]);
    const get = (reader: string, path: string) => pod.get(`/api/v3${path}`, keys.get(reader));
    const expected = imeisOf(['annasOwn', 'sharedByDario', 'dariosOwn']);
    assert.deepEqual(field(await get('anna', '/devices'), 'imei'), expected);
    assert.deepEqual(field(await get('anna', NEAR), 'imei'), expected);
    assert.deepEqual(field(await get('dario', NEAR), 'imei'), imeisOf(['sharedByDario', 'dariosOwn']));
    const history = await get('anna', `/devices/${DEVICES.dariosOwn}/history`);
    assert.equal(history.body.data.length, 2);
    const tags = async (reader: string): Promise<string[]> =>
      (await get(reader, `/events?device=${DEVICES.dariosOwn}`)).body.data.map(
        (event: { data: { rfid: string } }) => event.data.rfid,
      );
    assert.deepEqual(await tags('anna'), ['other']);
    assert.deepEqual(await tags('dario'), ['other', 'card']);
  });
});
