import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';
import { serve } from '../../support/http/serve.ts';
import { type Pod, startPod } from '../../support/pod.ts';
import { started } from '../../support/started.ts';
import { runs } from '../../support/torture.ts';
import { fleetDatabase } from '../runFleet.ts';

/** Each belongs to an organization whose other member shares areas under external ids of its own. */
const BY_DATABASE = 'database@example.com';
const BY_URL = 'url@example.com';
const SHARED_IDS = ['n:1', 'n:2', 'n:3'];
/** Of areas, in the plan of both. */
const QUOTA = 8;

const database = fleetDatabase(`account:create --email ${BY_DATABASE} --name D --organization D`);
let key: string;
const pod = started(
  () => startPod(database.url),
  (each: Pod) => each.stop(),
);

const point = (id: string | null, radius: number, more: object = {}) => ({
  type: 'Feature',
  geometry: { type: 'Point', coordinates: [12, 41] },
  properties: { name: `Area ${id}`, radius, ...(id !== null && { external_id: id }), ...more },
});
const fileOf = (features: readonly object[]) => JSON.stringify({ type: 'FeatureCollection', features });

before(async () => {
  const { fleet, sql } = database;
  await sql`insert into plan (name, history_days, max_areas, max_area_vertices) values ('small', 1, ${QUOTA}, 16)`;
  await fleet(`account:create --email ${BY_URL} --name U --organization U`);
  for (const [email, organization] of [
    [BY_DATABASE, 'D'],
    [BY_URL, 'U'],
  ]) {
    await fleet(`account:update --email ${email} --plan small`);
    await fleet(`account:create --email other-${email} --name O --organization ${organization}`);
    const stdin = fileOf(SHARED_IDS.map((id) => point(id, 77)));
    const run = await fleet(`area:sync --email other-${email} --organization -`, { stdin });
    assert.equal(run.code, 0, run.stderr);
  }
  ({ key } = (await fleet(`key:create --email ${BY_URL} --scopes read_areas,write_areas`)).json);
});

const byDatabase = (stdin: string, flags = '') =>
  database.fleet(`area:sync --email ${BY_DATABASE} ${flags} -`, { stdin });
const byUrl = (stdin: string, flags = '', url = pod.api) =>
  database.fleet(`area:sync --url ${url} --key ${key} ${flags} -`, {
    stdin,
    // It needs no database.
    env: { DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none' },
  });

async function areasOf(email: string): Promise<readonly object[]> {
  return database.sql`
    select external_id, r.name, color, type, radius_m, buffer_m, dwell_seconds, encode(points, 'hex') as points,
      r.world_id = a.world_id as private
    from area r join account a on a.id = r.account_id where a.email = ${email} order by external_id, r.name`;
}

describe('area:sync --url', () => {
  const name = fc.integer({ min: 0, max: 19 }).map((n) => `n:${n}`);
  const lng = fc.integer({ min: -180, max: 178 });
  const feature = fc.oneof(
    { weight: 6, arbitrary: fc.tuple(name, fc.constantFrom(50, 60.5, 100)).map(([id, r]) => point(id, r)) },
    { weight: 1, arbitrary: name.map((id) => point(id, -5)) },
    {
      weight: 1,
      arbitrary: name.map((id) => point(id, 50, { dwell_seconds: 30, color: '#abcdef', other: 'x' })),
    },
    { weight: 1, arbitrary: fc.constant(point(null, 50)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom<object>({ type: 'Feature' }, { type: 'Polygon' }, point('a b', 5)),
    },
    {
      weight: 3,
      arbitrary: fc.tuple(name, lng).map(([id, x]) => ({
        type: 'Feature',
        geometry: {
          type: 'Polygon',
          coordinates: [[[x, 0], [x, 1], [x + 1.25, 1], [x + 0.1, 0.1], [x, 0]]], // biome-ignore format: one line
        },
        properties: { title: 'Yard', external_id: id },
      })),
    },
    {
      weight: 1,
      arbitrary: name.map((id) => ({
        type: 'Feature',
        geometry: { type: 'MultiPoint', coordinates: [[1, 1], [2, 2]] }, // biome-ignore format: one line
        properties: { name: 'Two', radius: 9, external_id: id },
      })),
    },
  );
  const night = fc.record({
    features: fc.array(feature, { minLength: 1, maxLength: 24 }),
    prunes: fc.boolean(),
  });

  test('prints and does, file after file, what the command does on the database', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(night, { minLength: 1, maxLength: 3 }), async (nights) => {
        for (const { features, prunes } of nights) {
          const file = fileOf(features);
          for (const flags of ['--dry-run', '']) {
            const all = prunes ? `--prune ${flags}` : flags;
            const [one, other] = [await byDatabase(file, all), await byUrl(file, all)];
            assert.deepEqual([other.code, other.json], [one.code, one.json], other.stderr);
          }
          assert.deepEqual(await areasOf(BY_URL), await areasOf(BY_DATABASE));
          const [again, repeated] = [await byDatabase(file), await byUrl(file)];
          assert.deepEqual(repeated.json, again.json);
        }
      }),
      { seed: 5, numRuns: runs(12) },
    );
    for (const email of [BY_DATABASE, BY_URL])
      assert.equal((await areasOf(`other-${email}`)).length, SHARED_IDS.length, 'those of others stay');
  });

  test('writes nothing for what is there already, and pages through many areas', async () => {
    const {
      json: { key: large },
    } = await database.fleet(`key:create --email other-${BY_URL} --scopes read_areas,write_areas`);
    const features = Array.from({ length: 450 }, (_, n) => point(`many:${n}`, 50));
    const sync = (flags: string) =>
      database.fleet(`area:sync --url ${pod.api} --key ${large} ${flags} -`, { stdin: fileOf(features) });
    assert.deepEqual((await sync('')).json.created, 450);
    const { json } = await sync('--prune --dry-run');
    assert.deepEqual([json.unchanged, json.pruned], [450, SHARED_IDS.length]);
    const revisions = () =>
      database.sql`select sum(revision)::int as sum from area where external_id like 'many:%'`;
    const before = await revisions();
    assert.equal((await sync('')).json.unchanged, 450);
    assert.deepEqual(await revisions(), before);
  });

  test('through a pod that is lost in the middle stops, and run again ends as if nothing had happened', async () => {
    await byUrl(fileOf([point('x:1', 50)]), '--prune');
    const file = fileOf(['y:1', 'y:2', 'y:3'].map((id) => point(id, 50)));
    // The answer to the first deletion, or to the first write, is lost together with the pod.
    for (const lost of ['DELETE', 'POST /api/v3/areas/import?dry_run=false']) {
      await using proxy = await dyingProxy(lost);
      const first = await byUrl(file, '--prune', proxy.url);
      assert.equal(first.code, 1);
      assert.match(first.stderr, /does not answer: .*; \d created and \d updated before that stay\. Repeat/);
      const second = await byUrl(file, '--prune');
      assert.equal(second.code, 0, second.stderr);
      assert.deepEqual(
        (await areasOf(BY_URL)).map((area) => (area as { external_id: string }).external_id),
        ['y:1', 'y:2', 'y:3'],
      );
      await byUrl(fileOf([point('x:1', 50)]), '--prune');
    }
  });

  /** In front of the pod, until a call begins like this: it is passed on, and nothing is answered from then on. */
  async function dyingProxy(last: string) {
    let isDead = false;
    const { url, close } = await serve(
      undefined,
      async (request: IncomingMessage, response: ServerResponse) => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        if (isDead) {
          request.socket.destroy();
          return;
        }
        isDead = `${request.method} ${request.url}`.startsWith(last);
        const { 'x-api-key': sent } = request.headers;
        const reply = await fetch(`${pod.api}${request.url}`, {
          method: request.method ?? 'GET',
          headers: { 'X-API-Key': String(sent), 'Content-Type': 'application/json' },
          ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
        });
        const text = await reply.text();
        if (isDead) request.socket.destroy();
        else response.writeHead(reply.status, { Connection: 'close' }).end(text);
      },
    );
    return { url, [Symbol.asyncDispose]: close };
  }

  test('says what is wrong with the key and the address', async () => {
    const stdin = fileOf([point('z', 50)]);
    const { fleet } = database;
    const reads = (await fleet(`key:create --email ${BY_URL} --scopes read_areas`)).json.key;
    const events = (await fleet(`key:create --email ${BY_URL} --scopes read_events`)).json.key;
    for (const [what, message] of [
      [`--url ${pod.api} --key ${reads}`, /403 INSUFFICIENT_SCOPE: .*; nothing was changed/],
      [`--url ${pod.api} --key ${events}`, /403 INSUFFICIENT_SCOPE: .*; nothing was changed/],
      [`--url ${pod.api} --key none`, /40[13] .*; nothing was changed/],
      [`--url ${pod.api}/elsewhere --key ${key}`, /404/],
      [`--url ${pod.ingest} --key ${key}`, /404|is not the address/],
      [`--url http://127.0.0.1:9 --key ${key}`, /does not answer: .*; nothing was changed/],
      [`--url ${pod.api}`, /--key is missing/],
      [`--key ${key}`, /--key is for --url/],
      [`--url ${pod.api} --key ${key} --email ${BY_URL}`, /exclude each other/],
      [`--url ${pod.api} --key ${key} --organization`, /needs the database/],
      ['', /--email is missing/],
    ] as const)
      await database.refuses(`area:sync ${what} -`, 1, message, { stdin });
    await database.refuses(`area:sync --url nowhere --key ${key} -`, 2, /--url must be an address/, {
      stdin,
    });
  });
});

describe('area:sync --organization', () => {
  const MEMBER = 'member@example.com';
  const sync = (stdin: string, flags = '') =>
    database.fleet(`area:sync --email ${MEMBER} ${flags} -`, { stdin });
  before(() => database.fleet(`account:create --email ${MEMBER} --name M --organization M`));

  test('shares every area of the file, also one that was private, and a second run changes nothing', async () => {
    const reader = 'reader@example.com';
    await database.fleet(`account:create --email ${reader} --name R --organization M`);
    const { key: readKey } = (await database.fleet(`key:create --email ${reader} --scopes read_areas`)).json;
    const seen = async () => {
      const { body } = await pod.get('/api/v3/areas', readKey);
      return body.data.map((area: { external_id: string }) => area.external_id).sort();
    };
    await sync(fileOf([point('a', 50), point('b', 50)]));
    assert.deepEqual(await seen(), []);
    const file = fileOf([point('a', 50), point('c', 50)]);
    for (const flags of ['--organization --dry-run', '--organization']) {
      const { json } = await sync(file, flags);
      assert.deepEqual(json, { created: 1, updated: 1, unchanged: 0, pruned: 0, errors: [] }, flags);
    }
    assert.deepEqual(await seen(), ['a', 'c']);
    const { raised } = await database.watch(`area:sync --email ${MEMBER} --organization -`, {
      stdin: fileOf([point('b', 50)]),
    });
    assert.equal(raised.length, 2, 'the world that an area leaves, and the one that it comes into');
    assert.deepEqual((await sync(file, '--organization')).json.unchanged, 2);
    assert.deepEqual((await sync(file)).json.unchanged, 2, 'without it they stay where they are');
    const { json } = await sync(fileOf([point('a', 60)]), '--organization --prune');
    assert.deepEqual([json.updated, json.pruned], [1, 2]);
    assert.deepEqual(await seen(), ['a']);
  });

  test('is refused for an account without one', async () => {
    await database.fleet('account:create --email alone@example.com --name A');
    const message = /alone@example\.com belongs to no organization/;
    const stdin = fileOf([point('a', 50)]);
    await database.refuses('area:sync --email alone@example.com --organization -', 1, message, { stdin });
  });
});
