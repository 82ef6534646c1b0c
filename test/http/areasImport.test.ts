import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Admin, adminOf } from '../support/admin.ts';
import { type AreaApi, areaApi, CIRCLE, gist } from '../support/areas.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';

const MB = 1024 * 1024;
const POINT = { type: 'Point', coordinates: [12.5, 41.9] };
const LINE = {
  type: 'LineString',
  coordinates: [
    [12.4, 41.9],
    [12.5, 42],
  ],
};
const RING = [
  [12.4, 41.9],
  [12.5, 41.9],
  [12.5, 42],
  [12.4, 42],
  [12.4, 41.9],
];
const POLYGON = { type: 'Polygon', coordinates: [RING] };
const BOW_TIE = {
  type: 'Polygon',
  coordinates: [
    [
      [0, 0],
      [1, 1],
      [1, 0],
      [0, 1],
      [0, 0],
    ],
  ],
};
const HOLE = [
  [12.44, 41.94],
  [12.46, 41.94],
  [12.46, 41.96],
  [12.44, 41.94],
];
const FAR_RING = RING.map(([lng, lat]) => [lng! + 1, lat!]);

const feature = (properties: object | null, geometry: unknown = POINT) => ({
  type: 'Feature',
  properties,
  geometry,
});
const collection = (...features: unknown[]) => ({ type: 'FeatureCollection', features });

describe('POST /areas/import', () => {
  let pod: Pod;
  let api: AreaApi;
  let admin: Admin;
  let accounts = 0;

  before(async () => {
    const database = await createDatabase();
    admin = adminOf(database.url);
    pod = await startPod(database.url);
    api = await newAccount();
  });
  after(() => pod.stop());

  async function newAccount(): Promise<AreaApi> {
    const email = `owner${++accounts}@example.com`;
    await admin.account(email);
    return areaApi(pod, (await admin.key(email)).key);
  }

  const total = async (by = api): Promise<number> => (await by.get()).body.meta.total;
  const errorsOf = ({ body }: Reply): string[] =>
    body.data.errors.map(({ index, code }: { index: number; code: string }) => `${index} ${code}`);

  describe('201: what every form of body makes', () => {
    const forms: [title: string, body: object, names: string[]][] = [
      [
        'a FeatureCollection',
        collection(feature({ name: 'A' }), feature({ name: 'B' }, LINE), feature({ title: 'C' }, POLYGON)),
        ['A', 'B', 'C'],
      ],
      ['a Feature', feature({ name: 'A' }), ['A']],
      ['a bare Point', POINT, ['Imported area']],
      ['a bare LineString', LINE, ['Imported area']],
      ['a bare Polygon', POLYGON, ['Imported area']],
      [
        'a bare MultiPoint',
        {
          type: 'MultiPoint',
          coordinates: [
            [1, 2],
            [3, 4],
          ],
        },
        ['Imported area (1)', 'Imported area (2)'],
      ],
      ['a collection, wrapped', { geojson: collection(feature({ name: 'A' })) }, ['A']],
      ['a Feature, wrapped', { geojson: feature({ name: 'A' }) }, ['A']],
      ['a Geometry, wrapped', { geojson: POLYGON, name: 'not looked at' }, ['Imported area']],
      [
        'a Multi* of polygons',
        feature({ name: 'Islands' }, { type: 'MultiPolygon', coordinates: [[RING], [FAR_RING]] }),
        ['Islands (1)', 'Islands (2)'],
      ],
      [
        'a Multi* of lines',
        feature(
          { name: 'Roads' },
          {
            type: 'MultiLineString',
            coordinates: [
              LINE.coordinates,
              [
                [1, 1],
                [2, 2],
              ],
              [
                [3, 3],
                [4, 4],
              ],
            ],
          },
        ),
        ['Roads (1)', 'Roads (2)', 'Roads (3)'],
      ],
      [
        'a Multi* of one part',
        feature({ name: 'One' }, { type: 'MultiPolygon', coordinates: [[RING]] }),
        ['One'],
      ],
    ];
    for (const [title, body, names] of forms) {
      test(title, async () => {
        const own = await newAccount();
        const reply = await own.import(body);
        assert.equal(reply.status, 201, reply.text);
        assert.deepEqual(Object.keys(reply.body), ['data', 'meta']);
        const { data } = reply.body;
        const listed = (await own.get()).body.data;
        assert.deepEqual(
          listed.map(({ name }: { name: string }) => name),
          names,
        );
        assert.deepEqual(data, {
          dry_run: false,
          valid: names.length,
          created: listed.map(({ id }: { id: number }, n: number) => ({
            index: 'features' in body ? n : 0,
            id,
          })),
          updated: [],
          errors: [],
          warnings: [],
        });
        assert.deepEqual(reply.body.meta, {});
      });
    }

    test('properties become fields, as a creation reads them', async () => {
      const own = await newAccount();
      const properties = { name: 'N', color: '#00FF00', external_id: 'a/b', dwell_seconds: 30 };
      await own.import(
        collection(
          feature({ ...properties, radius: 300 }),
          feature({ ...properties, external_id: 'line', bufferDistance: 75 }, LINE),
          feature({ title: 'T', color: 'red', stroke: '#0000ff' }, LINE),
          feature({ name: 'P', type: 'point', radius: 10 }),
          feature({ name: 'X', type: 'polygon' }),
        ),
      );
      const [circle, line, striped, place, odd] = (await own.get()).body.data;
      for (const area of [circle, line])
        assert.deepEqual([area.name, area.color, area.dwell_seconds], ['N', '#00FF00', 30]);
      assert.deepEqual([circle.type, circle.radius_m, circle.external_id], ['circle', 300, 'a/b']);
      assert.deepEqual([line.type, line.buffer_m, line.external_id], ['polyline', 75, 'line']);
      assert.deepEqual([striped.name, striped.color, striped.buffer_m], ['T', '#0000ff', 50]);
      assert.deepEqual([place.type, place.radius_m], ['point', 10]);
      assert.deepEqual([odd.type, odd.radius_m], ['point', 50]);
    });
  });

  describe('updates', () => {
    test('200 when only existing areas were changed; what a feature does not say stays', async () => {
      const own = await newAccount();
      const id = await own.make({ ...CIRCLE, external_id: 'x', color: '#123456', dwell_seconds: 9 });
      const reply = await own.import(
        feature({ external_id: 'x', name: 'New' }, { type: 'Point', coordinates: [1, 2] }),
      );
      assert.equal(reply.status, 200);
      assert.deepEqual(reply.body.data, {
        dry_run: false,
        valid: 1,
        created: [],
        updated: [{ index: 0, id, external_id: 'x' }],
        errors: [],
        warnings: [],
      });
      const area = (await own.get(`/${id}`)).body.data;
      assert.deepEqual(
        [area.name, area.color, area.dwell_seconds, area.type, area.radius_m, area.center],
        ['New', '#123456', 9, 'circle', 500, { lat: 2, lng: 1 }],
      );
      assert.equal((await own.import(feature({ external_id: 'x' }))).status, 200);
      assert.equal((await own.get(`/${id}`)).body.data.name, 'New');
    });

    test('201 when something was created as well; both lists in the order of the features', async () => {
      const own = await newAccount();
      const [x, y] = [
        await own.make({ ...CIRCLE, external_id: 'x' }),
        await own.make({ ...CIRCLE, external_id: 'y' }),
      ];
      const reply = await own.import(
        collection(
          feature({ name: 'A' }),
          feature({ name: 'Y', external_id: 'y' }),
          feature({ name: 'B', external_id: 'b' }),
          feature({ name: 'X', external_id: 'x' }),
        ),
      );
      const { created, updated, valid } = reply.body.data;
      assert.deepEqual([reply.status, valid], [201, 4]);
      assert.deepEqual(
        created.map(({ index }: { index: number }) => index),
        [0, 2],
      );
      assert.deepEqual(updated, [
        { index: 1, id: y, external_id: 'y' },
        { index: 3, id: x, external_id: 'x' },
      ]);
      assert.equal((await own.get('?external_id=b')).body.data[0].id, created[1].id);
    });

    test('the same codes again update, and never make another area', async () => {
      const own = await newAccount();
      const body = collection(
        ...Array.from({ length: 30 }, (_, n) => feature({ name: `A${n}`, external_id: `c${n}` })),
      );
      assert.equal((await own.import(body)).status, 201);
      for (let n = 0; n < 2; n++) {
        const reply = await own.import(body);
        assert.deepEqual([reply.status, reply.body.data.updated.length], [200, 30]);
      }
      assert.equal(await total(own), 30);
    });

    test('a code twice in one call is one area: created by the first feature, updated by the next', async () => {
      const own = await newAccount();
      const reply = await own.import(
        collection(
          feature({ name: 'First', external_id: 'x', color: '#111111' }),
          feature({ name: 'Other' }),
          feature({ name: 'Second', external_id: 'x' }, LINE),
          feature({ external_id: 'x', dwell_seconds: -1 }, LINE),
        ),
      );
      const { created, updated } = reply.body.data;
      assert.equal(reply.status, 201);
      assert.deepEqual(
        created.map(({ index }: { index: number }) => index),
        [0, 1],
      );
      assert.deepEqual(updated, [{ index: 2, id: created[0].id, external_id: 'x' }]);
      assert.deepEqual(errorsOf(reply), ['3 OUT_OF_RANGE']);
      const area = (await own.get(`/${created[0].id}`)).body.data;
      assert.deepEqual([area.name, area.type, area.color], ['Second', 'polyline', '#111111']);
      assert.equal(await total(own), 2);
    });

    test('a change of type takes its geometry from the feature', async () => {
      const own = await newAccount();
      const id = await own.make({ ...CIRCLE, external_id: 'x' });
      await own.import(feature({ external_id: 'x' }, POLYGON));
      const area = (await own.get(`/${id}`)).body.data;
      assert.deepEqual([area.type, area.radius_m, area.points.length], ['polygon', null, 4]);
    });
  });

  describe('errors cost only their feature', () => {
    const long = Array.from({ length: 2_001 }, (_, i) => [i / 100, (i % 2) / 100]);
    // [the feature between two good ones, the codes it gives; with a message or without]
    const reading: [title: string, value: unknown, ...codes: string[]][] = [
      ['null', null, 'errGeoJsonInvalid'],
      ['a Geometry', POINT, 'errGeoJsonInvalid'],
      ['no geometry', feature({ name: 'A' }, null), 'errGeoJsonInvalid'],
      [
        'a GeometryCollection',
        feature({ name: 'A' }, { type: 'GeometryCollection', geometries: [POINT] }),
        'errGeometryUnsupported',
      ],
      [
        'a curve',
        feature({ name: 'A' }, { type: 'CircularString', coordinates: [] }),
        'errGeometryUnsupported',
      ],
      [
        'a position out of range',
        feature({ name: 'A' }, { type: 'Point', coordinates: [0, 91] }),
        'errCoordinates',
      ],
      [
        'a position of text',
        feature(
          { name: 'A' },
          {
            type: 'LineString',
            coordinates: [
              ['1', '2'],
              [3, 4],
            ],
          },
        ),
        'errCoordinates',
      ],
      [
        'too many points',
        feature({ name: 'A' }, { type: 'LineString', coordinates: long }),
        'errTooManyPoints',
      ],
      [
        'too few of a polygon',
        feature(
          { name: 'A' },
          {
            type: 'Polygon',
            coordinates: [
              [
                [0, 0],
                [1, 1],
                [0, 0],
              ],
            ],
          },
        ),
        'errPolygonMin',
      ],
      [
        'too few of a line',
        feature({ name: 'A' }, { type: 'LineString', coordinates: [[0, 0]] }),
        'errPolylineMin',
      ],
      [
        'two bad parts of three',
        feature(
          { name: 'A' },
          {
            type: 'MultiPoint',
            coordinates: [
              [0, 91],
              [1, 2],
              [0, 92],
            ],
          },
        ),
        'errCoordinates',
        'errCoordinates',
      ],
    ];
    const validation: [title: string, value: unknown, ...codes: string[]][] = [
      ['no name', feature({}), 'REQUIRED'],
      ['no properties', feature(null), 'REQUIRED'],
      ['a long name', feature({ name: 'x'.repeat(101) }), 'TOO_LONG'],
      ['sides that cross', feature({ name: 'A' }, BOW_TIE), 'SELF_INTERSECTION'],
      ['a small radius', feature({ name: 'A', radius: 24 }), 'OUT_OF_RANGE'],
      ['a narrow margin', feature({ name: 'A', bufferDistance: 4 }, LINE), 'OUT_OF_RANGE'],
      ['a bad stay', feature({ name: 'A', dwell_seconds: 0.5 }), 'OUT_OF_RANGE'],
      ['a bad code', feature({ name: 'A', external_id: 'a b' }), 'INVALID'],
      [
        'several faults',
        feature({ external_id: '', dwell_seconds: -1 }),
        'REQUIRED',
        'INVALID',
        'OUT_OF_RANGE',
      ],
      [
        'several areas with one code',
        feature(
          { name: 'A', external_id: 'multi' },
          {
            type: 'MultiPoint',
            coordinates: [
              [1, 2],
              [3, 4],
            ],
          },
        ),
        'MULTI_GEOMETRY_EXTERNAL_ID',
      ],
    ];
    for (const [family, rows, keys] of [
      ['reading', reading, ['index', 'code']],
      ['validation', validation, ['index', 'code', 'message']],
    ] as const) {
      for (const [title, value, ...codes] of rows) {
        test(`${title}: ${codes} of the family of ${family}`, async () => {
          const before = await total();
          const reply = await api.import(
            collection(feature({ name: 'Before' }), value, feature({ name: 'After' })),
          );
          assert.equal(reply.status, 201);
          assert.deepEqual(errorsOf(reply).toSorted(), codes.map((code) => `1 ${code}`).toSorted());
          for (const error of reply.body.data.errors) assert.deepEqual(Object.keys(error), keys);
          const { created, valid } = reply.body.data;
          assert.deepEqual([created[0].index, created.at(-1).index, created.length], [0, 2, valid]);
          assert.equal(await total(), before + valid);
        });
      }
    }

    test('they come in the order of the features', async () => {
      const bad = [
        feature({}),
        null,
        feature({ name: 'A' }, BOW_TIE),
        feature({ name: 'A', external_id: 'a b' }),
      ];
      const reply = await api.import(collection(...bad, feature({ name: 'A' }), ...bad.toReversed()));
      assert.deepEqual(errorsOf(reply), [
        '0 REQUIRED',
        '1 errGeoJsonInvalid',
        '2 SELF_INTERSECTION',
        '3 INVALID',
        '5 INVALID',
        '6 SELF_INTERSECTION',
        '7 errGeoJsonInvalid',
        '8 REQUIRED',
      ]);
    });

    test('beyond 200 features the rest is dropped: index -1, first of the errors, the 200 are made', async () => {
      const own = await newAccount();
      const features = Array.from({ length: 203 }, (_, n) => feature(n === 7 ? {} : { name: `A${n}` }));
      const reply = await own.import(collection(...features));
      assert.equal(reply.status, 201);
      assert.deepEqual(reply.body.data.errors[0], { index: -1, code: 'errTooManyFeatures' });
      assert.deepEqual(errorsOf(reply), ['-1 errTooManyFeatures', '7 REQUIRED']);
      assert.equal(reply.body.data.valid, 199);
      assert.equal(await total(own), 199);
      assert.deepEqual(errorsOf(await own.import(collection(...features.slice(0, 200)))), ['7 REQUIRED']);
    });

    test('warnings have an index and a code', async () => {
      const double = {
        type: 'LineString',
        coordinates: [
          [1, 1],
          [1, 1],
          [2, 2],
        ],
      };
      const huge = {
        type: 'Polygon',
        coordinates: [
          [
            [0, 0],
            [3, 0],
            [3, 3],
            [0, 3],
            [0, 0],
          ],
        ],
      };
      const reply = await api.import(
        collection(
          feature({ name: 'H' }, { type: 'Polygon', coordinates: [RING, HOLE] }),
          feature({ name: 'S' }, double),
          feature({ name: 'Huge' }, huge),
          feature({ name: 'A' }),
        ),
      );
      assert.deepEqual(reply.body.data.warnings, [
        { index: 0, code: 'warnHolesIgnored' },
        { index: 1, code: 'warnSimplifiedDuplicates' },
      ]);
    });
  });

  describe('422', () => {
    test('nothing valid: the error, and the data beside it', async () => {
      const before = await total();
      for (const [body, errors] of [
        [collection(), []],
        [collection(feature({}), null), ['0 REQUIRED', '1 errGeoJsonInvalid']],
        [feature({ name: 'A' }, BOW_TIE), ['0 SELF_INTERSECTION']],
        [{ type: 'GeometryCollection', geometries: [] }, ['0 errGeometryUnsupported']],
      ] as const) {
        const reply = await api.import(body);
        assert.equal(reply.status, 422);
        assert.equal(reply.body.error.code, 'VALIDATION_ERROR');
        assert.equal(typeof reply.body.error.message, 'string');
        assert.deepEqual(errorsOf(reply), errors);
        const { dry_run, valid, created, updated } = reply.body.data;
        assert.deepEqual([dry_run, valid, created, updated], [false, 0, [], []]);
      }
      assert.equal(await total(), before);
    });

    const none: unknown[] = [
      {},
      { geojson: null },
      { geojson: 'x' },
      { geojson: [POINT] },
      { type: 'FeatureCollection' },
      { type: 'FeatureCollection', features: {} },
      { type: 'Topology' },
      { type: 'point', coordinates: [1, 2] },
      CIRCLE,
      { data: collection(feature({ name: 'A' })) },
    ];
    for (const body of none) {
      test(`no GeoJSON at all: ${JSON.stringify(body).slice(0, 60)}`, async () => {
        for (const query of ['', '?dry_run=true']) {
          const reply = await api.import(body, query);
          assert.equal(gist(reply), '422 geojson INVALID_GEOJSON');
          assert.equal(reply.body.data, undefined);
        }
      });
    }
  });

  describe('a dry run', () => {
    test('is asked for in the query or in the body, and says so', async () => {
      const before = await total();
      const body = collection(feature({ name: 'A' }));
      const rows: [body: object, query: string, dryRun: boolean][] = [
        [body, '?dry_run=true', true],
        [{ ...body, dry_run: true }, '', true],
        [{ geojson: body, dry_run: true }, '', true],
        [{ ...body, dry_run: true }, '?dry_run=false', true],
        [{ ...body, dry_run: false }, '?dry_run=true', true],
        [{ ...body, dry_run: 'true' }, '', false],
        [{ ...body, dry_run: 1 }, '?dry_run=false', false],
        [body, '?dry_run=', false],
        [body, '?DRY_RUN=true', false],
      ];
      let made = 0;
      for (const [sent, query, dryRun] of rows) {
        const reply = await api.import(sent, query);
        assert.deepEqual(
          [reply.status, reply.body.data.dry_run],
          [dryRun ? 200 : 201, dryRun],
          `${JSON.stringify(sent)} ${query}`,
        );
        made += dryRun ? 0 : 1;
        assert.equal(await total(), before + made);
      }
    });

    for (const value of ['yes', '1', 'TRUE', 'true,false', '%20true']) {
      test(`400: dry_run=${value}`, async () => {
        assert.equal(gist(await api.import(collection(), `?dry_run=${value}`)), '400 BAD_REQUEST');
      });
    }
    test('400: dry_run twice', async () => {
      assert.equal(gist(await api.import(collection(), '?dry_run=true&dry_run=true')), '400 BAD_REQUEST');
    });

    test('is 200 also when nothing is valid', async () => {
      const reply = await api.import(collection(feature({})), '?dry_run=true');
      assert.deepEqual([reply.status, reply.body.error, reply.body.data.valid], [200, undefined, 0]);
      assert.deepEqual(errorsOf(reply), ['0 REQUIRED']);
      assert.equal((await api.import(collection(), '?dry_run=true')).status, 200);
    });

    test('predicts exactly what the real call does, and changes nothing, over random collections', async () => {
      const own = await newAccount();
      const geometries = [
        POINT,
        LINE,
        POLYGON,
        BOW_TIE,
        null,
        {
          type: 'MultiPoint',
          coordinates: [
            [1, 2],
            [3, 91],
            [5, 6],
          ],
        },
        { type: 'Polygon', coordinates: [RING, HOLE] },
        { type: 'Point', coordinates: [200, 0] },
      ];
      for (let seed = 1; seed <= 15; seed++) {
        const random = seededRandom(seed);
        const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
        const features = Array.from({ length: Math.floor(random() * 12) }, () =>
          feature(
            {
              ...(random() < 0.9 ? { name: `N${Math.floor(random() * 9)}` } : {}),
              ...(random() < 0.5 ? { external_id: pick(['a', 'b', 'c', 'bad code']) } : {}),
              ...(random() < 0.3 ? { radius: pick([5, 100, 'x']) } : {}),
              ...(random() < 0.3 ? { type: pick(['circle', 'point', 'polyline', 'x']) } : {}),
              ...(random() < 0.3 ? { dwell_seconds: pick([60, -1]) } : {}),
            },
            pick(geometries),
          ),
        );
        const before = (await own.get('?limit=200')).body;
        const dry = await own.import(collection(...features), '?dry_run=true');
        assert.deepEqual((await own.get('?limit=200')).body, before, `seed ${seed}`);
        const real = await own.import(collection(...features));
        const known = new Set(before.data.map(({ id }: { id: number }) => id));
        const predicted = JSON.parse(JSON.stringify(real.body.data), (key, value: unknown) =>
          key === 'id' && !known.has(value) ? undefined : value,
        );
        assert.deepEqual(dry.body.data, { ...predicted, dry_run: true }, `seed ${seed}`);
        assert.equal(dry.status, 200);
        const { created, updated } = real.body.data;
        const expected = created.length > 0 ? 201 : updated.length > 0 ? 200 : 422;
        assert.equal(real.status, expected, `seed ${seed}`);
      }
    });
  });

  describe('large and hostile bodies', () => {
    const padded = (bytes: number): string => {
      const text = JSON.stringify(feature({ name: 'A', padding: '' }));
      return text.replace('"padding":""', `"padding":"${'x'.repeat(bytes - text.length)}"`);
    };

    test('32 MB are read, one byte more is 413', async () => {
      assert.equal((await api.import(padded(32 * MB))).status, 201);
      assert.equal(gist(await api.import(padded(32 * MB + 1))), '413 PAYLOAD_TOO_LARGE');
      assert.equal((await api.import(feature({ name: 'A' }))).status, 201);
    });

    test('a body that takes all memory to read is 413; its neighbours and the next one are imported', async () => {
      const bomb = `{"type":"MultiPoint","coordinates":[${'[0,0],'.repeat(3_500_000)}[0,0]]}`;
      const replies = await Promise.all([
        api.import(feature({ name: 'A' })),
        api.import(bomb),
        api.import(feature({ name: 'B' })),
      ]);
      assert.deepEqual(
        replies.map(({ status }) => status),
        [201, 413, 201],
      );
      assert.equal((await api.import(feature({ name: 'C' }))).status, 201);
    });

    const hostile: [title: string, body: string, expected: string][] = [
      ['a million empty arrays', `{"geojson":[${'[],'.repeat(1_000_000)}0]}`, '422 geojson INVALID_GEOJSON'],
      ['a million features', `{"type":"FeatureCollection","features":[${'{},'.repeat(1_000_000)}0]}`, '422 '],
      [
        'a polygon of half a million points',
        `{"type":"Polygon","coordinates":[[${'[0,0],'.repeat(500_000)}[0,0]]]}`,
        '422 ',
      ],
      [
        'a Multi* of 100 000 areas',
        `{"type":"MultiPoint","coordinates":[${'[0,0],'.repeat(100_000)}[0,0]]}`,
        '422 ',
      ],
      [
        'a Multi* of 100 000 bad parts',
        `{"type":"MultiPoint","coordinates":[${'[],'.repeat(100_000)}[0]]}`,
        '422 ',
      ],
      ['a polygon of 100 000 rings', `{"type":"Polygon","coordinates":[${'[],'.repeat(100_000)}[]]}`, '422 '],
      ['100 000 levels', `{"type":"Polygon","coordinates":${'['.repeat(100_000)}`, '422 null INVALID_BODY'],
    ];
    for (const [title, body, expected] of hostile) {
      test(`${title}: ${expected}, and the next import works`, async () => {
        assert.equal(gist(await api.import(body)), expected);
        assert.equal((await api.import(feature({ name: 'A' }))).status, 201);
      });
    }

    test('200 features of 10 000 bad parts each are answered shortly, not with two million errors', async () => {
      const multi = `{"type":"Feature","properties":{"name":"A"},"geometry":{"type":"MultiPoint","coordinates":[${'[],'.repeat(9_999)}[]]}}`;
      const reply = await api.import(
        `{"type":"FeatureCollection","features":[${Array(200).fill(multi).join(',')}]}`,
      );
      assert.equal(reply.status, 422);
      assert.ok(reply.text.length < MB, `${reply.text.length} bytes`);
    });

    test('parts that all end at the antimeridian are answered as any others', async () => {
      const touching = Array.from({ length: 20_000 }, (_, n) => {
        const [south, north] = [-80 + n * 0.008, -80 + n * 0.008 + 0.004];
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

  test('nearest is answered all the while that a maximum import runs', async () => {
    await admin.device('owner1@example.com', '350000000000001');
    await pod.points([{ imei: '350000000000001', recorded_at: Date.now(), latitude: 41.9, longitude: 12.5 }]);
    const round = (k: number) =>
      Array.from({ length: 2_001 }, (_, n) => {
        const angle = ((n % 2_000) / 2_000) * 2 * Math.PI;
        return [12 + k / 200 + Math.cos(angle) / 10, 41 + Math.sin(angle) / 10];
      });
    const features = Array.from({ length: 200 }, (_, k) =>
      feature({ name: `A${k}`, external_id: `max-${k}` }, { type: 'Polygon', coordinates: [round(k)] }),
    );
    for (const expected of [201, 200]) {
      let isDone = false;
      const importing = api.import(collection(...features)).finally(() => {
        isDone = true;
      });
      let polls = 0;
      while (!isDone) {
        const { status, body } = await pod.get('/api/v3/devices/nearest?lat=41.9&lng=12.5', api.key);
        assert.deepEqual([status, body.data.length], [200, 1]);
        polls++;
      }
      const { status, body } = await importing;
      assert.deepEqual([status, body.data.valid, body.data.errors], [expected, 200, []]);
      assert.ok(polls > 10, `${polls} polls`);
    }
    const id = (await api.get('?external_id=max-7')).body.data[0].id;
    assert.equal((await api.contains(id, 41, 12 + 7 / 200)).body.data.inside, true);
  });
});
