import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../migrate.ts';
import type { Binaries } from './binaries.ts';
import { runInFolder, tailOfLog } from './cluster.ts';
import type { DataFolder } from './dataFolder.ts';
import { finishPrevious, readPidFile } from './previous.ts';
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
    else if (portAttempt < PORT_ATTEMPTS && !(await isFree(port))) portAttempt++;
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

/** Whether somebody could still listen on the port: it may have been taken since it was found. */
function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
