import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type AreaApi, type AreaPod, gist, startAreaPod } from '../support/areas.ts';
import type { Reply } from '../support/pod.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { BOW_TIE, collection, feature, HOLE, LINE, POINT, POLYGON, RING } from './importBodies.ts';

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
      [{ ...body, dry_run: null }, '', false],
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
  for (const dry_run of ['true', 'false', 1, 0, '', {}, [true]]) {
    test(`422: ${JSON.stringify(dry_run)} in the body, and nothing is imported`, async () => {
      const before = await total();
      for (const body of [collection(feature({ name: 'A' })), { geojson: feature({ name: 'A' }) }]) {
        assert.equal(gist(await api.import({ ...body, dry_run })), '422 dry_run INVALID');
      }
      assert.equal(await total(), before);
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
    const own = await house.newAccount();
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
