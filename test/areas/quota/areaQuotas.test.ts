import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AreaApi, areaPod, CIRCLE, gist } from '../../support/http/areas.ts';
import { feature } from '../import/importBodies.ts';
import { collection } from '../reads/geojson.ts';

let owners = 0;
const service = areaPod(
  ({ sql }) => sql`
    insert into plan (name, history_days, max_areas, max_area_vertices, max_idempotency_keys)
    values ('two areas', 1, 2, 1000, 1)`,
);

async function owner(plan: string): Promise<AreaApi> {
  const api = await service.newAccount();
  await service.admin.run('account:update', '--email', `owner${++owners}@example.com`, '--plan', plan);
  return api;
}

const LIMIT = '422 null LIMIT_REACHED';

test('an account that has all areas of its plan gets the error from POST, PUT and import, and another goes on', async () => {
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

test('an Idempotency-Key beyond those that a plan keeps is refused, and makes nothing', async () => {
  const api = await owner('two areas');
  const first = await api.post(CIRCLE, { 'Idempotency-Key': 'a' });
  assert.equal(gist(await api.post(CIRCLE, { 'Idempotency-Key': 'b' })), '422 Idempotency-Key LIMIT_REACHED');
  const replay = await api.post(CIRCLE, { 'Idempotency-Key': 'a' });
  assert.deepEqual([replay.status, replay.body], [201, first.body]);
  assert.equal((await api.ids()).length, 1);
});
