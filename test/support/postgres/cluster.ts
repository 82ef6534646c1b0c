import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { deliveryWeeks } from '../../../src/housekeeping.ts';
import type { Binaries } from '../../../src/postgres/embedded/binaries.ts';
import { createCluster } from '../../../src/postgres/embedded/cluster.ts';
import { type DataFolder, exists, findDataFolder } from '../../../src/postgres/embedded/dataFolder.ts';
import { type Embedded, startEmbedded } from '../../../src/postgres/embedded/embedded.ts';
import type { Settings } from '../../../src/postgres/embedded/server.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { DELIVERIES, ensureWeeks } from '../../../src/postgres/partitions.ts';
import { openSql } from '../../../src/postgres/sql.ts';
import { identifier } from '../../../src/postgres/sqlText.ts';

const TEMPLATE = 'fleet_template';
const run = promisify(execFile);
const MEMORY_FOLDER = '/dev/shm';
const MEMORY_NEEDED_BYTES = 4 * 1024 ** 3;

export interface TestCluster {
  /** A database of the cluster to send `create database` to. */
  readonly adminUrl: string;
  /** The name of a database with all migrations applied. */
  readonly template: string;
  /** A folder with the files of a cluster that was migrated and stopped, to copy: making them takes seconds. */
  readonly files: string;
  /** Settles with an error when the cluster ends before `stop`. */
  readonly exited: Promise<Error | null>;
  stop(): Promise<void>;
}

/** Starts a cluster whose databases need not outlive a power failure, in a folder that `stop` removes. */
export async function startTestCluster(): Promise<TestCluster> {
  const dataDir = await makeDataDir();
  const settings = {
    fsync: 'off',
    full_page_writes: 'off',
    shared_buffers: '128MB',
    max_wal_size: '128MB',
    wal_compression: 'off',
    hba_file: await writeTrust(dataDir),
  };
  const start = (others: Settings) =>
    startEmbedded({ dataDir, log: () => undefined, settings: { ...settings, ...others } });
  // A replica can start from the files, and needs as many connections as they have been used with. The log is copied too.
  const files = await makeFiles(dataDir, () => start({ wal_level: 'replica', min_wal_size: '32MB' }));
  const embedded = await start({ max_connections: '300' }); // three test files at a time, each with several pods
  const stop = async (): Promise<void> => {
    await embedded.stop();
    await removeDataDir(dataDir);
  };
  try {
    await createTemplate(embedded.url);
  } catch (error) {
    await stop();
    throw error;
  }
  return { adminUrl: embedded.url, template: TEMPLATE, files, exited: embedded.exited, stop };
}

/** Who says to be this user is asked for a password, and there is none that is right. */
export const REFUSED_USER = 'refused';

/**
 * Writes the setting `hba_file` of a cluster that asks nobody else for a password, and returns its path: a password costs
 * 5 ms of processor time for each of thousands of connections.
 */
export async function writeTrust(dataDir: string): Promise<string> {
  const path = join(dataDir, 'trusted.conf');
  await writeFile(
    path,
    `host all ${REFUSED_USER} 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n`,
  );
  return path;
}

/** A new folder, in memory if possible, that the account which Postgres runs as may enter unless `mode` says otherwise. */
export async function makeDataDir(mode = 0o755): Promise<string> {
  return makeFolder(await findFastFolder(), mode);
}

/** A new folder on disk, for programs: what is in memory may not be executable. */
export function makeProjectDir(mode = 0o755): Promise<string> {
  return makeFolder(tmpdir(), mode);
}

async function makeFolder(parent: string, mode: number): Promise<string> {
  const dir = await realpath(await mkdtemp(join(parent, 'fleet-test-')));
  await chmod(dir, mode);
  return dir;
}

/** Removes a data folder, and the folder of its cluster where that is elsewhere. */
export async function removeDataDir(dataDir: string): Promise<void> {
  const pointer = join(dataDir, 'place.json');
  if (await exists(pointer)) {
    const { place } = JSON.parse(await readFile(pointer, 'utf8')) as { place: string };
    await rm(place, { recursive: true, force: true });
  }
  await rm(dataDir, { recursive: true, force: true });
}

/** The address of another database of the same cluster. */
export function databaseUrl(adminUrl: string, database: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${database}`;
  return url.href;
}

/** Memory where there is plenty of it: a database has 300 files, and making files is slow on some disks. */
async function findFastFolder(): Promise<string> {
  if (!(await exists(MEMORY_FOLDER))) return tmpdir();
  const { bavail, bsize } = await statfs(MEMORY_FOLDER);
  return bavail * bsize >= MEMORY_NEEDED_BYTES ? MEMORY_FOLDER : tmpdir();
}

/** Makes the files to copy, of a cluster whose first database is migrated. */
async function makeFiles(dataDir: string, start: () => Promise<Embedded>): Promise<string> {
  const embedded = await start();
  await migrateAll(embedded.url).finally(embedded.stop);
  const { dir } = await findDataFolder(dataDir, () => undefined);
  const files = join(dataDir, 'files');
  await mkdir(files);
  await run('cp', ['-a', join(dir, 'cluster'), join(dir, 'postgres-password'), files]);
  return files;
}

/** Makes the cluster of a data folder: a copy of the migrated one of this run, else an empty one. */
export async function makeCluster(folder: DataFolder, binaries: Binaries): Promise<void> {
  const files = process.env['FLEET_TEST_CLUSTER_FILES'];
  if (files === undefined) await createCluster(folder, binaries, false);
  else await run('cp', ['-a', `${files}/.`, folder.dir]);
}

/** It is migrated under the start of the server that its copies are used under: tests count starts. */
async function createTemplate(adminUrl: string): Promise<void> {
  const admin = openSql(adminUrl, { maxConnections: 1, name: 'test template' });
  try {
    await admin`create database ${identifier(TEMPLATE)}`;
    await migrateAll(databaseUrl(adminUrl, TEMPLATE));
    await admin`alter database ${identifier(TEMPLATE)} allow_connections false`; // who copies needs it to be unused
  } finally {
    await admin.end();
  }
}

async function migrateAll(url: string): Promise<void> {
  const sql = openSql(url, { maxConnections: 1, name: 'test template' });
  try {
    await migrate(sql, () => undefined);
    await ensureWeeks(sql, DELIVERIES, deliveryWeeks(Date.now())); // else each start of a pod spends 20 ms on them
  } finally {
    await sql.end();
  }
}
