import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { withDeadline } from '../src/lib/time.ts';
import { findBinaries } from '../src/postgres/embedded/binaries.ts';
import { findDataFolder } from '../src/postgres/embedded/dataFolder.ts';
import { openSql } from '../src/postgres/sql.ts';
import { openLine } from './support/line.ts';
import { patienceMs } from './support/patience.ts';
import { INGEST_TOKEN, request, startPod } from './support/pod.ts';
import { findFreePort } from './support/ports.ts';
import { adminOf } from './support/postgres/admin.ts';
import { makeCluster, makeDataDir, REFUSED_USER, removeDataDir } from './support/postgres/cluster.ts';
import { eventually, processesIn } from './support/postgres/embedded.ts';
import { countLockWaiters, holdTransaction } from './support/postgres/holdTransaction.ts';
import { startOwnPostgres } from './support/postgres/ownPostgres.ts';
import { createDatabase } from './support/postgres/postgres.ts';
import { MAIN, PROJECT, type ServiceProcess, serviceEnv, startProcess } from './support/service.ts';
import { NO_TERMINAL, spawnInTerminal } from './support/terminal.ts';
import { IS_TORTURE } from './support/torture.ts';
import { waitFor } from './support/waitFor.ts';

/** What is in flight may take ten seconds. */
const STOP_LIMIT_MS = patienceMs(15_000);
const EMBEDDED_LIMIT_MS = patienceMs(40_000);
const IMEI = '350000000000001';
const said = ({ lines, errors }: ServiceProcess): string => [...lines, ...errors].join('\n');

/** How it ended, which must not take long. */
function outcomeOf(service: ServiceProcess, limitMs = STOP_LIMIT_MS) {
  return withDeadline(service.ended, limitMs, 'the end of the service').catch((error) => {
    throw new Error(`${error}\n${said(service)}`);
  });
}

const HANG_UP = { code: 0, signal: null };

const WRONG_PASSWORD = 'hunter2-is-no-password';

async function stayOnPort(t: TestContext): Promise<number> {
  const server: Server = createServer();
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** The advisory lock under which the schema is updated. */
const MIGRATION_LOCK = 7_215_081_946;
/** The end of a start whose line is silent: after 40 s, its longest wait for an answer, and a stop of ten. */
const SILENCE_LIMIT_MS = patienceMs(70_000);
const NO_ANSWER = 'Postgres cannot be reached (NO_ANSWER)';

/** A database, and a line to it. */
async function openDatabaseLine(t: TestContext) {
  const { url } = await createDatabase(t);
  const line = await openLine(t, Number(new URL(url).port));
  return { url, line, lineUrl: url.replace(new URL(url).host, `127.0.0.1:${line.port}`) };
}

/** Keeps every start on that database waiting, as the migration of another process does. */
async function holdMigration(t: TestContext, url: string) {
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  t.after(() => sql.end());
  return holdTransaction(sql, (tx) => tx`select pg_advisory_xact_lock(${MIGRATION_LOCK}::bigint)`);
}

const WAITS_FOR_MIGRATION = 'waiting for another process';
/** Waits for Postgres for a second. */
const IMPATIENT = { STARTUP_WAIT_SECONDS: '1' };

/** A start in this process, and what it logs. */
function startHere(databaseUrl: string, env: Readonly<Record<string, string>>) {
  const log: string[] = [];
  const starting = startPod(databaseUrl, {
    env,
    log: pino({ level: 'trace' }, { write: (line: string) => void log.push(line) }),
  });
  starting.catch(() => undefined);
  return { starting, log: () => log.join('') };
}

const lastWords = ({ lines }: ServiceProcess): string => JSON.parse(lines.at(-1) ?? '{}').msg;

describe('a start that cannot be', { concurrency: 4 }, () => {
  test('wrong variables: a line for each, nothing else, exit 1', async (t) => {
    const service = startProcess(t, {
      PORT: '65536',
      ROLES: 'api,nothing',
      TRUST_PROXY: 'true',
      DATABASE_URL: 'x',
    });
    assert.deepEqual(await outcomeOf(service), { code: 1, signal: null });
    assert.deepEqual(service.lines, []);
    assert.deepEqual(service.errors.map((line) => line.split(' ')[0]).sort(), [
      'DATABASE_URL',
      'INGEST_TOKEN',
      'PORT',
      'ROLES',
      'SECRETS_KEY',
      'TRUST_PROXY',
    ]);
  });

  test('a database that is not there ends it without a word of the password', async (t) => {
    const nobody = `postgres://fleet:${WRONG_PASSWORD}@127.0.0.1:${await findFreePort()}/fleet`;
    const service = startProcess(t, { ...serviceEnv(nobody), ...IMPATIENT });
    assert.deepEqual(await outcomeOf(service), { code: 1, signal: null });
    assert.match(lastWords(service), /Postgres/);
    assert.doesNotMatch(said(service), /hunter2/);
  });

  test('a line to Postgres that falls silent ends it, which it says', async (t) => {
    const { line, lineUrl } = await openDatabaseLine(t);
    const { starting } = startHere(lineUrl, IMPATIENT);
    await waitFor(() => line.sessions > 1);
    line.fallSilent();
    const ended = assert.rejects(starting, { message: NO_ANSWER });
    await withDeadline(ended, SILENCE_LIMIT_MS, 'the end of the start');
  });

  test('the same while it waits for a migration, however long that takes', async (t) => {
    const { url, line, lineUrl } = await openDatabaseLine(t);
    const release = await holdMigration(t, url);
    const { starting, log } = startHere(lineUrl, IMPATIENT);
    await waitFor(() => log().includes(WAITS_FOR_MIGRATION));
    line.fallSilent();
    const ended = assert.rejects(starting, { message: NO_ANSWER });
    await withDeadline(ended, SILENCE_LIMIT_MS, 'the end of the start');
    await release();
  });

  test('SIGTERM ends it while its line is silent, exit 0', async (t) => {
    const { url, line, lineUrl } = await openDatabaseLine(t);
    const release = await holdMigration(t, url);
    const service = startProcess(t, { ...serviceEnv(lineUrl), ...IMPATIENT });
    await waitFor(() => said(service).includes(WAITS_FOR_MIGRATION));
    line.fallSilent();
    service.child.kill('SIGTERM');
    assert.deepEqual(await outcomeOf(service), HANG_UP);
    await release();
  });
});

describe('the service as a process', { concurrency: 3 }, () => {
  test('a line to Postgres that carries something again in time does not end its start; SIGTERM: the call in flight is answered, exit 0; a second SIGTERM does no harm', async (t) => {
    const { url, line, lineUrl } = await openDatabaseLine(t);
    const { key } = await ownerOf(url);
    const service = startProcess(t, { ...serviceEnv(lineUrl), STARTUP_WAIT_SECONDS: '60' });
    await waitFor(() => line.sessions > 1);
    line.fallSilent();
    await waitFor(() => said(service).includes('"msg":"waiting for Postgres"'));
    line.heal();
    const { api, ingest } = await withDeadline(service.listening, SILENCE_LIMIT_MS, 'the start');
    assert.equal((await request(`${ingest}/readyz`)).status, 200);
    const sql = openSql(url, { maxConnections: 2, name: 'test' });
    t.after(() => sql.end());
    const release = await holdTransaction(sql, (tx) => tx`lock table position in access exclusive mode`);
    const call = request(`${api}/api/v3/devices/${IMEI}/history`, { headers: { 'X-API-Key': key } });
    await waitFor(async () => (await countLockWaiters(sql)) > 0);
    service.child.kill('SIGTERM');
    service.child.kill('SIGTERM');
    await waitFor(() => service.lines.some((line) => line.includes('"stopping"')));
    await release();
    assert.equal((await call).status, 200);
    assert.deepEqual(await outcomeOf(service), HANG_UP);
    await assert.rejects(request(`${api}/healthz`));
    assert.equal(service.lines.filter((line) => line.includes('"stopping"')).length, 1);
  });

  test('it waits for connections that pods still hold which are about to end', async (t) => {
    const { url } = await createDatabase(t);
    const sql = openSql(url, { maxConnections: 1, name: 'test' });
    t.after(() => sql.end());
    const user = `pod_${randomUUID().replaceAll('-', '')}`;
    // One more than it has when it begins to open those of reads.
    await sql.unsafe(`create role ${user} login connection limit 8 in role current_user`);
    const service = startProcess(t, serviceEnv(Object.assign(new URL(url), { username: user }).href));
    await waitFor(() => said(service).includes('"msg":"waiting for Postgres"'));
    assert.match(said(service), /too_many_connections/);
    await sql.unsafe(`alter role ${user} connection limit 100`);
    const { ingest } = await withDeadline(service.listening, SILENCE_LIMIT_MS, 'the start');
    assert.equal((await request(`${ingest}/readyz`)).status, 200);
  });

  test('SIGTERM at once, while it starts: exit 0', async (t) => {
    const { url } = await createDatabase(t);
    for (const waitMs of IS_TORTURE ? [0, 200, 300, 400] : [300]) {
      const service = startProcess(t, serviceEnv(url));
      await new Promise((resolve) => service.child.once('spawn', resolve));
      await sleep(waitMs);
      service.child.kill('SIGTERM');
      const { code, signal } = await outcomeOf(service);
      // Before the program has begun to run, the system ends it.
      assert.ok(code === 0 || signal === 'SIGTERM', `${code} ${signal} ${said(service)}`);
    }
  });

  test('with a Postgres and a token of its own', async (t) => {
    const dataDir = await makeDataDir();
    t.after(() => removeDataDir(dataDir));
    const folder = await findDataFolder(dataDir, () => undefined);
    await makeCluster(folder, await findBinaries(folder)); // initdb is not what this is about
    const env = { DATA_DIR: dataDir, PORT: '0', INGEST_PORT: '0' };
    const postgres = () => processesIn(`${dataDir}/cluster`);

    const taken = 'it ends both when a port is taken, which it names in one line';
    await t.test(taken, { skip: NO_TERMINAL }, async () => {
      const port = await stayOnPort(t);
      const service = startInTerminal(t, { ...env, INGEST_PORT: String(port) });
      assert.equal(await withDeadline(service.ended, EMBEDDED_LIMIT_MS, 'the end of the service'), 1);
      const lines = service.output().trimEnd().split(/\r?\n/);
      for (const line of lines) assert.match(line, /^\[\d\d:\d\d:\d\d\] (INFO|FATAL): /);
      assert.deepEqual(
        lines.filter((line) => line.includes('FATAL')).map((line) => line.slice('[00:00:00] FATAL: '.length)),
        [`cannot listen on 127.0.0.1, port ${port}: another process listens there`],
      );
      assert.deepEqual(await postgres(), []);
    });

    const admin = adminOf({ DATA_DIR: dataDir });
    let key = '';
    await t.test('the token is a line of JSON on stderr; Ctrl-C in the terminal ends it all', async () => {
      const service = startProcess(t, env);
      const { ingest } = await withDeadline(service.listening, EMBEDDED_LIMIT_MS, 'the start');
      await admin.account('owner@example.com');
      await admin.device('owner@example.com', IMEI);
      ({ key } = await admin.key('owner@example.com'));
      await waitFor(() => service.errors.length > 0);
      const { ingest_token: token, kept_in: file } = JSON.parse(service.errors.join('\n'));
      assert.equal(file, `${dataDir}/secrets.json`);
      assert.equal(await sendPoint(ingest, token), 200);
      assert.ok((await postgres()).length > 0);
      process.kill(-(service.child.pid ?? 0), 'SIGINT');
      assert.deepEqual(await outcomeOf(service), HANG_UP);
      assert.deepEqual(await postgres(), []);
    });

    await t.test(
      'the next start finds what was stored; with the end of its Postgres it exits with 1',
      async () => {
        const service = startProcess(t, env);
        const { api } = await withDeadline(service.listening, EMBEDDED_LIMIT_MS, 'the start');
        const path = `${api}/api/v3/devices/${IMEI}/location`;
        const reply = await request(path, { headers: { 'X-API-Key': key } });
        assert.equal(reply.body.data.latitude, 10);
        for (const pid of await postgres()) process.kill(pid, 'SIGKILL');
        assert.deepEqual(await outcomeOf(service), { code: 1, signal: null });
        assert.match(said(service), /the embedded Postgres ended; the service cannot go on/);
        await eventually('nothing is left', async () => (await postgres()).length === 0);
      },
    );
  });

  test('its log has no secret in it, whatever goes wrong; SIGTERM while Postgres says nothing: exit 0', async (t) => {
    const postgres = await startOwnPostgres(t);
    const { url } = postgres;
    const wrong = new URL(url);
    wrong.username = REFUSED_USER;
    wrong.password = WRONG_PASSWORD;
    const refused = startHere(wrong.href, { STARTUP_WAIT_SECONDS: '3600' }); // it will be as wrong in an hour
    await assert.rejects(withDeadline(refused.starting, STOP_LIMIT_MS, 'the refusal'), /password/);
    assert.doesNotMatch(refused.log(), /hunter2/);
    const { key } = await ownerOf(url);
    const env = { ...serviceEnv(url), LOG_LEVEL: 'trace', REDIS_URL: 'redis://:redis-password@127.0.0.1:1' };
    const service = startProcess(t, env);
    const { api, ingest } = await service.listening;
    const call = async (path: string, headers: Record<string, string>, init: RequestInit = {}) => {
      await (await fetch(`${path}`, { ...init, headers })).arrayBuffer();
    };
    const provoke = async () => {
      await call(`${api}/api/v3/devices`, { 'X-API-Key': key });
      await call(`${api}/api/v3/devices/${IMEI}/history?key=${key}`, { 'X-API-Key': key });
      await call(`${api}/api/v3/devices`, { Authorization: `Bearer ${key}` });
      await call(`${api}/api/v3/devices/%zz?k=${key}`, { 'X-API-Key': key });
      await call(`${ingest}/osmand?id=${IMEI}&lat=1&lon=2&token=${INGEST_TOKEN}`, {});
      await call(`${ingest}/positions`, { 'X-Ingest-Token': INGEST_TOKEN }, { method: 'POST', body: '{' });
      await sendPoint(ingest);
    };
    await provoke();
    await postgres.kill();
    await provoke();
    await postgres.start();
    await waitFor(async () => (await request(`${api}/readyz?writes=true`)).status === 200);
    await provoke();
    await postgres.pause();
    service.child.kill('SIGTERM');
    assert.deepEqual(await outcomeOf(service), HANG_UP);
    const secrets = [
      key,
      INGEST_TOKEN,
      Buffer.alloc(32, 7).toString('base64'),
      new URL(url).password,
      'redis-password',
    ];
    for (const secret of secrets) assert.ok(!said(service).includes(secret), `the log has ${secret}`);
    assert.deepEqual(service.errors, []);
  });
});

describe('the service in a terminal', { skip: NO_TERMINAL }, () => {
  test('it prints lines to read: where everything is, the place of the token, what to do next', async (t) => {
    const { url } = await createDatabase(t);
    const [port, ingestPort] = [await findFreePort(), await findFreePort()];
    const ports = { PORT: String(port), INGEST_PORT: String(ingestPort) };
    const service = startInTerminal(t, { ...serviceEnv(url), ...ports });
    await service.said(/Ctrl-C stops the service/);
    const { version } = JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8'));
    const lines = service.output().split(/\r?\n/);
    const log = lines.filter((line) => /^\[\d\d:\d\d:\d\d\] INFO: /.test(line));
    assert.match(log[0] ?? '', new RegExp(`starting \\{"version":"${version}","commit":"\\w+"\\}$`));
    assert.match(log.at(-1) ?? '', new RegExp(`listening \\{"port":${port},"ingest_port":${ingestPort}\\}$`));
    assert.deepEqual(lines.slice(lines.indexOf(log.at(-1) ?? '') + 1), [
      '',
      `Fleet Tracking Service ${version} is ready.`,
      '',
      `  Console  http://127.0.0.1:${port}/console`,
      `  API      http://127.0.0.1:${port}/api/v3`,
      `  Docs     http://127.0.0.1:${port}/api/v3/docs`,
      `  Ingest   http://127.0.0.1:${ingestPort}/positions`,
      '  Token    the value of INGEST_TOKEN; send it as X-Ingest-Token',
      `  Metrics  http://127.0.0.1:${ingestPort}/metrics`,
      '',
      'Next, in another terminal: create an account with a password for the console (it is asked for), a key to call the',
      'API with, and a device. Then log in to the console.',
      '',
      '  DATABASE_URL=… npm run -s fleet -- account:create --email you@example.com --name You --password -',
      '  DATABASE_URL=… npm run -s fleet -- key:create --email you@example.com --scopes all',
      '  DATABASE_URL=… npm run -s fleet -- device:create --email you@example.com --imei 350000000000017',
      '',
      'All commands: DATABASE_URL=… npm run -s fleet -- help. The guide begins in README.md.',
      '',
      'Ctrl-C stops the service.',
      '',
      '',
    ]);
    service.type('\x03');
    await service.ended;
    assert.match(service.output(), /INFO: stopped/);
  });
});

function startInTerminal(t: TestContext, env: Readonly<Record<string, string>>) {
  return spawnInTerminal(t, [process.execPath, MAIN], { ...env, NO_COLOR: '1' });
}

/** An account with a device and a key. */
async function ownerOf(databaseUrl: string): Promise<{ key: string }> {
  const admin = adminOf(databaseUrl);
  await admin.account('owner@example.com');
  await admin.device('owner@example.com', IMEI);
  return admin.key('owner@example.com');
}

async function sendPoint(ingest: string, token = INGEST_TOKEN): Promise<number> {
  const { status } = await request(`${ingest}/positions`, {
    method: 'POST',
    headers: { 'X-Ingest-Token': token },
    body: JSON.stringify({ imei: IMEI, recorded_at: Date.now(), latitude: 10, longitude: 20 }),
  });
  return status;
}
