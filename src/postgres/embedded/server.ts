import { readFile, readlink, realpath, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode } from '../../lib/errors.ts';
import type { Log } from '../migrate.ts';
import type { Binaries } from './binaries.ts';
import { runInFolder, tailOfLog } from './cluster.ts';
import { type DataFolder, exists } from './dataFolder.ts';
import { isAlive } from './folderLock.ts';
import type { Watched } from './watchdog.ts';

/** Settings of postgresql.conf by name. */
export type Settings = Readonly<Record<string, string>>;

/** A Postgres that accepts connections on a port of 127.0.0.1. */
export interface Server {
  readonly port: number;
  readonly process: Watched;
}

/** For a small service on a machine it shares. Acknowledged is durable: fsync and synchronous_commit stay on. */
const SETTINGS: Settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '', // nothing in /tmp, and nobody but TCP clients with the password
  max_connections: '100',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '256MB',
  effective_cache_size: '1GB',
  maintenance_work_mem: '128MB',
  random_page_cost: '1.1', // solid state
  jit: 'off', // costs more than it gives on short queries
  wal_level: 'minimal', // no replicas
  max_wal_senders: '0',
  wal_compression: 'on',
  max_wal_size: '1GB', // also what a recovery has to read at most, about
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  log_min_messages: 'log', // what clients get as an answer would fill the file
};

const POLL_MS = 10;
const READY_LIMIT_MS = 300_000; // a recovery after a crash reads up to max_wal_size
const LEFTOVER_LIMIT_MS = 1_000;
const LEFTOVER_AFTER_CRASH_LIMIT_MS = 10_000;
const PORT_ATTEMPTS = 5;

/**
 * Starts Postgres on the cluster of a folder, after the one before has finished, if one is left. The caller has locked
 * the data folder. Throws with the last lines of the log when Postgres ends instead of accepting connections.
 */
export async function startServer(
  folder: DataFolder,
  binaries: Binaries,
  settings: Settings,
  log: Log,
): Promise<Server> {
  const cluster = join(folder.dir, 'cluster');
  const crashed = await finishPrevious(cluster, log);
  // Postgres refuses to start beside processes of its predecessor. Those whose head was killed take a moment to
  // notice it, and one that was killed with its service while it started has not written its pid yet.
  const leftoverUntilMs = Date.now() + (crashed ? LEFTOVER_AFTER_CRASH_LIMIT_MS : LEFTOVER_LIMIT_MS);
  for (let portAttempt = 1; ; ) {
    const port = await findFreePort();
    const process = await runInFolder(
      folder,
      binaries.postgres,
      toArguments(cluster, { ...SETTINGS, ...settings, port: String(port) }),
    );
    const outcome = await whenReady(cluster, process);
    if (outcome === 'ready') {
      if (crashed) log('embedded Postgres recovered from a crash');
      return { port, process };
    }
    if (Date.now() < leftoverUntilMs) await sleep(POLL_MS * 10);
    // The port may have been taken since it was found.
    else if (portAttempt < PORT_ATTEMPTS && !(await isPortFree(port, '127.0.0.1'))) portAttempt++;
    else throw new Error(`Postgres did not start (${outcome}).\n${await tailOfLog(folder)}`);
  }
}

function toArguments(cluster: string, settings: Settings): string[] {
  return ['-D', cluster, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/** Waits for the state `ready` in the pid file, which Postgres writes for this very purpose (as pg_ctl does). */
async function whenReady(cluster: string, process: Watched): Promise<'ready' | string> {
  let outcome: string | null = null;
  const ended = process.ended.then((how) => {
    outcome = `ended with ${how}`;
  });
  const untilMs = Date.now() + READY_LIMIT_MS;
  while (Date.now() < untilMs && outcome === null) {
    const file = await readPidFile(cluster);
    if (file?.pid === process.pid && file.state === 'ready') return 'ready';
    await Promise.race([ended, sleep(POLL_MS)]);
  }
  await process.stop();
  return outcome ?? `not ready after ${READY_LIMIT_MS / 1000} s`;
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

/** Whether this process could listen there. */
export function isPortFree(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}

const PREVIOUS_LIMIT_MS = 30_000;
/** The signals for a leftover Postgres, by the time since it was found. */
const SIGNALS: readonly { readonly signal: NodeJS.Signals; readonly afterMs: number }[] = [
  { signal: 'SIGINT', afterMs: 0 },
  { signal: 'SIGQUIT', afterMs: 10_000 },
  { signal: 'SIGKILL', afterMs: 20_000 },
];

/**
 * Waits until the Postgres that a killed process has left on a cluster has ended: its watchdog stops it, and so does
 * this, in case the watchdog was killed too. The caller has locked the data folder, so nobody uses that Postgres.
 * True when it left the cluster as after a crash. Throws when it does not end.
 */
async function finishPrevious(cluster: string, log: Log): Promise<boolean> {
  const pid = (await readPidFile(cluster))?.pid;
  if (pid === undefined) return false;
  const startMs = Date.now();
  const pending = [...SIGNALS];
  let owner = await ownerOf(pid, cluster);
  if (owner === 'cluster' || owner === 'unknown') log('waiting for the previous Postgres to end', { pid });
  while (owner === 'cluster' || owner === 'unknown') {
    const elapsedMs = Date.now() - startMs;
    if (elapsedMs > PREVIOUS_LIMIT_MS) {
      throw new Error(
        `The previous Postgres on ${cluster} (process ${pid}) does not end. Stop it and start again.`,
      );
    }
    if (owner === 'cluster' && pending[0] && elapsedMs >= pending[0].afterMs) {
      sendSignal(pid, pending[0].signal);
      pending.shift();
    }
    await sleep(POLL_MS);
    owner = await ownerOf(pid, cluster);
  }
  const crashed = await exists(join(cluster, 'postmaster.pid'));
  // Postgres would take another process with its predecessor's pid for the predecessor, and never start.
  if (owner === 'another') await rm(join(cluster, 'postmaster.pid'), { force: true });
  return crashed;
}

/** The pid and state that the running (or crashed) Postgres of a cluster recorded; null when it ended properly. */
async function readPidFile(cluster: string): Promise<{ pid: number; state: string } | null> {
  try {
    const lines = (await readFile(join(cluster, 'postmaster.pid'), 'utf8')).split('\n');
    // Line 1 is the pid, line 8 the state (utils/pidfile.h in the source of Postgres).
    const pid = Number(lines[0]);
    return Number.isInteger(pid) && pid > 0 ? { pid, state: lines[7]?.trim() ?? '' } : null;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/**
 * Which process has that pid now. Postgres works in the folder of its cluster, which Linux shows; elsewhere it is unknown.
 */
async function ownerOf(pid: number, cluster: string): Promise<'cluster' | 'another' | 'unknown' | 'nobody'> {
  if (!isAlive({ pid, startTicks: null, bootId: null })) return 'nobody';
  if (!(await exists('/proc/self/cwd'))) return 'unknown';
  try {
    return (await readlink(`/proc/${pid}/cwd`)) === (await realpath(cluster)) ? 'cluster' : 'another';
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return 'nobody';
    if (hasCode(error, 'EACCES', 'EPERM')) return 'another'; // not ours to look at, so not started by us
    throw error;
  }
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}
