import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { areaPod, CIRCLE, gist } from '../../support/http/areas.ts';
import { OWNER } from '../../support/ownerPod.ts';
import type { Reply } from '../../support/pod.ts';
import { IS_TORTURE } from '../../support/torture.ts';
import {
  BOW_TIE,
  collection,
  FAR_RING,
  HOLE,
  LINE,
  multiPolygon,
  POLYGON,
  polygon,
  RING,
} from '../reads/geojson.ts';
import { feature } from './importBodies.ts';

// Which bodies make which areas, and every error and warning, are tables in test/areas/import; each code is the answer
// to a request in codes.slow.test.ts.

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
      feature({ name: 'A' }, polygon(BOW_TIE)),
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

const MB = 1024 * 1024;
/** Of each area of the largest import; as many as there may be under torture. */
const VERTICES = IS_TORTURE ? 2_000 : 200;
/** Leaves the processor to the import that is polled beside. */
const PAUSE_MS = 20;
describe('a large import', () => {
  const padded = (bytes: number): string => {
    const text = JSON.stringify(feature({ name: 'A', padding: '' }));
    return text.replace('"padding":""', `"padding":"${'x'.repeat(bytes - text.length)}"`);
  };

  test('of 32 MB is read, and of one byte more refused with 413', async () => {
    assert.equal((await api.import(padded(32 * MB))).status, 201);
    assert.equal(gist(await api.import(padded(32 * MB + 1))), '413 PAYLOAD_TOO_LARGE');
    assert.equal((await api.import(feature({ name: 'A' }))).status, 201);
  });

  test('that takes all memory to read is refused with 413, and those that wait behind it are made', async () => {
    // Within JSON.parse, where V8 keeps to no limit of a thread and ends the process.
    const bomb = `{"type":"MultiPoint","coordinates":[${'[{}],'.repeat(5_000_000)}[0,0]]}`;
    let isRejected = false;
    const rejected = api.import(bomb).finally(() => {
      isRejected = true;
    });
    while (!isRejected) {
      assert.equal((await api.import(feature({ name: 'Behind' }))).status, 201);
      await sleep(PAUSE_MS);
    }
    assert.equal(gist(await rejected), '413 PAYLOAD_TOO_LARGE');
    assert.equal((await api.import(feature({ name: 'Next' }))).status, 201);
  });

  const crowded = `{"type":"Feature","properties":{"name":"A"},"geometry":{"type":"MultiPoint","coordinates":[${'[],'.repeat(1_999)}[]]}}`;
  const large: [title: string, body: string, expected: string][] = [
    ['200 000 empty arrays', `{"geojson":[${'[],'.repeat(200_000)}0]}`, '422 geojson INVALID_GEOJSON'],
    [
      'a polygon of 100 000 points',
      `{"type":"Polygon","coordinates":[[${'[0,0],'.repeat(100_000)}[0,0]]]}`,
      '422 ',
    ],
    ['100 000 parts', `{"type":"MultiPoint","coordinates":[${'[0,0],'.repeat(100_000)}[0,0]]}`, '422 '],
    ['100 000 levels', `{"type":"Polygon","coordinates":${'['.repeat(100_000)}`, '422 null INVALID_BODY'],
    [
      '200 features of 2 000 bad parts',
      `{"type":"FeatureCollection","features":[${Array(200).fill(crowded).join(',')}]}`,
      '422 ',
    ],
  ];
  for (const [title, body, expected] of large) {
    test(`of ${title} is refused in less than a megabyte, and the next one works`, async () => {
      const reply = await api.import(body);
      assert.equal(gist(reply), expected);
      assert.ok(reply.text.length < MB, `${reply.text.length} bytes`);
      assert.equal((await api.import(feature({ name: 'A' }))).status, 201);
    });
  }

  test('of parts that all end at the antimeridian is answered like any other', async () => {
    const touching = Array.from({ length: 5_000 }, (_, n) => {
      const [south, north] = [-80 + n * 0.032, -80 + n * 0.032 + 0.016];
      const edge = n % 2 === 0 ? 180 : -180;
      const inner = n % 2 === 0 ? 179 : -179;
      return [
        [
          [edge, south],
          [edge, north],
          [inner, north],
          [inner, south],
          [edge, south],
        ],
      ];
    });
    const reply = await api.import(feature({ name: 'A' }, { type: 'MultiPolygon', coordinates: touching }));
    assert.ok([201, 422].includes(reply.status));
  });
});

test('nearest is answered while an import of 200 large areas runs', async () => {
  await service.admin.device(OWNER, '350000000000001');
  await service.pod.points([
    { imei: '350000000000001', recorded_at: Date.now(), latitude: 41.9, longitude: 12.5 },
  ]);
  const round = (k: number) =>
    Array.from({ length: VERTICES + 1 }, (_, n) => {
      const angle = ((n % VERTICES) / VERTICES) * 2 * Math.PI;
      return [12 + k / 200 + Math.cos(angle) / 10, 41 + Math.sin(angle) / 10];
    });
  const features = Array.from({ length: 200 }, (_, k) =>
    feature({ name: `A${k}`, external_id: `max-${k}` }, polygon(round(k))),
  );
  let isDone = false;
  const importing = api.import(collection(...features)).finally(() => {
    isDone = true;
  });
  let polls = 0;
  while (!isDone) {
    const { status, body } = await service.pod.get('/api/v3/devices/nearest?lat=41.9&lng=12.5', api.key);
    assert.deepEqual([status, body.data.length], [200, 1]);
    polls++;
    await sleep(PAUSE_MS);
  }
  const { status, body } = await importing;
  assert.deepEqual([status, body.data.valid, body.data.errors], [201, 200, []]);
  assert.ok(polls > 3, `${polls} polls`);
  const id = (await api.get('?external_id=max-7')).body.data[0].id;
  assert.equal((await api.contains(id, 41, 12 + 7 / 200)).body.data.inside, true);
});
