import { execFile } from 'node:child_process';
import { chown, stat, writeFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { type Binaries, findBinaries } from '../../../src/postgres/embedded/binaries.ts';
import { createCluster, runInFolder, urlOf } from '../../../src/postgres/embedded/cluster.ts';
import { type DataFolder, findDataFolder } from '../../../src/postgres/embedded/dataFolder.ts';
import type { Watched } from '../../../src/postgres/embedded/watchdog.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { isUnavailable } from '../../../src/postgres/sqlErrors.ts';
import { findFreePort } from '../ports.ts';
import { waitFor } from '../waitFor.ts';
import { receiverCertificate } from '../webhooks/tlsReceiver.ts';
import { makeCluster, makeDataDir, removeDataDir } from './cluster.ts';

/** A primary and a replica that streams from it, behind one address. */
export interface ReplicatedPostgres {
  /** Of whichever of them is the primary. */
  readonly url: string;
  /** Of both, the replica first, with TLS: each has to prove who it is. */
  readonly hostsUrl: string;
  /** Of the primary alone, and of the replica alone. */
  readonly primaryUrl: string;
  readonly replicaUrl: string;
  /** Ends the replica as a crash does. */
  killReplica(): Promise<void>;
  /** Starts it again, with further settings. */
  startReplica(...settings: readonly string[]): Promise<void>;
  /** Makes the replica one of another history, whose log is longer than that of the primary. */
  estrangeReplica(): Promise<void>;
  /** Lets the replica catch up and stops it: it lacks what is written from here on. */
  loseReplica(): Promise<void>;
  /** Kills the primary and promotes the replica; what is connected is cut. */
  failOver(): Promise<void>;
}

/** Starts a migrated pair; it goes away after the test. `isNew`: the pair is a copy of no other cluster. */
export async function startReplicatedPostgres(
  t: TestContext,
  { isNew = false } = {},
): Promise<ReplicatedPostgres> {
  const dataDir = await makeDataDir();
  const dataFolder = await findDataFolder(dataDir, () => undefined);
  const binaries = await findBinaries(dataFolder);
  if (isNew) await createCluster(dataFolder, binaries, false);
  else await makeCluster(dataFolder, binaries);
  const certificate = await writeCertificate(join(dataFolder.dir, 'cluster'));
  const [main, copy] = ['cluster', 'replica'].map((name) => join(dataFolder.dir, name)) as [string, string];
  const ports = [await findFreePort(), await findFreePort()] as const;
  const urls = [await urlOf(dataFolder.dir, ports[0]), await urlOf(dataFolder.dir, ports[1])] as const;
  const running: Watched[] = [];
  const latch = await openLatch(t, ports[0]);
  t.after(async () => {
    for (const server of running) await server.stop();
    await removeDataDir(dataDir);
  });

  const start = async (folder: string, port: number, others: readonly string[] = []): Promise<Watched> => {
    const server = await startServer(dataFolder, binaries, folder, [`port=${port}`, ...others]);
    running.push(server);
    return server;
  };
  if (isNew || process.env['FLEET_TEST_CLUSTER_FILES'] === undefined) {
    const first = await start(main, ports[0]);
    await asAdmin(urls[0], (sql) => migrate(sql, () => undefined));
    await first.stop();
  }
  // A copy of a stopped cluster is one that a replica can start from.
  await promisify(execFile)('cp', ['-a', main, copy]);
  await writeFile(join(copy, 'standby.signal'), '');
  const primary = await start(main, ports[0]);
  await asAdmin(urls[0], async () => undefined);
  const { username, password } = new URL(urls[0]);
  const conninfo = `primary_conninfo=host=127.0.0.1 port=${ports[0]} user=${username} password=${password}`;
  let replica = await start(copy, ports[1], [conninfo]);
  const startReplica = async (...settings: readonly string[]): Promise<void> => {
    replica = await start(copy, ports[1], settings);
    await asAdmin(urls[1], async () => undefined);
  };
  const url = new URL(urls[0]);
  url.port = String(latch.port);
  const hosts = [ports[1], ports[0]].map((port) => `${url.hostname}:${port}`);
  return {
    url: url.href,
    hostsUrl: `${url.href.replace(url.host, hosts.join())}?sslmode=verify-full&sslrootcert=${certificate}`,
    primaryUrl: urls[0],
    replicaUrl: urls[1],
    killReplica: async () => {
      process.kill(replica.pid, 'SIGQUIT');
      await replica.ended;
    },
    startReplica: (...settings) => startReplica(conninfo, ...settings),
    estrangeReplica: async () => {
      await ask(urls[1], (sql) => sql`select pg_promote()`);
      await ask(urls[1], async (sql) => {
        for (let n = 0; n < ESTRANGED_MB; n++)
          await sql`select pg_logical_emit_message(true, 'test', repeat('x', 1024 * 1024))`;
        return [];
      });
      await replica.stop();
      await writeFile(join(copy, 'standby.signal'), '');
      await startReplica();
    },
    loseReplica: async () => {
      // Cursors name this place too, which may be ahead of what is written to disk.
      const [row] = await ask<{ lsn: string }>(
        urls[0],
        (sql) => sql`select pg_current_wal_insert_lsn()::text as lsn`,
      );
      await waitFor(async () => {
        const [replayed] = await ask<{ done: boolean }>(
          urls[1],
          (sql) => sql`select pg_last_wal_replay_lsn() >= ${row?.lsn}::pg_lsn as done`,
        );
        return replayed?.done === true;
      });
      await replica.stop();
    },
    failOver: async () => {
      process.kill(primary.pid, 'SIGQUIT');
      await primary.ended;
      await start(copy, ports[1]);
      await ask(urls[1], (sql) => sql`select pg_promote()`);
      latch.lead(ports[1]);
    },
  };
}

/** For the servers in this folder, and copies of it. Returns where clients find it. */
async function writeCertificate(folder: string): Promise<string> {
  const { certificatePem, privateKeyPem } = await receiverCertificate(['127.0.0.1']);
  const { uid, gid } = await stat(folder);
  const write = async (name: string, text: string): Promise<string> => {
    const path = join(folder, name);
    await writeFile(path, text, { mode: 0o600 });
    await chown(path, uid, gid);
    return path;
  };
  await write('server.key', privateKeyPem);
  return write('server.crt', certificatePem);
}

/** More than a primary writes in a test. */
const ESTRANGED_MB = 64;

const SETTINGS = [
  'ssl=on',
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'fsync=off',
  'io_method=sync', // each start has three processes fewer
  'max_connections=100',
  'wal_level=replica',
  'max_wal_senders=4',
  'hot_standby=on',
];

async function startServer(
  dataFolder: DataFolder,
  binaries: Binaries,
  folder: string,
  settings: readonly string[],
): Promise<Watched> {
  const server = await runInFolder(dataFolder, binaries.postgres, [
    '-D',
    folder,
    ...[...SETTINGS, ...settings].flatMap((setting) => ['-c', setting]),
  ]);
  server.unref();
  return server;
}

/** Does it as soon as the server takes queries. */
async function asAdmin<T>(url: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = openSql(url, { maxConnections: 1, name: 'test admin' });
  try {
    await waitFor(async () => {
      try {
        await sql`select 1`;
        return true;
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        return false;
      }
    });
    return await work(sql);
  } finally {
    await sql.end();
  }
}

function ask<T extends object>(
  url: string,
  work: (sql: Sql) => PromiseLike<readonly object[]>,
): Promise<T[]> {
  return asAdmin(url, async (sql) => [...((await work(sql)) as readonly T[])]);
}

/** A port that leads to another one. */
async function openLatch(t: TestContext, first: number): Promise<{ port: number; lead(port: number): void }> {
  let target = first;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const postgres = connect(target, '127.0.0.1');
    for (const [from, to] of [
      [client, postgres],
      [postgres, client],
    ] as const) {
      open.add(from);
      from.on('error', () => undefined); // servers are killed on purpose
      from.once('close', () => {
        open.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  const cut = (): void => {
    for (const socket of open) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(async () => {
    cut();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    port: (server.address() as { port: number }).port,
    lead: (port) => {
      target = port;
      cut();
    },
  };
}
