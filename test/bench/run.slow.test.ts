import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { openSql } from '../../src/postgres/sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { findRedisServer } from '../support/redis.ts';

const RUN = join(import.meta.dirname, '..', '..', 'bench', 'run.ts');

async function bench(t: TestContext, argv: readonly string[]) {
  const { url } = await createDatabase(t, { empty: true });
  const child = spawn(process.execPath, [RUN, ...argv], {
    env: { ...process.env, FLEET_BENCH_DATABASE_URL: url },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (data) => {
    out += String(data);
  });
  child.stderr.on('data', (data) => {
    err += String(data);
  });
  const [code] = (await once(child, 'close')) as [number];
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  const left = await sql`select 1 from pg_database where datname like 'bench_%'`;
  await sql.end();
  return { code, out, err, databasesLeft: left.length };
}

describe('npm run bench', () => {
  test('measures a case and its floors, on two pods where there is a Redis, and names the machine', async (t) => {
    const pods = findRedisServer() === null ? 1 : 2;
    const argv = ['--smoke', '--pods', String(pods), 'location'];
    const { code, out, err, databasesLeft } = await bench(t, argv);
    assert.equal(code, 0, err + out);
    assert.match(out, new RegExp(`^500 devices, ${pods} pods?$`, 'm'));
    assert.match(out, /cores, .* GB, Node v24.*commit/);
    assert.match(out, /\| location .*requests\/s/);
    assert.match(out, /\| floor: Express \+ helmet .*requests\/s/);
    assert.match(out, /\| floor: node:http .*requests\/s/);
    assert.match(out, /\| floor: node:http, answers together .*requests\/s/);
    assert.match(out, /of_node_by_cpu \d.*p999_ms_at_75 \d/);
    for (const share of [25, 50, 75])
      assert.match(out, new RegExp(`location, ${share} % of that rate .*requests/s`));
    assert.match(out, /^took \d.* s$/m);
    assert.match(out, /^1 cases measured in \d.* s$/m);
    assert.equal(databasesLeft, 0);
  });

  test('measures a case in two rounds, and says how much they differ; fails when another case does: ingest, with fsync off', async (t) => {
    const argv = ['--smoke', '--rounds', '2', 'contains-memory', 'ingest'];
    const { code, out, databasesLeft } = await bench(t, argv);
    assert.match(out, /^A\/A noise: .*us_20 ±\d/m);
    assert.match(out, /FAILED: .*fsync is off/);
    assert.equal(code, 1);
    assert.equal(databasesLeft, 0);
  });

  test('prints its options and what each case measures', async (t) => {
    const { code, out, err } = await bench(t, ['--help']);
    assert.equal(code, 0, err);
    assert.match(out, /^ {2}--rounds N /m);
    assert.match(out, /^ {2}fanout {2,}streams of one account/m);
  });

  test('rejects unknown arguments before it starts anything', async (t) => {
    const { code, out, err } = await bench(t, ['fastest']);
    assert.equal(code, 2);
    assert.equal(out, '');
    assert.match(err, /no case fastest/);
  });
});
