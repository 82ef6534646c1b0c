import { randomBytes } from 'node:crypto';
import { chown, mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Binaries } from './binaries.ts';
import { type DataFolder, exists, flushFolder } from './dataFolder.ts';
import { spawnWatched, type Watched } from './watchdog.ts';

const SUPERUSER = 'fleet';
const LOG_LINES_QUOTED = 15;

/**
 * Makes the cluster `folder.dir/cluster` with initdb, unless it is there. An interrupted initdb leaves only a draft,
 * which the next one removes. With `durable` (always, but for tests) everything is on disk before this returns:
 * the first acknowledged commit must survive a power cut, and its log is worth nothing without these files.
 */
export async function createCluster(folder: DataFolder, binaries: Binaries, durable: boolean): Promise<void> {
  await removeDrafts(folder.dir);
  const draft = `cluster-draft-${randomBytes(6).toString('hex')}`;
  const path = join(folder.dir, draft);
  await mkdir(path, { mode: 0o700 });
  await give(path, folder);
  const password = await writePassword(folder);
  const args = [
    `--pgdata=${path}`,
    `--username=${SUPERUSER}`,
    `--pwfile=${password}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
  ];
  const initdb = await runInFolder(folder, binaries.initdb, args);
  const outcome = await initdb.ended;
  if (outcome !== 0) {
    throw new Error(`initdb failed (${outcome}).\n${await tailOfLog(folder)}`);
  }
  await rename(path, join(folder.dir, 'cluster'));
  if (durable) await flushFolder(folder.dir);
}

/** Starts a program of Postgres as the account of the cluster; its output replaces the log of the last run. */
export async function runInFolder(
  folder: DataFolder,
  program: string,
  args: readonly string[],
): Promise<Watched> {
  const log = await open(logPath(folder), 'w', 0o600);
  try {
    await give(logPath(folder), folder);
    return await spawnWatched(program, args, {
      cwd: folder.dir, // a folder that the account can enter: Postgres asks for its working directory
      logFd: log.fd,
      account: folder.account,
      // Nothing else: PGDATA, PGPORT and their kind would change what starts.
      env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
    });
  } finally {
    await log.close();
  }
}

/** The last lines that Postgres wrote, for a message. */
export async function tailOfLog(folder: DataFolder): Promise<string> {
  if (!(await exists(logPath(folder)))) return `${logPath(folder)} is gone.`;
  const lines = (await readFile(logPath(folder), 'utf8')).trimEnd().split('\n');
  return [`The last lines of ${logPath(folder)}:`, ...lines.slice(-LOG_LINES_QUOTED)].join('\n');
}

/** The address of the cluster in a folder, which listens on a port of 127.0.0.1. */
export async function urlOf(dataFolderDir: string, port: number): Promise<string> {
  const password = await readFile(passwordPath(dataFolderDir), 'utf8');
  return `postgres://${SUPERUSER}:${password.trim()}@127.0.0.1:${port}/postgres`;
}

/**
 * The password is beside the cluster, in a file that only the account of the cluster (and root) can read: the two
 * are lost or kept together, and who can read the file could read the cluster anyway. It is safe in a URL.
 */
async function writePassword(folder: DataFolder): Promise<string> {
  const path = passwordPath(folder.dir);
  if (!(await exists(path))) {
    const draft = `${path}.draft`;
    await rm(draft, { force: true });
    await writeFile(draft, randomBytes(24).toString('base64url'), { mode: 0o600, flush: true });
    await rename(draft, path);
  }
  await give(path, folder);
  return path;
}

async function give(path: string, folder: DataFolder): Promise<void> {
  if (folder.account) await chown(path, folder.account.uid, folder.account.gid);
}

async function removeDrafts(dataFolderDir: string): Promise<void> {
  for (const name of await readdir(dataFolderDir)) {
    if (name.startsWith('cluster-draft-'))
      await rm(join(dataFolderDir, name), { recursive: true, force: true, maxRetries: 10 });
  }
}

function passwordPath(dataFolderDir: string): string {
  return join(dataFolderDir, 'postgres-password');
}

function logPath(folder: DataFolder): string {
  return join(folder.dir, 'postgres.log');
}
