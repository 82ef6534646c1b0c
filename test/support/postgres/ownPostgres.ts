import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { findBinaries } from '../../../src/postgres/embedded/binaries.ts';
import { createCluster, runInFolder, urlOf } from '../../../src/postgres/embedded/cluster.ts';
import { findDataFolder } from '../../../src/postgres/embedded/dataFolder.ts';
import type { Watched } from '../../../src/postgres/embedded/watchdog.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { openSql } from '../../../src/postgres/sql.ts';
import { isUnavailable } from '../../../src/postgres/sqlErrors.ts';
import { findFreePort } from '../ports.ts';
import { makeCluster, makeDataDir, makeProjectDir, removeDataDir, writeTrust } from './cluster.ts';
import { processesIn } from './embedded.ts';

const READY_POLL_MS = 10;
const LARGE = ['shared_buffers=512MB', 'maintenance_work_mem=512MB', 'max_wal_size=4GB'];
const run = promisify(execFile);

/** A Postgres of a test alone, on one port for its whole life, to be harmed. */
export interface OwnPostgres {
  readonly url: string;
  /** Fast shutdown, as an administrator or an update does it. */
  stop(): Promise<void>;
  /** Kills every process of it at once, as the failure of its machine would. */
  kill(): Promise<void>;
  /** Kills the processes of all sessions; Postgres itself recovers from that. */
  killSessions(): Promise<void>;
  /** Starts it again after `stop` or `kill`, and waits until it takes queries. */
  start(): Promise<void>;
  /** Lets it answer nothing, with its connections open, until `resume`. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Copies its files as they are: while it runs, as the snapshot of a volume does at one moment. */
  copyFiles(): Promise<void>;
  /** Kills it if it runs, puts the copied files in place of its own, and starts it. */
  putFilesBack(): Promise<void>;
  /** Kills it if it runs, and removes all of it. */
  end(): Promise<void>;
}

export interface OwnPostgresOptions {
  /** The folder of the migrations that are applied, when these are not all. */
  readonly migrations?: string;
  /** It gets so many rows that its files are on disk, with room for a second copy. */
  readonly isLarge?: boolean;
}

/** Starts a migrated Postgres of its own; it goes away after the test given, else with `end`. */
export async function startOwnPostgres(
  t?: TestContext,
  { migrations, isLarge = false }: OwnPostgresOptions = {},
): Promise<OwnPostgres> {
  const dataDir = await (isLarge ? makeProjectDir() : makeDataDir());
  const home = await findDataFolder(dataDir, () => undefined);
  const binaries = await findBinaries(home);
  if (migrations === undefined) await makeCluster(home, binaries);
  else await createCluster(home, binaries, false);
  const cluster = `${home.dir}/cluster`;
  const copy = `${home.dir}/copy`;
  const port = await findFreePort();
  const url = await urlOf(home.dir, port);
  const settings = [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'fsync=off',
    'io_method=sync', // each start has three processes fewer
    'max_connections=100',
    ...(isLarge ? LARGE : []),
    `hba_file=${await writeTrust(dataDir)}`,
  ];
  let server: Watched | null = null;
  const start = async (): Promise<void> => {
    server = await runInFolder(home, binaries.postgres, [
      '-D',
      cluster,
      ...settings.flatMap((setting) => ['-c', setting]),
    ]);
    server.unref();
    await whenReady(url);
  };
  const signal = async (name: NodeJS.Signals, pids: readonly number[]): Promise<void> => {
    for (const pid of pids) {
      try {
        process.kill(pid, name);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
  };
  const all = () => processesIn(cluster);
  const postgres: OwnPostgres = {
    url,
    start,
    stop: async () => server?.stop(),
    kill: async () => {
      await signal('SIGKILL', await all());
      await server?.ended;
      while ((await all()).length > 0) await sleep(READY_POLL_MS);
    },
    killSessions: async () => {
      const sql = openSql(url, { maxConnections: 1, name: 'killer' });
      const rows = await sql<{ pid: number }[]>`
        select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`;
      await sql.end();
      await signal(
        'SIGKILL',
        rows.map((row) => row.pid),
      );
    },
    pause: async () => signal('SIGSTOP', await all()),
    resume: async () => signal('SIGCONT', await all()),
    copyFiles: async () => {
      await postgres.pause();
      await run('cp', ['-a', cluster, copy]);
      await postgres.resume();
    },
    putFilesBack: async () => {
      await postgres.kill();
      await rm(cluster, { recursive: true });
      await run('cp', ['-a', copy, cluster]);
      await rm(`${cluster}/postmaster.pid`, { force: true });
      await start();
    },
    end: async () => {
      await postgres.resume();
      await postgres.kill();
      await removeDataDir(dataDir);
    },
  };
  t?.after(postgres.end);
  await start();
  const sql = openSql(url, { maxConnections: 1, name: 'test migration' });
  await migrate(sql, () => undefined, migrations);
  await sql.end();
  return postgres;
}

async function whenReady(url: string): Promise<void> {
  const sql = openSql(url, { maxConnections: 1, name: 'test start' });
  for (;;) {
    try {
      await sql`select 1`;
      break;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      await sleep(READY_POLL_MS);
    }
  }
  await sql.end();
}
