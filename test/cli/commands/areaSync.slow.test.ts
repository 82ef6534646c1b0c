import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { startPod } from '../../support/pod.ts';
import { type FleetOptions, fleetDatabase } from '../runFleet.ts';

const OWNER = 'owner@example.com';

const database = fleetDatabase(`account:create --email ${OWNER} --name Owner`);
let key: string;
before(async () => {
  ({ key } = (await database.fleet(`key:create --email ${OWNER} --scopes all`)).json);
});

interface Named {
  readonly id: string | null;
  readonly radius?: number;
  readonly lat?: number;
}

const feature = ({ id, radius = 100, lat = 41 }: Named) => ({
  type: 'Feature',
  geometry: { type: 'Point', coordinates: [12, lat] },
  properties: { name: `Area ${id}`, radius, ...(id !== null && { external_id: id }) },
});
const file = (...areas: Named[]) =>
  JSON.stringify({ type: 'FeatureCollection', features: areas.map(feature) });
const many = (count: number, radius = 100) =>
  file(...Array.from({ length: count }, (_, n) => ({ id: `many:${n}`, radius })));

const syncOf =
  (email: string) =>
  (stdin: string, flags = '', options: FleetOptions = {}) =>
    database.fleet(`area:sync --email ${email} ${flags} -`, { ...options, stdin });
const sync = syncOf(OWNER);

async function storedIds(): Promise<(string | null)[]> {
  const rows = await database.sql<{ id: string | null }[]>`select external_id as id from area order by id`;
  return rows.map(({ id }) => id);
}

const CLEAN = file({ id: 'a' }, { id: 'b' }, { id: 'c' });

describe('area:sync', () => {
  test('creates, updates and leaves alone, and says how many of each', async () => {
    await sync(CLEAN, '--prune');
    const again = await sync(file({ id: 'a' }, { id: 'b', radius: 200 }, { id: 'd' }));
    assert.equal(again.code, 0, again.stderr);
    assert.deepEqual(again.json, { created: 1, updated: 1, unchanged: 1, pruned: 0, errors: [] });
    assert.deepEqual(await storedIds(), ['a', 'b', 'c', 'd']);
  });

  test('prunes what the file lacks, and nothing without an external id', async () => {
    await sync(CLEAN, '--prune');
    const pod = await startPod(database.url);
    const body = JSON.stringify({ name: 'Own', type: 'circle', center: { lat: 1, lng: 1 }, radius_m: 50 });
    const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' };
    await fetch(`${pod.api}/api/v3/areas`, { method: 'POST', headers, body });
    const { json } = await sync(file({ id: 'b' }), '--prune');
    assert.deepEqual(json, { created: 0, updated: 0, unchanged: 1, pruned: 2, errors: [] });
    const { body: list } = await pod.get('/api/v3/areas', key);
    assert.deepEqual(
      list.data.map((area: { external_id: string | null }) => area.external_id).sort(),
      ['b', null],
      'a running pod knows at once',
    );
    await pod.stop();
  });

  test('a dry run says what a run does, and does nothing', async () => {
    await sync(CLEAN, '--prune');
    const changed = file({ id: 'a', radius: 300 }, { id: 'e' });
    const dry = await sync(changed, '--prune --dry-run');
    assert.deepEqual(dry.json, { created: 1, updated: 1, unchanged: 0, pruned: 2, errors: [] });
    assert.deepEqual((await sync(CLEAN)).json.unchanged, 3);
    assert.deepEqual((await sync(changed, '--prune')).json, dry.json);
  });

  test('a feature with an error costs no other one, is not pruned, and makes the exit code 1', async () => {
    await sync(CLEAN, '--prune');
    const run = await sync(file({ id: 'a', radius: -5 }, { id: null }, { id: 'b', radius: 900 }), '--prune');
    assert.equal(run.code, 1);
    assert.match(run.stderr, /2 errors/);
    assert.deepEqual(
      run.json.errors.map(({ index, code }: { index: number; code: string }) => [index, code]),
      [
        [0, 'OUT_OF_RANGE'],
        [1, 'REQUIRED'],
      ],
    );
    assert.deepEqual([run.json.updated, run.json.pruned], [1, 1]);
    assert.deepEqual(
      (await storedIds()).filter((id) => id !== null),
      ['a', 'b'],
    );
  });

  const UNREADABLE: readonly [what: string, text: string, message: RegExp][] = [
    ['no JSON', 'areas', /not JSON/],
    ['a file that ends too soon', `${CLEAN.slice(0, -20)}`, /ends too soon/],
    ['a document without features', '{"type":"Polygon"}', /no features/],
    ['an empty collection', '{"type":"FeatureCollection","features":[]}', /no features/],
    ['an empty file', '', /not JSON/],
  ];
  test('prunes nothing by a file that cannot be read', async () => {
    await sync(CLEAN, '--prune');
    for (const [what, text, message] of UNREADABLE) {
      await database.refuses(`area:sync --email ${OWNER} --prune -`, 1, message, { stdin: text });
      assert.deepEqual((await sync(CLEAN)).json.unchanged, 3, what);
    }
  });

  test('interrupted and repeated, it ends as a run without interruption', async () => {
    await sync(CLEAN, '--prune');
    const first = await sync(many(210), '--prune', { interrupted: AbortSignal.abort() });
    assert.equal(first.code, 1);
    assert.match(first.stderr, /interrupted; 200 created and 0 updated before that stay/);
    const second = await sync(many(210), '--prune');
    assert.deepEqual(second.json, { created: 10, updated: 0, unchanged: 200, pruned: 3, errors: [] });
    const last = await sync(file({ id: 'z' }), '--prune');
    assert.deepEqual([last.json.created, last.json.pruned], [1, 210]);
  });

  test('takes the first of several features with one external_id, however far apart, and says which', async () => {
    await sync(CLEAN, '--prune');
    const areas = Array.from({ length: 210 }, (_, n): Named => ({ id: `many:${n}` }));
    areas[3] = { id: 'a', radius: 200 };
    areas[4] = { id: 'a', radius: 300 };
    areas[205] = { id: 'a', radius: 400 };
    for (const flags of ['--prune --dry-run', '--prune']) {
      const run = await sync(file(...areas), flags);
      assert.equal(run.code, 1);
      const { errors, ...counts } = run.json;
      assert.deepEqual(errors, [
        { index: 4, code: 'TAKEN', message: 'external_id a is that of feature 3 already' },
        { index: 205, code: 'TAKEN', message: 'external_id a is that of feature 3 already' },
      ]);
      assert.deepEqual(counts, { created: 207, updated: 1, unchanged: 0, pruned: 2 });
    }
    const again = await sync(file(...areas));
    assert.deepEqual([again.json.updated, again.json.unchanged], [0, 208]);
  });

  describe('in an account that is full', () => {
    const FULL = 'full@example.com';
    const syncFull = syncOf(FULL);
    const ids = (prefix: string, count: number, more: Omit<Named, 'id'> = {}): Named[] =>
      Array.from({ length: count }, (_, n) => ({ id: `${prefix}:${n}`, ...more }));
    const triangleAt = (lng: number) => [[lng, 0], [lng, 1], [lng + 1, 1], [lng, 0]]; // biome-ignore format: one line
    /** Triangles; the quota of vertices is that of 210 of them. */
    const triangles = (prefix: string, count: number) =>
      JSON.stringify({
        type: 'FeatureCollection',
        features: Array.from({ length: count }, (_, n) => ({
          type: 'Feature',
          geometry: { type: 'Polygon', coordinates: [triangleAt(n / 10)] },
          properties: { name: 'Triangle', external_id: `${prefix}:${n}` },
        })),
      });
    before(async () => {
      await database.sql`
        insert into plan (name, history_days, max_areas, max_area_vertices) values ('full', 1, 210, 630)`;
      await database.fleet(`account:create --email ${FULL} --name Full --plan full`);
    });

    test('prunes to make room for what is new, and a dry run says so', async () => {
      await syncFull(file(...ids('old', 210)), '--prune');
      const changed = file(...ids('new', 200), ...ids('old', 10, { radius: 300 }));
      const expected = { created: 200, updated: 10, unchanged: 0, pruned: 200, errors: [] };
      assert.deepEqual((await syncFull(changed, '--prune --dry-run')).json, expected);
      const run = await syncFull(changed, '--prune');
      assert.equal(run.code, 0, run.stderr);
      assert.deepEqual(run.json, expected);
    });

    test('makes room for vertices, too', async () => {
      await syncFull(triangles('old', 210), '--prune');
      const expected = { created: 210, updated: 0, unchanged: 0, pruned: 210, errors: [] };
      assert.deepEqual((await syncFull(triangles('new', 210), '--prune --dry-run')).json, expected);
      assert.deepEqual((await syncFull(triangles('new', 210), '--prune')).json, expected);
    });

    test('writes what fits and says which features do not, in a dry run too', async () => {
      await syncFull(file(...ids('old', 210)), '--prune');
      for (const flags of ['--prune --dry-run', '--prune']) {
        const { json } = await syncFull(file(...ids('new', 215)), flags);
        assert.deepEqual([json.created, json.pruned], [210, 210]);
        assert.deepEqual(
          json.errors.map(({ index, code }: { index: number; code: string }) => [index, code]),
          Array.from({ length: 5 }, (_, n) => [210 + n, 'LIMIT_REACHED']),
        );
      }
      const without = await syncFull(file(...ids('other', 2)));
      assert.deepEqual([without.json.created, without.json.errors.length], [0, 2]);
    });

    test('interrupted before or after it has pruned, and repeated, it ends as a run without interruption', async () => {
      await syncFull(file(...ids('old', 210)), '--prune');
      const changed = file(...ids('new', 210));
      const first = await syncFull(changed, '--prune', { interrupted: AbortSignal.abort() });
      assert.match(first.stderr, /interrupted; nothing was changed/);
      const second = await syncFull(changed, '--prune', { interrupted: pruned() });
      assert.match(second.stderr, /interrupted; 0 created, 0 updated and 210 pruned before that stay/);
      const third = await syncFull(changed, '--prune');
      assert.deepEqual(third.json, { created: 210, updated: 0, unchanged: 0, pruned: 0, errors: [] });
    });

    /** A signal that is aborted from its third question on: the file of 210 features is read by then. */
    function pruned(): AbortSignal {
      let questions = 0;
      const { signal } = new AbortController();
      Object.defineProperty(signal, 'aborted', { get: () => ++questions > 2 });
      return signal;
    }
  });

  test('says which account there is not', async () => {
    const unknown = /nobody@example\.com/;
    await database.refuses('area:sync --email nobody@example.com -', 1, unknown, { stdin: CLEAN });
  });
});
