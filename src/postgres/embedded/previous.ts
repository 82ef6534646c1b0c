import { readFile, readlink, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode } from '../../lib/hasCode.ts';
import type { Log } from '../migrate.ts';
import { exists } from './dataFolder.ts';
import { isAlive } from './process.ts';

const POLL_MS = 20;
const LIMIT_MS = 30_000;
/** What a Postgres that nobody needs any more is sent, by the time since the first look at it. */
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
export async function finishPrevious(cluster: string, log: Log): Promise<boolean> {
  const pid = (await readPidFile(cluster))?.pid;
  if (pid === undefined) return false;
  const startMs = Date.now();
  const pending = [...SIGNALS];
  let owner = await ownerOf(pid, cluster);
  if (owner === 'cluster' || owner === 'unknown') log('waiting for the previous Postgres to end', { pid });
  while (owner === 'cluster' || owner === 'unknown') {
    const elapsedMs = Date.now() - startMs;
    if (elapsedMs > LIMIT_MS) {
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
export async function readPidFile(cluster: string): Promise<{ pid: number; state: string } | null> {
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

/** Who has that pid now. Postgres works in the folder of its cluster, which Linux shows; elsewhere it is unknown. */
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
