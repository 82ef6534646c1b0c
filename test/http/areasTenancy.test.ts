import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Admin, adminOf } from '../support/admin.ts';
import { type AreaApi, areaApi, CIRCLE, gist } from '../support/areas.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

/** Anna and Ben share an organization, Dario has another one, Carla has none. */
const ORGANIZATIONS = { anna: 'Haulage', ben: 'Haulage', carla: null, dario: 'Taxi' } as const;
type Person = keyof typeof ORGANIZATIONS;
const PEOPLE = Object.keys(ORGANIZATIONS) as Person[];

/** Areas by name: who made them, and whether they are shared. All on one spot, all with the same code. */
const AREAS = {
  annasOwn: ['anna', false],
  annasShared: ['anna', true],
  bensOwn: ['ben', false],
  bensShared: ['ben', true],
  carlasOwn: ['carla', false],
  dariosShared: ['dario', true],
} as const satisfies Record<string, readonly [Person, boolean]>;
type AreaName = keyof typeof AREAS;

const VISIBLE: Readonly<Record<Person, readonly AreaName[]>> = {
  anna: ['annasOwn', 'annasShared', 'bensShared'],
  ben: ['annasShared', 'bensOwn', 'bensShared'],
  carla: ['carlasOwn'],
  dario: ['dariosShared'],
};

interface House {
  readonly admin: Admin;
  readonly pod: Pod;
  readonly apis: Readonly<Record<Person, AreaApi>>;
  readonly ids: Readonly<Record<AreaName, number>>;
}

async function openHouse(): Promise<House> {
  const database = await createDatabase();
  const admin = adminOf(database.url);
  const pod = await startPod(database.url);
  const apis: Partial<Record<Person, AreaApi>> = {};
  for (const [person, organization] of Object.entries(ORGANIZATIONS)) {
    const email = `${person}@example.com`;
    await admin.account(email, organization === null ? {} : { organization });
    apis[person as Person] = areaApi(pod, (await admin.key(email)).key);
  }
  const ids: Partial<Record<AreaName, number>> = {};
  for (const [name, [maker, isShared]] of Object.entries(AREAS)) {
    const code = isShared ? 'shared' : 'own';
    const id = await (apis[maker] as AreaApi).make({ ...CIRCLE, name, external_id: code });
    ids[name as AreaName] = id;
    if (isShared) await admin.run('area:share', '--id', String(id));
  }
  return { admin, pod, apis: apis as House['apis'], ids: ids as House['ids'] };
}

const namesOf = ({ body }: Reply): string[] => body.data.map(({ name }: { name: string }) => name);

describe('a key sees the areas of its account and of its organization, and no others', () => {
  let house: House;
  before(async () => {
    house = await openHouse();
  });
  after(() => house.pod.stop());

  for (const person of PEOPLE) {
    test(`${person} sees ${VISIBLE[person].join(', ')}`, async () => {
      const { apis, ids } = house;
      const api = apis[person];
      const visible = [...VISIBLE[person]].toSorted((a, b) => ids[a] - ids[b]);
      const list = await api.get();
      assert.deepEqual(namesOf(list), visible);
      assert.equal(list.body.meta.total, visible.length);
      assert.deepEqual(namesOf(await api.get('?offset=1&limit=1')), visible.slice(1, 2));
      assert.equal((await api.get('?type=circle&format=geojson')).body.data.features.length, visible.length);
      for (const [name, id] of Object.entries(ids)) {
        const expected = visible.includes(name as AreaName) ? '200' : '404 NOT_FOUND';
        assert.equal(gist(await api.get(`/${id}`)), expected, name);
        assert.equal(gist(await api.get(`/${id}?format=geojson`)), expected, name);
        assert.equal(gist(await api.contains(id, 41.9, 12.5)), expected, name);
        assert.equal(gist(await api.patch(id, {})), expected, name);
        if (expected !== '200') assert.equal(gist(await api.remove(id)), expected, name);
      }
    });
  }

  test('a code is looked for in the namespace of the own account only', async () => {
    const { apis } = house;
    assert.deepEqual(namesOf(await apis.anna.get('?external_id=shared')), ['annasShared']);
    assert.deepEqual(namesOf(await apis.ben.get('?external_id=shared')), ['bensShared']);
    assert.deepEqual(namesOf(await apis.carla.get('?external_id=shared')), []);
    assert.deepEqual(namesOf(await apis.carla.get('?external_id=own')), ['carlasOwn']);
  });
});

describe('a shared area', () => {
  let house: House;
  before(async () => {
    house = await openHouse();
  });
  after(() => house.pod.stop());

  test('is written by every member, and its code stays in the namespace of its maker', async () => {
    const { apis, ids } = house;
    const { anna, ben } = apis;
    const renamed = await ben.patch(ids.annasShared, { name: 'Renamed by Ben' });
    assert.deepEqual([renamed.status, renamed.body.data.external_id], [200, 'shared']);
    assert.equal((await anna.get(`/${ids.annasShared}`)).body.data.name, 'Renamed by Ben');

    // Ben has a code "own" himself; here it is Anna's namespace that counts, and there it is taken as well.
    assert.equal(gist(await ben.patch(ids.annasShared, { external_id: 'own' })), '422 external_id TAKEN');
    assert.equal(gist(await ben.patch(ids.annasShared, { external_id: 'other' })), '200');
    assert.equal((await anna.get('?external_id=other')).body.data[0].id, ids.annasShared);
    assert.equal((await ben.get('?external_id=other')).body.meta.total, 0);
    assert.equal(gist(await ben.post({ ...CIRCLE, external_id: 'other' })), '201');
    assert.equal(gist(await anna.post({ ...CIRCLE, external_id: 'other' })), '409 CONFLICT');
  });

  test('is found by the upsert of its maker; that of another member makes his own', async () => {
    const { apis, ids } = house;
    const own = await apis.ben.put('bens-alone', CIRCLE);
    const foreign = await apis.anna.put('bens-alone', { ...CIRCLE, name: 'Anna’s' });
    assert.deepEqual([own.status, foreign.status], [201, 201]);
    assert.notEqual(own.body.data.id, foreign.body.data.id);
    const updated = await apis.ben.put('shared', { name: 'By its maker' });
    assert.deepEqual([updated.status, updated.body.data.id], [200, ids.bensShared]);
    assert.equal((await apis.anna.get(`/${ids.bensShared}`)).body.data.name, 'By its maker');
  });

  test('stays shared when an import of its maker updates it', async () => {
    const { apis, ids } = house;
    const point = {
      type: 'Feature',
      properties: { name: 'Imported', external_id: 'shared', type: 'circle', radius: 70 },
      geometry: { type: 'Point', coordinates: [1, 2] },
    };
    const reply = await apis.dario.import(point);
    assert.deepEqual(reply.body.data.updated, [{ index: 0, id: ids.dariosShared, external_id: 'shared' }]);
  });

  test('is deleted by any member, for all of them', async () => {
    const { apis, ids } = house;
    assert.equal((await apis.anna.remove(ids.bensShared)).status, 204);
    for (const person of PEOPLE)
      assert.equal(gist(await apis[person].get(`/${ids.bensShared}`)), '404 NOT_FOUND');
  });
});

describe('sharing and moving', () => {
  let house: House;
  before(async () => {
    house = await openHouse();
  });
  after(() => house.pod.stop());

  test('what is shared is seen by the next call of a member, what is unshared no longer', async () => {
    const { admin, apis, ids } = house;
    const id = ids.annasOwn;
    for (let round = 0; round < 5; round++) {
      assert.equal(gist(await apis.ben.get(`/${id}`)), '404 NOT_FOUND');
      await admin.run('area:share', '--id', String(id));
      assert.equal(gist(await apis.ben.get(`/${id}`)), '200');
      assert.equal((await apis.ben.contains(id, 41.9, 12.5)).body.data.inside, true);
      assert.ok(namesOf(await apis.ben.get()).includes('annasOwn'));
      await admin.run('area:unshare', '--id', String(id));
    }
    assert.equal(gist(await apis.anna.get(`/${id}`)), '200');
  });

  test('an account that leaves loses sight of what it shared, and the code stays taken', async () => {
    const { admin, apis, ids } = house;
    await admin.run('account:update', '--email', 'anna@example.com', '--organization', 'none');
    assert.deepEqual(namesOf(await apis.anna.get()), ['annasOwn']);
    assert.equal(gist(await apis.anna.get(`/${ids.annasShared}`)), '404 NOT_FOUND');
    assert.equal((await apis.anna.get('?external_id=shared')).body.meta.total, 0);
    assert.equal(gist(await apis.anna.put('shared', CIRCLE)), '422 external_id TAKEN');
    assert.equal(gist(await apis.anna.post({ ...CIRCLE, external_id: 'shared' })), '409 CONFLICT');
    assert.equal(
      gist(await apis.anna.patch(ids.annasOwn, { external_id: 'shared' })),
      '422 external_id TAKEN',
    );
    const feature = {
      type: 'Feature',
      properties: { name: 'A', external_id: 'shared' },
      geometry: { type: 'Point', coordinates: [1, 2] },
    };
    const imported = await apis.anna.import(feature);
    assert.deepEqual(
      [imported.status, imported.body.data.errors.map(({ code }: { code: string }) => code)],
      [422, ['TAKEN']],
    );
    assert.equal(gist(await apis.ben.get(`/${ids.annasShared}`)), '200');
    assert.equal((await apis.ben.patch(ids.annasShared, { external_id: null })).status, 200);
    assert.equal(gist(await apis.anna.put('shared', CIRCLE)), '201');
  });

  test('an account that joins another organization sees what is shared there', async () => {
    const { admin, apis, ids } = house;
    await admin.run('account:update', '--email', 'carla@example.com', '--organization', 'Taxi');
    assert.deepEqual(namesOf(await apis.carla.get()), ['carlasOwn', 'dariosShared']);
    assert.equal((await apis.carla.contains(ids.dariosShared, 41.9, 12.5)).body.data.inside, true);
  });
});
