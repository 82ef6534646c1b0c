import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type AreaApi, type AreaPod, CIRCLE, gist, POLYGON, startAreaPod } from '../support/areas.ts';
import { collection, feature } from './importBodies.ts';

let house: AreaPod;
let owners = 0;
before(async () => {
  house = await startAreaPod();
  await house.admin.sql(
    (sql) => sql`
      insert into plan (name, history_days, max_areas, max_area_vertices, max_idempotency_keys)
      values ('two areas', 1, 2, 1000, 1), ('five vertices', 1, 1000, 5, 1000)`,
  );
});
after(() => house.pod.stop());

async function owner(plan: string): Promise<AreaApi> {
  const api = await house.newAccount();
  await house.admin.run('account:update', '--email', `owner${++owners}@example.com`, '--plan', plan);
  return api;
}

const LIMIT = '422 null LIMIT_REACHED';

test('an account whose areas are all used up is told so by every way in, and its neighbour goes on', async () => {
  const api = await owner('two areas');
  const neighbour = await owner('pro');
  const id = await api.make(CIRCLE);
  await api.put('second', CIRCLE);
  assert.equal(gist(await api.post(CIRCLE)), LIMIT);
  assert.equal(gist(await api.put('third', CIRCLE)), LIMIT);
  assert.equal(gist(await api.post(CIRCLE, { 'Idempotency-Key': 'k' })), LIMIT);
  const body = collection(feature({ name: 'A' }), feature({ name: 'B', external_id: 'second' }));
  for (const [query, status] of [
    ['?dry_run=true', 200],
    ['', 200],
  ] as const) {
    const reply = await api.import(body, query);
    assert.equal(reply.status, status, reply.text);
    const { created, updated, errors } = reply.body.data;
    assert.deepEqual([created.length, updated.length], [0, 1]);
    assert.deepEqual(errors, [
      { index: 0, code: 'LIMIT_REACHED', message: 'the account has as many areas as its plan allows' },
    ]);
  }
  assert.equal((await api.import(feature({ name: 'A' }))).status, 422);
  assert.equal((await api.put('second', { name: 'Renamed' })).status, 200);
  assert.equal((await neighbour.import(body)).body.data.created.length, 2);
  await api.remove(id);
  assert.equal((await api.import(collection(feature({ name: 'A' }), feature({ name: 'B' })))).status, 201);
  assert.equal((await api.ids()).length, 2);
});

test('a change that adds too many vertices is refused and changes nothing', async () => {
  const api = await owner('five vertices');
  const id = await api.make(POLYGON);
  const points = [...POLYGON.points, { lat: 41.97, lng: 12.3 }, { lat: 41.93, lng: 12.3 }];
  assert.equal(gist(await api.patch(id, { points })), LIMIT);
  assert.equal((await api.get(`/${id}`)).body.data.points.length, 4);
  assert.equal((await api.patch(id, { points: points.slice(0, 5) })).status, 200);
});

test('a key beyond those that are kept creates nothing, and says whose limit it is', async () => {
  const api = await owner('two areas');
  const first = await api.post(CIRCLE, { 'Idempotency-Key': 'a' });
  assert.equal(gist(await api.post(CIRCLE, { 'Idempotency-Key': 'b' })), '422 Idempotency-Key LIMIT_REACHED');
  const replay = await api.post(CIRCLE, { 'Idempotency-Key': 'a' });
  assert.deepEqual([replay.status, replay.body], [201, first.body]);
  assert.equal((await api.ids()).length, 1);
});
