import { randomBytes } from 'node:crypto';
import { chown, mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Binaries } from './embeddedBinaries.ts';
import { type Guarded, spawnGuarded } from './embeddedGuard.ts';
import { exists, flushFolder, type Home } from './embeddedHome.ts';

const SUPERUSER = 'fleet';
const LOG_LINES_QUOTED = 15;

/**
 * Makes the cluster `home.dir/cluster` with initdb, unless it is there. An interrupted initdb leaves only a draft,
 * which the next one removes. With `durable` (always, but for tests) everything is on disk before this returns:
 * the first acknowledged commit must survive a power failure, and its log is worth nothing without these files.
 */
export async function createCluster(home: Home, binaries: Binaries, durable: boolean): Promise<void> {
  await removeDrafts(home.dir);
  const draft = `cluster-draft-${randomBytes(6).toString('hex')}`;
  const path = join(home.dir, draft);
  await mkdir(path, { mode: 0o700 });
  await give(path, home);
  const password = await writePassword(home);
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
  const initdb = await runInHome(home, binaries.initdb, args);
  const outcome = await initdb.ended;
  if (outcome !== 0) {
    throw new Error(`initdb failed (${outcome}).\n${await tailOfLog(home)}`);
  }
  await rename(path, join(home.dir, 'cluster'));
  if (durable) await flushFolder(home.dir);
}

/** Starts a program of Postgres as the account of the home; its output goes to a log that begins anew. */
export async function runInHome(home: Home, program: string, args: readonly string[]): Promise<Guarded> {
  const log = await open(logPath(home), 'w', 0o600);
  try {
    await give(logPath(home), home);
    return await spawnGuarded(program, args, {
      cwd: home.dir, // a folder that the account can enter: Postgres asks for its working directory
      logFd: log.fd,
      account: home.account,
      // Nothing else: PGDATA, PGPORT and their kind would change what starts.
      env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
    });
  } finally {
    await log.close();
  }
}

/** The last lines that Postgres wrote, for a message. */
export async function tailOfLog(home: Home): Promise<string> {
  if (!(await exists(logPath(home)))) return `${logPath(home)} is gone.`;
  const lines = (await readFile(logPath(home), 'utf8')).trimEnd().split('\n');
  return [`The last lines of ${logPath(home)}:`, ...lines.slice(-LOG_LINES_QUOTED)].join('\n');
}

/** The address of the cluster of a home that listens on a port of 127.0.0.1. */
export async function urlOf(homeDir: string, port: number): Promise<string> {
  const password = await readFile(passwordPath(homeDir), 'utf8');
  return `postgres://${SUPERUSER}:${password.trim()}@127.0.0.1:${port}/postgres`;
}

/**
 * The password is beside the cluster, in a file that only the account of the home (and root) can read: the two
 * are lost or kept together, and who can read the file could read the cluster anyway. It is safe in a URL.
 */
async function writePassword(home: Home): Promise<string> {
  const path = passwordPath(home.dir);
  if (!(await exists(path))) {
    const draft = `${path}.draft`;
    await rm(draft, { force: true });
    await writeFile(draft, randomBytes(24).toString('base64url'), { mode: 0o600, flush: true });
    await rename(draft, path);
  }
  await give(path, home);
  return path;
}

async function give(path: string, home: Home): Promise<void> {
  if (home.account) await chown(path, home.account.uid, home.account.gid);
}

async function removeDrafts(homeDir: string): Promise<void> {
  for (const name of await readdir(homeDir)) {
    if (name.startsWith('cluster-draft-'))
      await rm(join(homeDir, name), { recursive: true, force: true, maxRetries: 10 });
  }
}

function passwordPath(homeDir: string): string {
  return join(homeDir, 'postgres-password');
}

function logPath(home: Home): string {
  return join(home.dir, 'postgres.log');
}
