import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type AreaApi, type AreaPod, CIRCLE, gist, startAreaPod, TRACK } from '../support/areas.ts';
import { rawRequest } from '../support/http.ts';

const FEATURE = {
  type: 'Feature',
  properties: {
    name: 'From the feature',
    color: '#00ff00',
    external_id: 'feature',
    dwell_seconds: 7,
    radius: 300,
  },
  geometry: { type: 'Point', coordinates: [12.5, 41.9, 100] },
};

let house: AreaPod;
let api: AreaApi;
before(async () => {
  house = await startAreaPod();
  api = await house.newAccount();
});
after(() => house.pod.stop());

let codes = 0;
const newCode = (): string => `code-${++codes}`;
const stored = async (id: number) => (await api.get(`/${id}`)).body.data;

describe('PUT by external id', () => {
  test('201 with a Location creates, 200 without one updates, and no repetition makes another', async () => {
    const code = newCode();
    const created = await api.put(code, CIRCLE);
    assert.equal(created.status, 201);
    const { id } = created.body.data;
    assert.equal(created.headers.get('location'), `/api/v3/areas/${id}`);
    assert.deepEqual(created.body.meta, { upsert: 'created' });
    assert.equal(created.body.data.external_id, code);
    for (let n = 0; n < 3; n++) {
      const updated = await api.put(code, CIRCLE);
      assert.equal(updated.status, 200);
      assert.equal(updated.headers.get('location'), null);
      assert.deepEqual(updated.body, { data: created.body.data, meta: { upsert: 'updated' } });
    }
    assert.deepEqual((await api.get(`?external_id=${code}`)).body.meta.total, 1);
  });

  test('only the sent fields change', async () => {
    const code = newCode();
    const { id, ...made } = (
      await api.put(code, { ...TRACK, color: '#111111', dwell_seconds: 5, buffer_m: 70 })
    ).body.data;
    const updated = await api.put(code, { dwell_seconds: 6 });
    assert.deepEqual(updated.body.data, { id, ...made, dwell_seconds: 6 });
    assert.deepEqual((await api.put(code, {})).body.data, { id, ...made, dwell_seconds: 6 });
    assert.deepEqual(await stored(id), { id, ...made, dwell_seconds: 6 });
  });

  test('an area made by POST or import is found by its code', async () => {
    const code = newCode();
    const id = await api.make({ ...CIRCLE, external_id: code });
    const reply = await api.put(code, { name: 'Renamed' });
    assert.deepEqual([reply.status, reply.body.data.id, reply.body.data.name], [200, id, 'Renamed']);
  });

  test('geojson works here too', async () => {
    const code = newCode();
    const reply = await api.put(code, { geojson: { ...FEATURE, properties: { name: 'F' } } });
    assert.deepEqual([reply.status, reply.body.data.type, reply.body.data.external_id], [201, 'point', code]);
  });

  const mismatches: [title: string, body: (code: string) => object, expected: string][] = [
    ['the same code', (code) => ({ ...CIRCLE, external_id: code }), '201'],
    ['another code', () => ({ ...CIRCLE, external_id: 'other' }), '422 external_id MISMATCH'],
    [
      'the code in another case',
      (code) => ({ ...CIRCLE, external_id: code.toUpperCase() }),
      '422 external_id MISMATCH',
    ],
    ['null', () => ({ ...CIRCLE, external_id: null }), '422 external_id MISMATCH'],
    ['a malformed code', () => ({ ...CIRCLE, external_id: 'a b' }), '422 external_id INVALID'],
    ['another code in the Feature', () => ({ geojson: FEATURE }), '422 external_id MISMATCH'],
    [
      'the same code above another in the Feature',
      (code) => ({ external_id: code, geojson: FEATURE }),
      '201',
    ],
    [
      'another code among other faults',
      () => ({ name: '', external_id: 'other', type: 'circle' }),
      '422 name REQUIRED, center REQUIRED, radius_m REQUIRED, external_id MISMATCH',
    ],
  ];
  for (const [title, body, expected] of mismatches) {
    test(`${title} in the body: ${expected}`, async () => {
      const code = newCode();
      assert.equal(gist(await api.put(code, body(code))), expected);
      assert.equal((await api.get(`?external_id=${code}`)).body.meta.total, expected === '201' ? 1 : 0);
    });
  }

  test('422: what is invalid neither creates nor changes', async () => {
    const code = newCode();
    assert.equal(gist(await api.put(code, { name: 'A' })), '422 type INVALID');
    assert.equal(gist(await api.put(code, {})), '422 name REQUIRED, type INVALID');
    assert.equal((await api.get(`?external_id=${code}`)).body.meta.total, 0);
    const { data } = (await api.put(code, CIRCLE)).body;
    assert.equal(gist(await api.put(code, { radius_m: 1, name: 'B' })), '422 radius_m OUT_OF_RANGE');
    assert.deepEqual(await stored(data.id), data);
  });

  describe('the code in the path', () => {
    const spellings: [code: string, ...paths: string[]][] = [
      ['a/b', 'a/b', 'a%2Fb', 'a%2fb', '%61/b'],
      ['a//b', 'a//b', 'a%2F/b', 'a%2F%2Fb'],
      ['/a', '/a', '%2Fa'],
      ['a/', 'a%2F', 'a//', 'a%2F/'],
      ['//', '%2F%2F', '///'],
      ['a:b', 'a:b', 'a%3Ab'],
      ['a@b', 'a@b', 'a%40b'],
      ['a#b', 'a%23b', 'a#b'],
      ['a.b', 'a.b', 'a%2Eb'],
      ['a-_b', 'a-_b', 'a%2D%5Fb'],
      ['.', '%2E', '.'],
      ['..', '%2e%2e', '..'],
      ['a/../b', 'a/../b', 'a%2F..%2Fb'],
      ['a/./b', 'a/./b'],
      ['1', '1', '%31', '1/'],
      ['import', 'import', 'import/'],
      ['by-external-id/x', 'by-external-id/x'],
      ['x/contains', 'x/contains'],
      [`${'x'.repeat(99)}/`, `${'x'.repeat(99)}%2F`],
      ['y'.repeat(100), 'y'.repeat(100), '%79'.repeat(100)],
    ];
    const put = async (path: string, body: object) => {
      const reply = await rawRequest(house.pod.api, `/api/v3/areas/by-external-id/${path}`, {
        method: 'PUT',
        headers: { 'X-API-Key': api.key, 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      });
      return { status: reply.status, body: JSON.parse(reply.text) };
    };

    for (const [code, ...paths] of spellings) {
      test(`${code.slice(0, 30)} is the same code however it is written: ${paths.join('  ').slice(0, 60)}`, async () => {
        const ids = new Set<number>();
        for (const [n, path] of paths.entries()) {
          const { status, body } = await put(path, CIRCLE);
          assert.equal(status, n === 0 ? 201 : 200, path);
          assert.equal(body.data.external_id, code, path);
          ids.add(body.data.id);
        }
        assert.equal(ids.size, 1);
        const found = await api.get(`?external_id=${encodeURIComponent(code)}`);
        assert.deepEqual(
          found.body.data.map(({ id }: { id: number }) => id),
          [...ids],
        );
      });
    }

    const malformed = [
      '',
      '/',
      '%20',
      'a%20b',
      'a+b',
      'a%2Bb',
      'a%00',
      'a%0A',
      '%C3%A8',
      'a*b',
      "a'b",
      'a%22b',
      'a,b',
      'a;b',
      'a%3Fb',
      'a%25b',
      'a%252Fb',
      '~a',
      'a=b',
      'x'.repeat(101),
      '%78'.repeat(101),
      `${'x'.repeat(100)}%2F`,
      '%',
      'a%',
      '%zz',
      '%E0%A4%A',
    ];
    for (const path of malformed) {
      test(`400 before anything else: ${path === '' ? 'nothing' : path.slice(0, 30)}`, async () => {
        const { status, body } = await put(path, { name: '' });
        assert.deepEqual([status, body.error.code], [400, 'BAD_REQUEST']);
      });
    }

    test('400 without the slash as well', async () => {
      assert.equal(gist(await api.send('PUT', '/by-external-id', { body: CIRCLE })), '400 BAD_REQUEST');
    });
  });
});
