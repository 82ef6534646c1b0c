import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startEmbedded } from '../../src/postgres/embedded/embedded.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { childEnv } from '../support/childEnv.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { makeDataDir, removeDataDir } from '../support/postgres/cluster.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { NO_TERMINAL, spawnInTerminal } from '../support/terminal.ts';

const FLEET = fileURLToPath(new URL('../../src/cli/fleet.ts', import.meta.url));

async function createDevices(url: string, count: number): Promise<void> {
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  await sql`
    insert into device (imei, world_id)
    select (870000000000000 + n)::text, (select min(world_id) from account) from generate_series(1, ${count}) n`;
  await sql.end();
}

/** Runs `fleet` as a process of its own, with these variables and no others of the service. */
async function fleet(argv: readonly string[], env: Record<string, string>, stdin = '') {
  const child = spawn(process.execPath, [FLEET, ...argv], { env: childEnv(env) });
  child.stdin.end(stdin);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return { code, stdout, stderr };
}

describe('the process', () => {
  let url: string;
  before(async () => {
    url = (await createDatabase()).url;
    await adminOf(url).account('a@x');
  });

  test('reads a file from stdin, prints one JSON document on stdout and ends with 0', async () => {
    const argv = ['device:import', '--email', 'a@x', '-'];
    const read = await fleet(argv, { DATABASE_URL: url }, 'imei\n860000000000001\n860000000000002');
    assert.deepEqual(read, { code: 0, stdout: '{"created":2,"updated":0,"rejected":[]}\n', stderr: '' });
  });

  test('ends with 1 when the command fails', async () => {
    const failed = await fleet(['key:revoke', '--id', '77'], { DATABASE_URL: url });
    assert.deepEqual(failed, { code: 1, stdout: '', stderr: 'key:revoke: there is no key 77\n' });
  });

  test('asks in a terminal for a password that it does not show', { skip: NO_TERMINAL }, async (t) => {
    const child = spawnInTerminal(
      t,
      [process.execPath, FLEET, 'account:create', '--email', 'typed@x', '--name', 'A', '--password', '-'],
      { DATABASE_URL: url },
    );
    await child.said(/Password: $/);
    child.type('not to be seen\r');
    await child.said(/Again: $/);
    child.type('not to be seen\r');
    assert.equal(await child.ended, 0, child.output());
    assert.match(child.output(), /"email":"typed@x"/);
    assert.doesNotMatch(child.output(), /not to be seen/);
  });

  test('ends quietly when the reader of a list does', async () => {
    await createDevices(url, 5_000);
    const script = `"${process.execPath}" "${FLEET}" device:list | head -n 1; echo "exit \${PIPESTATUS[0]}"`;
    const child = spawn('bash', ['-c', script], { env: childEnv({ DATABASE_URL: url }) });
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    assert.match(stdout, /^\{"imei":.*\}\nexit 0\n$/);
    assert.equal(stderr, '');
  });

  test('reports all that is wrong with the environment, one line each', async () => {
    const { code, stdout, stderr } = await fleet(['migrate'], { DATABASE_URL: 'x', LOG_LEVEL: 'loud' });
    assert.deepEqual([code, stdout], [1, '']);
    assert.deepEqual(
      stderr
        .trimEnd()
        .split('\n')
        .map((line) => line.split(' ')[0]),
      ['DATABASE_URL', 'LOG_LEVEL'],
    );
  });
});

describe('without DATABASE_URL', () => {
  test('a fresh machine works: Postgres is made, and started for a command unless a service runs it', async (t) => {
    const parent = await makeDataDir();
    const dataDir = join(parent, 'data');
    const env = { DATA_DIR: dataDir };
    const made = await fleet(['account:create', '--email', 'a@x', '--name', 'A'], env);
    const account = '{"id":1,"email":"a@x","organization_id":null}\n';
    assert.deepEqual([made.code, made.stdout], [0, account], made.stderr);
    assert.match(made.stderr, /embedded Postgres stopped/);

    const service = await startEmbedded({ dataDir, log: () => undefined, settings: { fsync: 'off' } });
    t.after(async () => {
      await service.stop();
      await removeDataDir(parent);
    });
    const [{ stdout, stderr }] = await Promise.all([
      fleet(['key:create', '--email', 'a@x', '--scopes', 'all'], env),
      adminOf(env).account('b@x'), // another command at the same time
    ]);
    assert.match(JSON.parse(stdout).key, /^fk_/);
    assert.doesNotMatch(stderr, /embedded Postgres/);
  });

  test('simulate finds the token of the service in its folder', async (t) => {
    const dataDir = await makeDataDir();
    t.after(() => removeDataDir(dataDir));
    const { code, stderr } = await fleet(['simulate', '--devices', '1', '--rate', '1'], {
      DATA_DIR: dataDir,
      INGEST_PORT: '1',
    });
    assert.equal(code, 1);
    assert.match(stderr, /127\.0\.0\.1:1 does not answer/);
    assert.match(await readFile(join(dataDir, 'secrets.json'), 'utf8'), /"ingest_token":/);
  });
});
