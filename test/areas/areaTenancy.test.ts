import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { type AreaApi, areaApi, CIRCLE, gist } from '../support/http/areas.ts';
import { ownerPod } from '../support/ownerPod.ts';
import type { Reply } from '../support/pod.ts';
import { feature } from './import/importBodies.ts';

/** Anna and Ben share an organization, Dario has another one, Carla has none. */
const ORGANIZATIONS = { anna: 'Haulage', ben: 'Haulage', carla: null, dario: 'Taxi' } as const;
type Person = keyof typeof ORGANIZATIONS;
const PEOPLE = Object.keys(ORGANIZATIONS) as Person[];

/** Areas by name: who made them, and whether they are shared. All on one spot, with the same external ids. */
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

/** Four people with areas of their own, who share nothing with those of other tests. */
interface People {
  readonly apis: Readonly<Record<Person, AreaApi>>;
  readonly ids: Readonly<Record<AreaName, number>>;
  share(action: 'area:share' | 'area:unshare', name: AreaName): Promise<unknown>;
  join(person: Person, organization: string): Promise<unknown>;
}

const service = ownerPod();
let groups = 0;

async function newPeople(): Promise<People> {
  const { admin, pod } = service;
  const group = ++groups;
  const emailOf = (person: string): string => `${person}.${group}@example.com`;
  const apis = {} as Record<Person, AreaApi>;
  for (const [person, organization] of Object.entries(ORGANIZATIONS)) {
    const options = organization === null ? {} : { organization: `${organization} ${group}` };
    await admin.account(emailOf(person), options);
    apis[person as Person] = areaApi(pod, (await admin.key(emailOf(person))).key);
  }
  const ids = {} as Record<AreaName, number>;
  const share: People['share'] = (action, name) => admin.run(action, '--id', String(ids[name]));
  for (const [name, [maker, isShared]] of Object.entries(AREAS) as [AreaName, (typeof AREAS)[AreaName]][]) {
    ids[name] = await apis[maker].make({ ...CIRCLE, name, external_id: isShared ? 'shared' : 'own' });
    if (isShared) await share('area:share', name);
  }
  const join: People['join'] = (person, organization) => {
    const name = organization === 'none' ? organization : `${organization} ${group}`;
    return admin.run('account:update', '--email', emailOf(person), '--organization', name);
  };
  return { apis, ids, share, join };
}

const namesOf = ({ body }: Reply): string[] => body.data.map(({ name }: { name: string }) => name);

describe('a key sees the areas of its account and those shared in its organization', () => {
  let people: People;
  before(async () => {
    people = await newPeople();
  });

  for (const person of PEOPLE) {
    test(`${person} sees ${VISIBLE[person].join(', ')}`, async () => {
      const { apis, ids } = people;
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

  test('and an external id finds one of its account only', async () => {
    const { apis } = people;
    assert.deepEqual(namesOf(await apis.anna.get('?external_id=shared')), ['annasShared']);
    assert.deepEqual(namesOf(await apis.ben.get('?external_id=shared')), ['bensShared']);
    assert.deepEqual(namesOf(await apis.carla.get('?external_id=shared')), []);
    assert.deepEqual(namesOf(await apis.carla.get('?external_id=own')), ['carlasOwn']);
  });
});

describe('a shared area', () => {
  let people: People;
  before(async () => {
    people = await newPeople();
  });

  test('is changed by every member, and its external id stays one of the account that made it', async () => {
    const { apis, ids } = people;
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

  test('is found by a PUT of the account that made it, and not by that of another member', async () => {
    const { apis, ids } = people;
    const own = await apis.ben.put('bens-alone', CIRCLE);
    const foreign = await apis.anna.put('bens-alone', { ...CIRCLE, name: 'Anna’s' });
    assert.deepEqual([own.status, foreign.status], [201, 201]);
    assert.notEqual(own.body.data.id, foreign.body.data.id);
    const updated = await apis.ben.put('shared', { name: 'By its maker' });
    assert.deepEqual([updated.status, updated.body.data.id], [200, ids.bensShared]);
    assert.equal((await apis.anna.get(`/${ids.bensShared}`)).body.data.name, 'By its maker');
  });

  test('stays shared when an import of its account updates it', async () => {
    const { apis, ids } = people;
    const reply = await apis.dario.import(
      feature({ name: 'Imported', external_id: 'shared', type: 'circle', radius: 70 }),
    );
    assert.deepEqual(reply.body.data.updated, [{ index: 0, id: ids.dariosShared, external_id: 'shared' }]);
  });

  test('is deleted by any member, for all of them', async () => {
    const { apis, ids } = people;
    assert.equal((await apis.anna.remove(ids.bensShared)).status, 204);
    for (const person of PEOPLE)
      assert.equal(gist(await apis[person].get(`/${ids.bensShared}`)), '404 NOT_FOUND');
  });
});

describe('sharing and changing the organization', () => {
  let people: People;
  before(async () => {
    people = await newPeople();
  });

  test('show what is shared to the next call of a member, and hide what is unshared from it', async () => {
    const { apis, ids, share } = people;
    const id = ids.annasOwn;
    for (let round = 0; round < 2; round++) {
      assert.equal(gist(await apis.ben.get(`/${id}`)), '404 NOT_FOUND');
      await share('area:share', 'annasOwn');
      assert.equal(gist(await apis.ben.get(`/${id}`)), '200');
      assert.equal((await apis.ben.contains(id, 41.9, 12.5)).body.data.inside, true);
      assert.ok(namesOf(await apis.ben.get()).includes('annasOwn'));
      await share('area:unshare', 'annasOwn');
    }
    assert.equal(gist(await apis.anna.get(`/${id}`)), '200');
  });

  test('hide from an account that leaves what it shared, and keep the external id of that taken', async () => {
    const { apis, ids, join } = people;
    await join('anna', 'none');
    assert.deepEqual(namesOf(await apis.anna.get()), ['annasOwn']);
    assert.equal(gist(await apis.anna.get(`/${ids.annasShared}`)), '404 NOT_FOUND');
    assert.equal((await apis.anna.get('?external_id=shared')).body.meta.total, 0);
    assert.equal(gist(await apis.anna.put('shared', CIRCLE)), '422 external_id TAKEN');
    assert.equal(gist(await apis.anna.post({ ...CIRCLE, external_id: 'shared' })), '409 CONFLICT');
    assert.equal(
      gist(await apis.anna.patch(ids.annasOwn, { external_id: 'shared' })),
      '422 external_id TAKEN',
    );
    const imported = await apis.anna.import(feature({ name: 'A', external_id: 'shared' }));
    assert.deepEqual(
      [imported.status, imported.body.data.errors.map(({ code }: { code: string }) => code)],
      [422, ['TAKEN']],
    );
    assert.equal(gist(await apis.ben.get(`/${ids.annasShared}`)), '200');
    assert.equal((await apis.ben.patch(ids.annasShared, { external_id: null })).status, 200);
    assert.equal(gist(await apis.anna.put('shared', CIRCLE)), '201');
  });

  test('show an account that joins another organization what is shared there', async () => {
    const { apis, ids, join } = people;
    await join('carla', 'Taxi');
    assert.deepEqual(namesOf(await apis.carla.get()), ['carlasOwn', 'dariosShared']);
    assert.equal((await apis.carla.contains(ids.dariosShared, 41.9, 12.5)).body.data.inside, true);
  });
});
