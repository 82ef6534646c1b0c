import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { type AreaApi, areaApi, CIRCLE } from '../../support/http/areas.ts';
import { ownerPod } from '../../support/ownerPod.ts';
import type { Reply } from '../../support/pod.ts';

/** Anna and Ben share an organization, Carla has none. */
const MAILS = { anna: 'anna@example.com', ben: 'ben@example.com', carla: 'carla@example.com' } as const;
type Person = keyof typeof MAILS;
const PEOPLE = Object.keys(MAILS) as Person[];
const IMEIS = {
  annas: '350000000000001',
  annasSecond: '350000000000002',
  shared: '350000000000003',
  bens: '350000000000004',
  carlas: '350000000000005',
} as const;
type DeviceName = keyof typeof IMEIS;
const OWNERS: Readonly<Record<DeviceName, Person>> = {
  annas: 'anna',
  annasSecond: 'anna',
  shared: 'anna',
  bens: 'ben',
  carlas: 'carla',
};

const INSIDE = { latitude: 41.9, longitude: 12.5 };
const OUTSIDE = { latitude: 10, longitude: 10 };
const START_MS = Date.now() - 3_600_000;
const iso = (seconds: number): string => new Date(START_MS + seconds * 1_000).toISOString();

const apis = {} as Record<Person, AreaApi>;
const service = ownerPod({}, async ({ admin, pod }) => {
  for (const person of PEOPLE) {
    await admin.account(MAILS[person], person === 'carla' ? {} : { organization: 'Haulage' });
    apis[person] = areaApi(pod, (await admin.key(MAILS[person])).key);
  }
  for (const [name, imei] of Object.entries(IMEIS) as [DeviceName, string][]) {
    const options = name === 'shared' ? ['--organization'] : ['--name', name, '--plate', `P-${name}`];
    await admin.device(MAILS[OWNERS[name]], imei, ...options);
  }
});

let seconds = 0;
/** Devices report from a place, each `step` seconds after the report before. */
async function report(place: typeof INSIDE, names: readonly DeviceName[], step = 10): Promise<void> {
  for (const name of names) {
    seconds += step;
    const point = { imei: IMEIS[name], recorded_at: START_MS + seconds * 1_000, ...place, speed_kmh: 0 };
    assert.equal((await service.pod.points([point])).accepted, 1);
  }
}

const devicesIn = (person: Person, id: number, query = ''): Promise<Reply> =>
  apis[person].get(`/${id}/devices${query}`);

/** The names of the devices that are listed, in order. */
async function listed(person: Person, id: number, query = ''): Promise<string[]> {
  const { status, body, text } = await devicesIn(person, id, query);
  assert.equal(status, 200, text);
  const names = new Map(Object.entries(IMEIS).map(([name, imei]) => [imei as string, name]));
  return body.data.map(({ device }: { device: { imei: string } }) => names.get(device.imei));
}

describe('the devices in an area', () => {
  let area: number;
  before(async () => {
    area = await apis.anna.make({ ...CIRCLE, dwell_seconds: 60 });
  });

  test('are pending with the dwell that is left, then inside, and gone with the first point outside', async () => {
    await report(INSIDE, ['annas']);
    const since = seconds;
    const device = { id: IMEIS.annas, imei: IMEIS.annas, name: 'annas', plate: 'P-annas', status: 'parked' };
    const item = { device, since: iso(since), entered_at: null, dwell_left_seconds: 60 };
    const meta = (count: number) => ({ pagination: { limit: 50, offset: 0, count }, total: count });
    const none = { data: [], meta: meta(0) };
    const one = (more: object) => ({ data: [{ ...item, ...more }], meta: meta(1) });

    const first = one({ last_point_at: iso(since) });
    assert.deepEqual((await devicesIn('anna', area)).body, first);
    assert.deepEqual((await devicesIn('anna', area, '?state=pending')).body, first);
    assert.deepEqual((await devicesIn('anna', area, '?state=inside')).body, none);

    await report(INSIDE, ['annas'], 45);
    const second = one({ dwell_left_seconds: 15, last_point_at: iso(since + 45) });
    assert.deepEqual((await devicesIn('anna', area, '?state=pending')).body, second);

    await report(INSIDE, ['annas'], 15);
    const entered = { entered_at: iso(since + 60), dwell_left_seconds: 0 };
    const third = one({ ...entered, last_point_at: iso(since + 60) });
    assert.deepEqual((await devicesIn('anna', area)).body, third);
    assert.deepEqual((await devicesIn('anna', area, '?state=inside')).body, third);
    assert.deepEqual((await devicesIn('anna', area, '?state=pending')).body, none);

    await report(INSIDE, ['annas'], 10);
    assert.deepEqual(
      (await devicesIn('anna', area)).body,
      one({ ...entered, last_point_at: iso(since + 70) }),
    );
    await report(OUTSIDE, ['annas'], 10);
    assert.deepEqual((await devicesIn('anna', area)).body, none);
  });

  test('a dwell that changes holds from the next point on, and what is left is counted by the new one', async () => {
    await report(INSIDE, ['annas']);
    await report(INSIDE, ['annas'], 40);
    const left = async () => (await devicesIn('anna', area)).body.data[0].dwell_left_seconds;
    assert.equal(await left(), 20);
    await apis.anna.patch(area, { dwell_seconds: 100 });
    assert.equal(await left(), 60);
    await apis.anna.patch(area, { dwell_seconds: 5 });
    assert.equal(await left(), 0);
    assert.deepEqual(await listed('anna', area, '?state=pending'), ['annas']);
    await report(INSIDE, ['annas'], 1);
    assert.deepEqual(await listed('anna', area, '?state=inside'), ['annas']);
    await report(OUTSIDE, ['annas']);
    await apis.anna.patch(area, { dwell_seconds: 60 });
  });

  test('come in the order of their stays, in pages with the number of all', async () => {
    await report(INSIDE, ['annasSecond', 'shared', 'annas']);
    assert.deepEqual(await listed('anna', area), ['annasSecond', 'shared', 'annas']);
    await report(INSIDE, ['annas'], 60);
    assert.deepEqual(await listed('anna', area), ['annasSecond', 'shared', 'annas'], 'also across states');
    const { body } = await devicesIn('anna', area, '?limit=1&offset=1');
    assert.deepEqual(body.meta, { pagination: { limit: 1, offset: 1, count: 1 }, total: 3 });
    assert.equal(body.data[0].device.imei, IMEIS.shared);
    assert.deepEqual(await listed('anna', area, '?offset=9'), []);
    await report(OUTSIDE, ['annasSecond', 'shared', 'annas']);
  });

  test('an area that moves keeps them until their next points', async () => {
    const moving = await apis.anna.make(CIRCLE);
    await report(INSIDE, ['annas']);
    await apis.anna.patch(moving, { center: { lat: 50, lng: 50 } });
    assert.deepEqual(await listed('anna', moving), ['annas']);
    await report(INSIDE, ['annas']);
    assert.deepEqual(await listed('anna', moving), []);
    await report(OUTSIDE, ['annas']);
    await apis.anna.remove(moving);
  });
});

describe('who sees whom', () => {
  const ALL: readonly DeviceName[] = ['annas', 'shared', 'bens', 'carlas'];
  const ids = {} as Record<'annas' | 'shared' | 'carlas', number>;
  before(async () => {
    ids.annas = await apis.anna.make(CIRCLE);
    ids.shared = await apis.anna.make(CIRCLE);
    ids.carlas = await apis.carla.make(CIRCLE);
    await service.admin.run('area:share', '--id', String(ids.shared));
    await report(INSIDE, ALL);
  });

  const reasons: Readonly<Record<Person, Readonly<Record<keyof typeof ids, readonly DeviceName[] | 404>>>> = {
    anna: { annas: ['annas', 'shared'], shared: ['annas', 'shared'], carlas: 404 },
    ben: { annas: 404, shared: ['shared', 'bens'], carlas: 404 },
    carla: { annas: 404, shared: 404, carlas: ['carlas'] },
  };
  for (const person of PEOPLE) {
    for (const [name, expected] of Object.entries(reasons[person])) {
      test(`${person} sees in ${name}: ${expected}`, async () => {
        const id = ids[name as keyof typeof ids];
        if (expected === 404) assert.equal((await devicesIn(person, id)).status, 404);
        else assert.deepEqual(await listed(person, id), expected);
      });
    }
  }

  test("a device that becomes the organization's is seen by its members, and by its owner alone again", async () => {
    const own = (shared: boolean) =>
      service.admin.importDevices(MAILS.anna, [{ imei: IMEIS.annas, organization: shared }]);
    await own(true);
    assert.deepEqual(await listed('ben', ids.shared), ['annas', 'shared', 'bens']);
    await own(false);
    assert.deepEqual(await listed('ben', ids.shared), ['shared', 'bens']);
    assert.deepEqual(await listed('anna', ids.shared), ['annas', 'shared']);
  });

  test('an area that is deleted is a 404, like one that never was', async () => {
    const id = await apis.anna.make(CIRCLE);
    await report(INSIDE, ['annas']);
    assert.deepEqual(await listed('anna', id), ['annas']);
    await apis.anna.remove(id);
    const gone = await devicesIn('anna', id);
    const never = await devicesIn('anna', 999_999_999);
    assert.deepEqual([gone.status, gone.text], [404, never.text]);
  });
});

describe('a call for the devices in an area', () => {
  let id: number;
  before(async () => {
    id = await apis.anna.make(CIRCLE);
  });

  test('needs both permissions', async () => {
    const statusWith = async (scopes: string) => {
      const { key } = await service.admin.key(MAILS.anna, { scopes });
      return (await service.pod.get(`/api/v3/areas/${id}/devices`, key)).status;
    };
    assert.deepEqual(
      [
        await statusWith('read_areas'),
        await statusWith('read_devices'),
        await statusWith('read_areas,read_devices'),
      ],
      [403, 403, 200],
    );
  });

  for (const [path, status] of [
    ['x/devices', 400],
    ['0/devices', 400],
    [':id/devices?state=outside', 400],
    [':id/devices?limit=1&limit=2', 400],
    [':id/devices?limit=9999&offset=-3&state=', 200],
  ] as const) {
    test(`${path} is a ${status}`, async () => {
      const reply = await apis.anna.get(`/${path.replace(':id', String(id))}`);
      assert.equal(reply.status, status, reply.text);
      if (status === 200)
        assert.deepEqual(reply.body.meta.pagination, {
          limit: 200,
          offset: 0,
          count: reply.body.data.length,
        });
    });
  }
});
