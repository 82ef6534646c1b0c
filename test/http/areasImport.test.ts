import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type AreaApi, type AreaPod, CIRCLE, startAreaPod } from '../support/areas.ts';
import type { Reply } from '../support/pod.ts';
import { collection, FAR_RING, feature, LINE, POINT, POLYGON, RING } from './importBodies.ts';

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
      const own = await house.newAccount();
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
    const own = await house.newAccount();
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
    const own = await house.newAccount();
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
    const own = await house.newAccount();
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
    const own = await house.newAccount();
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
    const own = await house.newAccount();
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
    const own = await house.newAccount();
    const id = await own.make({ ...CIRCLE, external_id: 'x' });
    await own.import(feature({ external_id: 'x' }, POLYGON));
    const area = (await own.get(`/${id}`)).body.data;
    assert.deepEqual([area.type, area.radius_m, area.points.length], ['polygon', null, 4]);
  });
});
