import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type AreaApi, type AreaPod, CIRCLE, gist, startAreaPod } from '../support/areas.ts';
import type { Reply } from '../support/pod.ts';
import { BOW_TIE, collection, feature, HOLE, LINE, POINT, RING } from './importBodies.ts';

let house: AreaPod;
let api: AreaApi;
before(async () => {
  house = await startAreaPod();
  api = await house.newAccount();
});
after(() => house.pod.stop());

const total = async (by = api): Promise<number> => (await by.get()).body.meta.total;
const errorsOf = ({ body }: Reply): string[] =>
  body.data.errors.map(({ index, code }: { index: number; code: string }) => `${index} ${code}`);

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
    const own = await house.newAccount();
    const features = Array.from({ length: 203 }, (_, n) => feature(n === 7 ? {} : { name: `A${n}` }));
    const reply = await own.import(collection(...features));
    assert.equal(reply.status, 201);
    assert.deepEqual(reply.body.data.errors[0], { index: -1, code: 'errTooManyFeatures' });
    assert.deepEqual(errorsOf(reply), ['-1 errTooManyFeatures', '7 REQUIRED']);
    assert.equal(reply.body.data.left_out, 3);
    assert.equal(reply.body.data.valid, 199);
    assert.equal(await total(own), 199);
    const whole = await own.import(collection(...features.slice(0, 200)));
    assert.deepEqual(errorsOf(whole), ['7 REQUIRED']);
    assert.ok(!('left_out' in whole.body.data));
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
