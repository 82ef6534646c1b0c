import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { areaPod, CIRCLE, gist, TRACK } from '../../support/http/areas.ts';
import { rawRequest } from '../../support/http/http.ts';
import { feature } from '../import/importBodies.ts';

const service = areaPod();
const { api } = service;

let codes = 0;
const newCode = (): string => `code-${++codes}`;
const stored = async (id: number) => (await api.get(`/${id}`)).body.data;
const withCode = async (code: string) =>
  (await api.get(`?external_id=${encodeURIComponent(code)}`)).body.data.map(({ id }: { id: number }) => id);

describe('PUT /areas/by-external-id/{externalId}', () => {
  test('creates with 201 and a Location, then updates with 200 without one, and never makes another', async () => {
    const code = newCode();
    const created = await api.put(code, CIRCLE);
    const { id } = created.body.data;
    assert.deepEqual([created.status, created.headers.get('location')], [201, `/api/v3/areas/${id}`]);
    assert.deepEqual(created.body.meta, { upsert: 'created' });
    assert.equal(created.body.data.external_id, code);
    for (let n = 0; n < 3; n++) {
      const updated = await api.put(code, CIRCLE);
      assert.deepEqual([updated.status, updated.headers.get('location')], [200, null]);
      assert.deepEqual(updated.body, { data: created.body.data, meta: { upsert: 'updated' } });
    }
    assert.deepEqual(await withCode(code), [id]);
  });

  test('changes only the sent fields, also of an area that POST made', async () => {
    const code = newCode();
    const id = await api.make({
      ...TRACK,
      external_id: code,
      color: '#111111',
      dwell_seconds: 5,
      buffer_m: 70,
    });
    const made = await stored(id);
    assert.deepEqual((await api.put(code, { dwell_seconds: 6 })).body.data, { ...made, dwell_seconds: 6 });
    assert.deepEqual((await api.put(code, {})).body.data, { ...made, dwell_seconds: 6 });
  });

  test('answers 422 to another external id in the body or in its Feature, and makes nothing', async () => {
    for (const [body, error] of [
      [{ ...CIRCLE, external_id: 'other' }, 'MISMATCH'],
      [{ ...CIRCLE, external_id: null }, 'MISMATCH'],
      [{ ...CIRCLE, external_id: 'a b' }, 'INVALID'],
      [{ geojson: feature({ name: 'F', external_id: 'other' }) }, 'MISMATCH'],
    ] as const) {
      const code = newCode();
      assert.equal(gist(await api.put(code, body)), `422 external_id ${error}`);
      assert.deepEqual(await withCode(code), []);
    }
    const code = newCode();
    assert.equal(
      gist(await api.put(code, { ...CIRCLE, external_id: code.toUpperCase() })),
      '422 external_id MISMATCH',
    );
    assert.equal(gist(await api.put(code, { ...CIRCLE, external_id: code })), '201', 'the same');
    const nameless = { geojson: feature({ name: 'F', external_id: null }) };
    assert.equal(gist(await api.put(code, nameless)), '200', 'null in a Feature says nothing');
  });

  test('changes nothing when a field is invalid', async () => {
    const code = newCode();
    const { data } = (await api.put(code, CIRCLE)).body;
    assert.equal(gist(await api.put(code, { radius_m: 1, name: 'B' })), '422 radius_m OUT_OF_RANGE');
    assert.deepEqual(await stored(data.id), data);
  });
});

describe('the external id in the path', () => {
  const put = async (path: string, body: object) => {
    const reply = await rawRequest(service.pod.api, `/api/v3/areas/by-external-id/${path}`, {
      method: 'PUT',
      headers: { 'X-API-Key': api.key, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: reply.status, body: JSON.parse(reply.text) };
  };

  const spellings: [code: string, ...paths: string[]][] = [
    ['a/b', 'a/b', 'a%2Fb', 'a%2fb', '%61/b'],
    ['a//b', 'a//b', 'a%2F/b', 'a%2F%2Fb'],
    ['/a', '/a', '%2Fa'],
    ['a/', 'a%2F', 'a//', 'a%2F/'],
    ['//', '%2F%2F', '///'],
    ['a:b@c', 'a:b@c', 'a%3Ab%40c'],
    ['a#b', 'a%23b', 'a#b'],
    ['a.-_b', 'a.-_b', 'a%2E%2D%5Fb'],
    ['.', '%2E', '.'],
    ['..', '%2e%2e', '..'],
    ['a/../b', 'a/../b', 'a%2F..%2Fb'],
    ['1', '1', '%31', '1/'],
    ['import', 'import', 'import/'],
    ['by-external-id/x', 'by-external-id/x'],
    ['x/contains', 'x/contains'],
    [`${'x'.repeat(99)}/`, `${'x'.repeat(99)}%2F`],
    ['y'.repeat(100), 'y'.repeat(100), '%79'.repeat(100)],
  ];
  for (const [code, ...paths] of spellings) {
    test(`is ${code.slice(0, 30)} however it is escaped: ${paths.join('  ').slice(0, 60)}`, async () => {
      for (const [n, path] of paths.entries()) {
        const { status, body } = await put(path, CIRCLE);
        assert.deepEqual([status, body.data.external_id], [n === 0 ? 201 : 200, code], path);
      }
      assert.equal((await withCode(code)).length, 1);
    });
  }

  const malformed = [
    ...[
      ...['', '/', '%20', 'a%20b', 'a+b', 'a%00', 'a%0A', '%C3%A8', "a'b", 'a%22b', 'a,b', 'a;b'],
      ...['a%3Fb', 'a%252Fb'],
    ],
    ...[
      '~a',
      'a=b',
      'x'.repeat(101),
      '%78'.repeat(101),
      `${'x'.repeat(100)}%2F`,
      '%',
      'a%',
      '%zz',
      '%E0%A4%A',
    ],
  ];
  test('is refused with 400 before the body is looked at when it is malformed or missing', async () => {
    for (const path of malformed) {
      const { status, body } = await put(path, { name: '' });
      assert.deepEqual([status, body.error.code], [400, 'BAD_REQUEST'], path);
    }
    assert.equal(gist(await api.send('PUT', '/by-external-id', { body: CIRCLE })), '400 BAD_REQUEST');
  });
});
