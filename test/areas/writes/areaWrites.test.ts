import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { areaPod, BODIES, CIRCLE, gist, PLACE, POLYGON, TRACK } from '../../support/http/areas.ts';
import { rawRequest } from '../../support/http/http.ts';
import type { Reply } from '../../support/pod.ts';
import { feature } from '../import/importBodies.ts';
import { path, polygon, RING } from '../reads/geojson.ts';

// The rules of the fields are tables in test/areas, and each code is the answer to a request in codes.slow.test.ts. Here
// stands what a route makes of them.

const UNKNOWN_ID = Number.MAX_SAFE_INTEGER;
const [A, B, C, D] = POLYGON.points;
const BOW_TIE = [A, C, B, D];

const service = areaPod();
const { api } = service;

let codes = 0;
const newCode = (): string => `code-${++codes}`;
const stored = async (id: number) => (await api.get(`/${id}`)).body.data;
const withCode = async (code: string) =>
  (await api.get(`?external_id=${encodeURIComponent(code)}`)).body.data.map(({ id }: { id: number }) => id);
const total = async (): Promise<number> => (await api.get()).body.meta.total;
const warningsOf = ({ body }: Reply): string[] | undefined =>
  body.meta.warnings?.map(({ code }: { code: string }) => code);

describe('POST /areas', () => {
  for (const [type, body] of Object.entries(BODIES)) {
    test(`answers 201 with a ${type} as its detail shows it, its Location and an empty meta`, async () => {
      const reply = await api.post(body);
      const { data } = reply.body;
      assert.equal(reply.status, 201);
      assert.equal(reply.headers.get('location'), `/api/v3/areas/${data.id}`);
      assert.deepEqual(reply.body, { data: await stored(data.id), meta: {} });
      const defaults = { color: '#3b82f6', external_id: null, dwell_seconds: 0 };
      assert.deepEqual({ ...data, ...body, ...defaults }, data);
    });
  }

  test('answers 409 without details to an external id that another area of the account has', async () => {
    const code = newCode();
    await api.make({ ...CIRCLE, external_id: code });
    const before = await total();
    const reply = await api.post({ ...PLACE, external_id: code });
    assert.equal(gist(reply), '409 CONFLICT');
    assert.deepEqual(Object.keys(reply.body.error), ['code', 'message']);
    const invalid = await api.post({ ...PLACE, external_id: code, radius_m: -1 });
    assert.equal(gist(invalid), '422 radius_m OUT_OF_RANGE', 'after its fields');
    assert.equal(await total(), before);
  });
});

const WRONG = {
  name: '',
  color: 'red',
  type: 'circle',
  center: {},
  radius_m: 1,
  external_id: 5,
  dwell_seconds: 0.5,
};
const EVERY_FIELD =
  '422 name REQUIRED, color INVALID, center INVALID_COORDINATES, radius_m OUT_OF_RANGE, external_id INVALID, dwell_seconds OUT_OF_RANGE';

test('POST, PUT and PATCH answer 422 with every invalid field, and nothing is made or changed', async () => {
  const id = await api.make(CIRCLE);
  const [before, area] = [await total(), await stored(id)];
  for (const reply of [await api.post(WRONG), await api.put(newCode(), WRONG), await api.patch(id, WRONG)]) {
    assert.equal(gist(reply), EVERY_FIELD);
    assert.deepEqual(Object.keys(reply.body.error), ['code', 'message', 'details']);
    for (const detail of reply.body.error.details)
      assert.deepEqual(Object.keys(detail), ['field', 'code', 'message']);
  }
  assert.deepEqual([await total(), await stored(id)], [before, area]);
});

test('POST, PUT and PATCH warn of the geometry that is sent, and not of one that stays', async () => {
  const corners = path([0, 0], [0, 0], [2, 0], [2, 2], [0, 2], [0, 0]);
  const body = { name: 'H', geojson: polygon(corners, RING) };
  const codes = ['warnHolesIgnored', 'warnSimplifiedDuplicates', 'warnVeryLargeArea'];
  const created = await api.post(body);
  const { id } = created.body.data;
  const put = await api.put(newCode(), body);
  for (const reply of [created, put, await api.patch(id, body)]) {
    assert.deepEqual(warningsOf(reply)?.toSorted(), codes);
    for (const warning of reply.body.meta.warnings)
      assert.deepEqual(Object.keys(warning), ['code', 'message']);
  }
  assert.deepEqual(Object.keys(put.body.meta).toSorted(), ['upsert', 'warnings']);
  assert.equal(warningsOf(await api.patch(id, { name: 'Only the name' })), undefined);
});

describe('PATCH /areas/{id}', () => {
  const changes: [title: string, body: object, patch: object, expected: object][] = [
    ['several fields', TRACK, { name: ' New ', dwell_seconds: 60 }, { name: 'New', dwell_seconds: 60 }],
    ['what only the service writes', CIRCLE, { id: 5, created_at: 'x', metrics: {}, bounds: null }, {}],
  ];
  for (const [title, body, patch, expected] of changes) {
    test(`changes what is sent and answers the whole area when it gets ${title}`, async () => {
      const id = await api.make({ ...body, external_id: newCode() });
      const before = await stored(id);
      const reply = await api.patch(id, patch);
      assert.deepEqual([reply.status, reply.headers.get('location')], [200, null]);
      assert.deepEqual(reply.body, { data: { ...before, ...expected }, meta: {} });
      assert.deepEqual(await stored(id), reply.body.data);
    });
  }

  test('brings new metrics, bounds and answers of contains with a new geometry', async () => {
    const id = await api.make({ ...CIRCLE, center: { lat: 10, lng: 10 } });
    const { bounds } = await stored(id);
    const moved = (await api.patch(id, { center: { lat: 20, lng: 20 } })).body.data;
    assert.deepEqual([moved.radius_m, moved.center], [500, { lat: 20, lng: 20 }]);
    assert.notDeepEqual(moved.bounds, bounds);
    assert.equal((await api.contains(id, 20, 20)).body.data.inside, true);
    assert.equal((await api.contains(id, 10, 10)).body.data.inside, false);
    const grown = (await api.patch(id, { radius_m: 1_000 })).body.data;
    assert.ok(Math.abs(grown.metrics.area_m2 / moved.metrics.area_m2 - 4) < 0.01);
  });

  test('changes the type together with its geometry, also for the filter of the list', async () => {
    const id = await api.make(CIRCLE);
    const { created_at } = await stored(id);
    const steps: [patch: object, expected: object][] = [
      [
        { type: 'polygon', points: POLYGON.points },
        { type: 'polygon', radius_m: null, points: POLYGON.points },
      ],
      [
        { geojson: feature({ name: 'From it', radius: 300 }) },
        { type: 'circle', radius_m: 300, name: 'From it' },
      ],
    ];
    for (const [patch, expected] of steps) {
      const { data } = (await api.patch(id, patch)).body;
      assert.deepEqual({ ...data, ...expected, id, created_at }, data);
      const listed: { id: number }[] = (await api.get(`?type=${data.type}&limit=200`)).body.data;
      assert.ok(listed.some((area) => area.id === id));
    }
    assert.equal(gist(await api.patch(id, { type: 'polygon' })), '422 points TOO_FEW_POINTS', 'no geometry');
    assert.equal((await stored(id)).type, 'circle');
  });

  test('keeps an external id that is omitted, and with null removes it and frees it for another area', async () => {
    const code = newCode();
    const id = await api.make({ ...CIRCLE, external_id: code });
    assert.equal((await api.patch(id, { name: 'A' })).body.data.external_id, code);
    assert.equal((await api.patch(id, { external_id: null })).body.data.external_id, null);
    assert.equal((await api.get(`?external_id=${code}`)).body.meta.total, 0);
    const other = await api.make({ ...CIRCLE, external_id: code });
    assert.equal(gist(await api.patch(id, { external_id: code, name: 'Taken' })), '422 external_id TAKEN');
    assert.equal((await stored(id)).name, 'A');
    assert.equal(gist(await api.patch(other, { external_id: code })), '200', 'its own');
  });

  test('answers 422 to a body that no area could take, and 404 to any other, when there is no such area', async () => {
    const rows: [patch: unknown, expected: string][] = [
      [{ name: '', color: 'x' }, '422 name REQUIRED, color INVALID'],
      [{ type: 'polygon', points: BOW_TIE }, '422 points SELF_INTERSECTION'],
      [{ type: 'polyline', buffer_m: 4 }, '422 buffer_m OUT_OF_RANGE'],
      [{ geojson: 5 }, '422 geojson INVALID_GEOJSON'],
      ['{', '422 null INVALID_BODY'],
      [{}, '404 NOT_FOUND'],
      [{ radius_m: 1 }, '404 NOT_FOUND'],
      [{ type: 'circle' }, '404 NOT_FOUND'],
      [{ points: BOW_TIE, buffer_m: -1, external_id: null }, '404 NOT_FOUND'],
    ];
    for (const [patch, expected] of rows)
      assert.equal(gist(await api.patch(UNKNOWN_ID, patch)), expected, JSON.stringify(patch));
  });
});

describe('DELETE /areas/{id}', () => {
  test('answers 204 without a body; then the area is gone everywhere, and its external id is free', async () => {
    const id = await api.make({ ...CIRCLE, external_id: 'gone' });
    const before = await total();
    const reply = await api.remove(id);
    assert.deepEqual([reply.status, reply.text, reply.headers.get('content-type')], [204, '', null]);
    for (const after of [
      await api.get(`/${id}`),
      await api.contains(id, 41.9, 12.5),
      await api.remove(id),
      await api.patch(id, {}),
    ])
      assert.equal(gist(after), '404 NOT_FOUND');
    assert.equal(await total(), before - 1);
    assert.deepEqual((await api.get('?external_id=gone')).body.data, []);
    assert.notEqual(await api.make({ ...CIRCLE, external_id: 'gone' }), id);
  });

  test('does not look at a body that is sent along', async () => {
    assert.equal((await api.send('DELETE', `/${await api.make(CIRCLE)}`, { body: '{{{' })).status, 204);
  });
});

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
