import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type AreaApi, type AreaPod, BODIES, gist, startAreaPod } from '../support/areas.ts';
import type { Reply } from '../support/pod.ts';

let stranger: AreaApi;
let house: AreaPod;
let api: AreaApi;
before(async () => {
  house = await startAreaPod();
  api = await house.newAccount();
  stranger = await house.newAccount();
});
after(() => house.pod.stop());

const idsOf = ({ body }: Reply): number[] => body.data.map((area: { id: number }) => area.id);

describe('list, 200', () => {
  // Thirteen areas: a circle, a place, a polygon, a track, and again.
  const TYPES = ['circle', 'point', 'polygon', 'polyline'] as const;
  let listed: AreaApi;
  const ids: number[] = [];

  before(async () => {
    listed = await house.newAccount();
    for (let n = 0; n < 13; n++) {
      ids.push(await listed.make({ ...BODIES[TYPES[n % 4]!], name: `Area ${n}`, external_id: `code-${n}` }));
    }
  });

  test('all areas by id, each as its detail shows it, with page and total', async () => {
    const reply = await listed.get();
    assert.equal(reply.status, 200);
    assert.deepEqual(idsOf(reply), ids);
    assert.deepEqual(reply.body.meta, { pagination: { limit: 50, offset: 0, count: 13 }, total: 13 });
    for (const area of reply.body.data) assert.deepEqual((await listed.get(`/${area.id}`)).body.data, area);
  });

  const pages: [query: string, limit: number, offset: number][] = [
    ['limit=2', 2, 0],
    ['limit=2&offset=3', 2, 3],
    ['limit=5&offset=12', 5, 12],
    ['offset=13', 50, 13],
    ['limit=0', 1, 0],
    ['limit=-7', 1, 0],
    ['limit=200', 200, 0],
    ['limit=201', 200, 0],
    [`limit=${'9'.repeat(400)}`, 200, 0],
    ['limit=', 50, 0],
    ['limit=abc', 50, 0],
    ['limit=1e2', 50, 0],
    ['limit=2.9', 2, 0],
    ['offset=-1', 50, 0],
    ['offset=abc', 50, 0],
    ['offset=1.9', 50, 1],
    ['offset=9007199254740993', 50, Number.MAX_SAFE_INTEGER],
  ];
  for (const [query, limit, offset] of pages) {
    test(`${query.slice(0, 40)} is the page of ${limit} from ${offset}, in both formats`, async () => {
      const expected = ids.slice(offset, offset + limit);
      for (const format of ['json', 'geojson']) {
        const { status, body } = await listed.get(`?${query}&format=${format}`);
        const items: { id: number }[] = format === 'json' ? body.data : body.data.features;
        assert.equal(status, 200);
        assert.deepEqual(
          items.map(({ id }) => id),
          expected,
        );
        assert.deepEqual(body.meta, { pagination: { limit, offset, count: expected.length }, total: 13 });
      }
    });
  }

  for (const [n, type] of TYPES.entries()) {
    test(`type=${type} filters, and total counts what the filter leaves`, async () => {
      const expected = ids.filter((_, place) => place % 4 === n);
      const reply = await listed.get(`?type=${type}&limit=2`);
      assert.deepEqual(idsOf(reply), expected.slice(0, 2));
      assert.deepEqual(reply.body.meta, {
        pagination: { limit: 2, offset: 0, count: 2 },
        total: expected.length,
      });
      for (const area of reply.body.data) assert.equal(area.type, type);
    });
  }

  test('blank type, format and external_id count as missing', async () => {
    for (const query of ['?type=', '?type=%20', '?format=', '?external_id=', '?external_id=%20'])
      assert.equal((await listed.get(query)).body.meta.total, 13, query);
  });

  const filters: [query: string, places: number[], total: number][] = [
    ['external_id=code-4', [4], 1],
    ['external_id=code-4&type=circle', [4], 1],
    ['external_id=code-4&type=polygon', [], 0],
    ['external_id=code-4&offset=1', [], 1],
    ['external_id=code-4&limit=0', [4], 1],
    ['external_id=code-1', [1], 1],
    ['external_id=code-', [], 0],
    ['external_id=CODE-4', [], 0],
    ['external_id=code-4%20', [], 0],
    ['external_id=%25', [], 0],
    ['external_id=%00', [], 0],
    [`external_id=${'x'.repeat(2_000)}`, [], 0],
    ['external_id=code-1&external%5Fid2=x', [1], 1],
  ];
  for (const [query, places, total] of filters) {
    test(`${query.slice(0, 40)} is an exact match: ${places.length} of ${total}`, async () => {
      const reply = await listed.get(`?${query}`);
      assert.equal(reply.status, 200);
      assert.deepEqual(
        idsOf(reply),
        places.map((place) => ids[place]),
      );
      assert.equal(reply.body.meta.total, total);
      assert.equal(reply.body.meta.pagination.count, places.length);
    });
  }

  test('format=geojson is a FeatureCollection of what the details show', async () => {
    const { body } = await listed.get('?format=geojson');
    assert.deepEqual(Object.keys(body.data), ['type', 'features']);
    assert.equal(body.data.type, 'FeatureCollection');
    for (const feature of body.data.features)
      assert.deepEqual((await listed.get(`/${feature.id}?format=geojson`)).body.data, feature);
  });

  test('an account without areas has an empty list, in both formats', async () => {
    const meta = { pagination: { limit: 50, offset: 0, count: 0 }, total: 0 };
    assert.deepEqual((await stranger.get()).body, { data: [], meta });
    assert.deepEqual((await stranger.get('?format=geojson')).body, {
      data: { type: 'FeatureCollection', features: [] },
      meta,
    });
  });
});

describe('list, 400', () => {
  const queries = [
    'type=square',
    'type=Circle',
    'type=circle,point',
    'type=place',
    'type=%20circle',
    'format=xml',
    'format=GeoJSON',
    'limit=1&limit=1',
    'type=circle&type=circle',
    'external_id=a&external_id=b',
    'x=1&x=2',
  ];
  for (const query of queries) {
    test(query, async () => assert.equal(gist(await api.get(`?${query}`)), '400 BAD_REQUEST'));
  }
});
