import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { areaPod, CIRCLE, gist } from '../../support/http/areas.ts';
import type { Reply } from '../../support/pod.ts';
import { multiPolygon, polygon } from '../reads/geojson.ts';
import { BOW_TIE, collection, FAR_RING, feature, HOLE, LINE, POLYGON, RING } from './importBodies.ts';

// Which bodies make which areas, and every error and warning, are tables in test/areas/import; each code is the answer
// to a request in codes.test.ts.

const service = areaPod();
const { api } = service;

const total = async (by = api): Promise<number> => (await by.get()).body.meta.total;
const errorsOf = ({ body }: Reply): string[] =>
  body.data.errors.map(({ index, code }: { index: number; code: string }) => `${index} ${code}`);
const indexesOf = (made: { index: number }[]): number[] => made.map(({ index }) => index);
const EMPTY = { dry_run: false, valid: 0, created: [], updated: [], errors: [], warnings: [] };
const WITHOUT_NAME = feature({});

describe('POST /areas/import answers 201 and makes areas', () => {
  const islands = multiPolygon([RING], [FAR_RING]);
  const forms: [form: string, body: object, names: string[]][] = [
    ['a FeatureCollection', collection(feature({ name: 'A' }), feature({ name: 'B' }, LINE)), ['A', 'B']],
    ['a Feature', feature({ name: 'A' }), ['A']],
    ['a Geometry', LINE, ['Imported area']],
    [
      'a Feature of several parts, one area each',
      feature({ name: 'Islands' }, islands),
      ['Islands (1)', 'Islands (2)'],
    ],
    ['a FeatureCollection in a wrapper', { geojson: collection(feature({ name: 'A' })) }, ['A']],
    ['a Feature in a wrapper', { geojson: feature({ name: 'A' }) }, ['A']],
    ['a Geometry in a wrapper', { geojson: POLYGON, name: 'not looked at' }, ['Imported area']],
  ];
  for (const [form, body, names] of forms) {
    test(`from ${form}`, async () => {
      const own = await service.newAccount();
      const reply = await own.import(body);
      assert.equal(reply.status, 201, reply.text);
      const listed: { id: number; name: string }[] = (await own.get()).body.data;
      assert.deepEqual(
        listed.map(({ name }) => name),
        names,
      );
      const created = listed.map(({ id }, n) => ({ index: 'features' in body ? n : 0, id }));
      assert.deepEqual(reply.body, { data: { ...EMPTY, valid: names.length, created }, meta: {} });
    });
  }
});

describe('a feature with an external id', () => {
  test('updates the area that has it, which keeps what is not said: 200 when nothing was created', async () => {
    const own = await service.newAccount();
    const id = await own.make({ ...CIRCLE, external_id: 'x', color: '#123456', dwell_seconds: 9 });
    const at = { type: 'Point', coordinates: [1, 2] };
    const reply = await own.import(feature({ external_id: 'x', name: 'New' }, at));
    const updated = [{ index: 0, id, external_id: 'x' }];
    assert.deepEqual([reply.status, reply.body.data], [200, { ...EMPTY, valid: 1, updated }]);
    const area = (await own.get(`/${id}`)).body.data;
    const expected = { name: 'New', color: '#123456', dwell_seconds: 9, type: 'circle', radius_m: 500 };
    assert.deepEqual({ ...area, ...expected, center: { lat: 2, lng: 1 } }, area);
    await own.import(feature({ external_id: 'x' }, POLYGON));
    const changed = (await own.get(`/${id}`)).body.data;
    assert.deepEqual({ ...changed, name: 'New', type: 'polygon', radius_m: null }, changed);
  });

  test('is listed in updated, one that makes an area in created, each in the order of the features: 201', async () => {
    const own = await service.newAccount();
    const [x, y] = [
      await own.make({ ...CIRCLE, external_id: 'x' }),
      await own.make({ ...CIRCLE, external_id: 'y' }),
    ];
    const named = (name: string, external_id?: string) => feature({ name, external_id });
    const reply = await own.import(collection(named('A'), named('Y', 'y'), named('B', 'b'), named('X', 'x')));
    const { created, updated, valid } = reply.body.data;
    assert.deepEqual([reply.status, valid, indexesOf(created)], [201, 4, [0, 2]]);
    assert.deepEqual(updated, [
      { index: 1, id: y, external_id: 'y' },
      { index: 3, id: x, external_id: 'x' },
    ]);
    assert.equal((await own.get('?external_id=b')).body.data[0].id, created[1].id);
    const again = await own.import(collection(named('Y', 'y'), named('B', 'b')));
    assert.deepEqual([again.status, again.body.data.updated.length, await total(own)], [200, 2, 4]);
  });
});

describe('an error', () => {
  test('costs only its feature, in the order of the features, with a message when a field is invalid', async () => {
    const before = await total();
    const fine = feature({ name: 'A' });
    const bad = [
      WITHOUT_NAME,
      null,
      feature({ name: 'A' }, BOW_TIE),
      feature({ external_id: '', dwell_seconds: -1 }),
    ];
    const reply = await api.import(collection(fine, ...bad, fine));
    assert.equal(reply.status, 201);
    assert.deepEqual(errorsOf(reply), [
      ...['1 REQUIRED', '2 errGeoJsonInvalid', '3 SELF_INTERSECTION'],
      ...['4 REQUIRED', '4 INVALID', '4 OUT_OF_RANGE'],
    ]);
    for (const error of reply.body.data.errors)
      assert.deepEqual(Object.keys(error), [
        'index',
        'code',
        ...(error.code.startsWith('err') ? [] : ['message']),
      ]);
    assert.deepEqual([indexesOf(reply.body.data.created), reply.body.data.valid], [[0, 5], 2]);
    assert.equal(await total(), before + 2);
  });

  test('of the whole call is a 422 beside the data when no feature is valid', async () => {
    const before = await total();
    for (const [body, errors] of [
      [collection(), []],
      [collection(WITHOUT_NAME, null), ['0 REQUIRED', '1 errGeoJsonInvalid']],
      [{ type: 'GeometryCollection', geometries: [] }, ['0 errGeometryUnsupported']],
    ] as const) {
      const reply = await api.import(body);
      assert.deepEqual([reply.status, reply.body.error.code], [422, 'VALIDATION_ERROR']);
      assert.equal(typeof reply.body.error.message, 'string');
      assert.deepEqual(errorsOf(reply), errors);
      assert.deepEqual({ ...reply.body.data, errors: [] }, EMPTY);
    }
    assert.equal(await total(), before);
  });

  test('is a 422 without data when the body is no GeoJSON', async () => {
    for (const body of [{}, { geojson: 'x' }, { type: 'FeatureCollection' }, CIRCLE]) {
      for (const query of ['', '?dry_run=true']) {
        const reply = await api.import(body, query);
        assert.deepEqual([gist(reply), reply.body.data], ['422 geojson INVALID_GEOJSON', undefined]);
      }
    }
  });
});

test('a warning has the index of its feature and a code', async () => {
  const holed = feature({ name: 'H' }, polygon(RING, HOLE));
  const double = feature({ name: 'S' }, { ...LINE, coordinates: [LINE.coordinates[0], ...LINE.coordinates] });
  const reply = await api.import(collection(holed, double, feature({ name: 'A' })));
  assert.deepEqual(reply.body.data.warnings, [
    { index: 0, code: 'warnHolesIgnored' },
    { index: 1, code: 'warnSimplifiedDuplicates' },
  ]);
});

describe('a dry run', () => {
  test('is asked for in the query or in the body', async () => {
    const before = await total();
    const body = collection(feature({ name: 'A' }));
    const rows: [body: object, query: string, dryRun: boolean][] = [
      [body, '?dry_run=true', true],
      [{ ...body, dry_run: true }, '?dry_run=false', true],
      [{ geojson: body, dry_run: true }, '', true],
      [{ ...body, dry_run: false }, '?dry_run=true', true],
      [{ ...body, dry_run: null }, '?dry_run=', false],
      [body, '?DRY_RUN=true', false],
    ];
    for (const [sent, query, dryRun] of rows) {
      const { status, body } = await api.import(sent, query);
      assert.deepEqual(
        [status, body.data.dry_run],
        [dryRun ? 200 : 201, dryRun],
        `${JSON.stringify(sent)} ${query}`,
      );
    }
    assert.equal(await total(), before + 2);
  });

  test('is refused when it is neither true nor false: 400 in the query, 422 in the body', async () => {
    const before = await total();
    for (const value of ['yes', '1', 'TRUE', '%20true', 'true&dry_run=true'])
      assert.equal(gist(await api.import(collection(), `?dry_run=${value}`)), '400 BAD_REQUEST', value);
    for (const dry_run of ['true', 1, 0, '', {}, [true]]) {
      for (const body of [collection(feature({ name: 'A' })), { geojson: feature({ name: 'A' }) }])
        assert.equal(gist(await api.import({ ...body, dry_run })), '422 dry_run INVALID');
    }
    assert.equal(await total(), before);
  });

  test('is answered 200 when nothing is valid, too', async () => {
    const reply = await api.import(collection(WITHOUT_NAME), '?dry_run=true');
    assert.deepEqual([reply.status, reply.body.error, errorsOf(reply)], [200, undefined, ['0 REQUIRED']]);
  });
});
