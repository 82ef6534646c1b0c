import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { findBinaries } from '../../../src/postgres/embedded/binaries.ts';
import { exists, findDataFolder } from '../../../src/postgres/embedded/dataFolder.ts';
import {
  connectEmbedded,
  DataDirInUseError,
  type Embedded,
  startEmbedded,
  withEmbedded,
} from '../../../src/postgres/embedded/embedded.ts';
import { makeCluster, makeDataDir, removeDataDir } from '../../support/postgres/cluster.ts';
import { CHEAP, eventually, processesIn, spawnHolder, withSql } from '../../support/postgres/embedded.ts';

const withoutProc = process.platform !== 'linux' && 'needs the /proc of Linux';

/** Starts the cluster of a folder in this process, collecting what it logs. */
async function start(dataDir: string): Promise<Embedded & { logged: string[] }> {
  const logged: string[] = [];
  const embedded = await startEmbedded({
    dataDir,
    log: (message) => logged.push(message),
    settings: CHEAP,
  });
  return { ...embedded, logged };
}

function postmasterOf(dataDir: string): Promise<number> {
  return readFile(join(dataDir, 'cluster', 'postmaster.pid'), 'utf8').then((text) =>
    Number.parseInt(text, 10),
  );
}

async function countNotes(url: string | undefined): Promise<number> {
  return withSql(url, async (sql) => {
    const rows = await sql<{ count: number }[]>`select count(*) from note`;
    return rows[0]?.count ?? -1;
  });
}

async function addNote(url: string | undefined): Promise<void> {
  await withSql(url, (sql) => sql`insert into note default values`);
}

describe('a running embedded cluster', () => {
  let dataDir: string;
  let embedded: Embedded & { logged: string[] };
  before(async () => {
    dataDir = await makeDataDir();
    const folder = await findDataFolder(dataDir, () => undefined);
    await makeCluster(folder, await findBinaries(folder));
    embedded = await start(dataDir);
  });
  after(async () => {
    await embedded.stop();
    await removeDataDir(dataDir);
  });

  test('is a Postgres 18 in UTF-8, locale C and UTC, listening on the loopback only', async () => {
    const rows = await withSql(
      embedded.url,
      (sql) => sql`
        select current_setting('server_version_num')::int / 10000 as version, pg_encoding_to_char(encoding) as encoding,
          datcollate as locale, (select setting from pg_settings where name = 'TimeZone') as zone,
          current_setting('listen_addresses') as addresses, current_setting('unix_socket_directories') as sockets
        from pg_database where datname = current_database()`,
    );
    assert.deepEqual(
      { ...rows[0] },
      {
        version: 18,
        encoding: 'UTF8',
        locale: 'C',
        zone: 'UTC',
        addresses: '127.0.0.1',
        sockets: '',
      },
    );
  });

  test('answers nobody who does not know the password, which only its owner can read', async () => {
    const wrong = new URL(embedded.url);
    wrong.password = 'wrong';
    await assert.rejects(
      withSql(wrong.href, (sql) => sql`select 1`),
      { code: '28P01' },
    );
    assert.equal((await stat(join(dataDir, 'postgres-password'))).mode & 0o777, 0o600);
  });

  test('refuses a second start with who has the folder, since when, and what to do', async () => {
    const { answer, ended } = await spawnHolder(dataDir);
    await ended;
    assert.equal(answer.error, 'DataDirInUseError');
    assert.match(
      answer.message ?? '',
      new RegExp(`pid ${process.pid} \\(service\\), since \\d{4}-\\d\\d-\\d\\dT`),
    );
    assert.match(answer.message ?? '', /DATA_DIR.*DATABASE_URL/);
  });

  test('refuses a second start in the same process', async () => {
    await assert.rejects(start(dataDir), DataDirInUseError);
  });

  test('is found by a command, which works beside it and leaves it running', async () => {
    assert.deepEqual(await connectEmbedded(dataDir), { url: embedded.url, kind: 'service' });
    const options = { dataDir, log: () => assert.fail('nothing is started') };
    assert.equal(await withEmbedded(options, (url) => Promise.resolve(url)), embedded.url);
    await withSql(embedded.url, (sql) => sql`select 1`);
  });
});

describe('the cluster of a data folder', () => {
  let dataDir: string;
  before(async () => {
    dataDir = await makeDataDir();
    const embedded = await start(dataDir);
    await withSql(embedded.url, (sql) => sql`create table note (id bigint generated always as identity)`);
    await addNote(embedded.url);
    await embedded.stop();
    assert.deepEqual(embedded.logged, [
      'initializing embedded Postgres',
      'starting embedded Postgres',
      'embedded Postgres stopped',
    ]);
  });
  after(() => removeDataDir(dataDir));

  test('is there again after a stop, and nobody runs it in between', async () => {
    assert.equal(await connectEmbedded(dataDir), null);
    const embedded = await start(dataDir);
    assert.equal(await countNotes(embedded.url), 1);
    await embedded.stop();
    assert.equal(await embedded.exited, null);
    assert.deepEqual(embedded.logged, ['starting embedded Postgres', 'embedded Postgres stopped']);
    assert.equal(await exists(join(dataDir, 'cluster', 'postmaster.pid')), false);
  });

  test('has every committed row after a kill -9 of the service, started again at once', async () => {
    const { child, answer, ended } = await spawnHolder(dataDir);
    const count = await countNotes(answer.url);
    await addNote(answer.url);
    child.kill('SIGKILL');
    await ended;
    const embedded = await start(dataDir); // while the old Postgres still runs
    assert.equal(await countNotes(embedded.url), count + 1);
    await embedded.stop();
  });

  test('keeps serving after a Ctrl-C that the service has not acted on yet; is left by every process after a kill -9', async () => {
    const { child, answer, ended } = await spawnHolder(dataDir);
    assert.ok(child.pid !== undefined);
    process.kill(-child.pid, 'SIGINT'); // as a terminal does: to the whole group
    await addNote(answer.url);
    const cluster = join(dataDir, 'cluster');
    if (!withoutProc) assert.ok((await processesIn(cluster)).length > 1);
    child.kill('SIGKILL');
    await ended;
    if (withoutProc) return;
    await eventually('no process in the cluster', async () => (await processesIn(cluster)).length === 0);
    assert.equal(await exists(join(cluster, 'postmaster.pid')), false, 'it was shut down properly');
    await eventually('no watchdog in the data folder', async () => (await processesIn(dataDir)).length === 0);
  });

  test('is taken over when the service and the watchdog of its Postgres were killed', {
    skip: withoutProc,
  }, async () => {
    const { child, answer, ended } = await spawnHolder(dataDir);
    await addNote(answer.url);
    const count = await countNotes(answer.url);
    const watchdogs = await processesIn(dataDir); // the shell stays where it was started
    assert.ok(watchdogs.length > 0);
    const pid = await postmasterOf(dataDir);
    for (const watchdog of watchdogs) process.kill(watchdog, 'SIGKILL');
    child.kill('SIGKILL');
    await ended;
    const embedded = await start(dataDir);
    assert.ok(embedded.logged.includes('waiting for the previous Postgres to end'));
    assert.notEqual(await postmasterOf(dataDir), pid);
    assert.equal(await countNotes(embedded.url), count);
    await embedded.stop();
  });

  test('reports to the service when Postgres ends, and recovers with every committed row, whoever has its pid then', async (t) => {
    const first = await start(dataDir);
    await addNote(first.url);
    const count = await countNotes(first.url);
    process.kill(await postmasterOf(dataDir), 'SIGKILL');
    const error = await first.exited;
    assert.match(error?.message ?? '', /SIGKILL.*postgres\.log/s);
    await first.stop();
    const second = await start(dataDir);
    assert.ok(second.logged.includes('embedded Postgres recovered from a crash'));
    assert.equal(await countNotes(second.url), count);
    if (withoutProc) return second.stop();
    const pid = await postmasterOf(dataDir);
    process.kill(pid, 'SIGKILL');
    await second.exited;
    await second.stop();
    const pidFile = join(dataDir, 'cluster', 'postmaster.pid');
    const { uid, gid } = await stat(join(dataDir, 'cluster'));
    const another = spawn('sleep', ['60'], { uid, gid, cwd: '/', stdio: 'ignore' });
    t.after(() => another.kill());
    await writeFile(pidFile, (await readFile(pidFile, 'utf8')).replace(String(pid), String(another.pid)));
    const third = await start(dataDir);
    await third.stop();
    assert.equal(another.exitCode ?? another.signalCode, null, 'the other process is left alone');
  });

  test('quotes Postgres when it does not start, and is free again: it is used by one command after the other', async () => {
    const options = { dataDir, log: () => undefined, settings: { shared_buffers: 'plenty' } };
    await assert.rejects(startEmbedded(options), /invalid value for parameter "shared_buffers": "plenty"/);
    const order: string[] = [];
    const run = (name: string): Promise<void> =>
      withEmbedded({ dataDir, log: () => undefined, settings: CHEAP }, async (url) => {
        order.push(name);
        await addNote(url);
        order.push(name);
      });
    await Promise.all([run('first'), run('second')]);
    assert.equal(order[0], order[1]);
    assert.equal(order[2], order[3]);
    assert.equal(await connectEmbedded(dataDir), null);
  });

  test('is started by a service as soon as the command that uses it has ended', async () => {
    const order: string[] = [];
    const waits = Promise.withResolvers<void>();
    const starts = Promise.withResolvers<void>();
    const command = withEmbedded({ dataDir, log: () => undefined }, async () => {
      starts.resolve();
      await waits.promise;
      order.push('the command ends');
    });
    await starts.promise;
    const service = await startEmbedded({
      dataDir,
      log: (message) => {
        order.push(message);
        waits.resolve();
      },
    });
    await command;
    assert.deepEqual(order, [
      'waiting for a command that uses the data folder',
      'the command ends',
      'starting embedded Postgres',
    ]);
    await service.stop();
  });
});

describe('two services started on one new data folder at the same instant', () => {
  test('end up as one that serves and one that says so', async (t) => {
    const dataDir = await makeDataDir();
    t.after(() => removeDataDir(dataDir));
    const holders = await Promise.all([spawnHolder(dataDir), spawnHolder(dataDir)]);
    const served = holders.filter(({ answer }) => answer.url);
    const rejected = holders.filter(({ answer }) => answer.error === 'DataDirInUseError');
    for (const { child } of holders) child.stdin?.end();
    await Promise.all(holders.map(({ ended }) => ended));
    assert.deepEqual([served.length, rejected.length], [1, 1]);
  });
});
