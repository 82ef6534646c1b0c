import { readFileSync } from 'node:fs';
import { hasCode } from '../../lib/hasCode.ts';

/** Names one process of one machine for good: a pid alone is given to another process later. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks from boot to the start of the process; null where the system has no /proc. */
  readonly startTicks: string | null;
  /** Changes with every boot; null where the system has no /proc. */
  readonly bootId: string | null;
}

export function thisProcess(): ProcessIdentity {
  return { pid: process.pid, startTicks: readStat(process.pid)?.startTicks ?? null, bootId: readBootId() };
}

/**
 * Whether that very process still runs. A pid that now belongs to another process, one from before the last
 * boot and a zombie (killed, not yet collected by its parent) count as gone.
 */
export function isAlive(identity: ProcessIdentity): boolean {
  if (!pidExists(identity.pid)) return false;
  const stat = readStat(identity.pid);
  if (!stat) return true; // no /proc, or hidden from this user: the pid is all there is to go by
  if (stat.state === 'Z' || stat.state === 'X') return false;
  if (identity.bootId !== null && identity.bootId !== readBootId()) return false;
  return identity.startTicks === null || identity.startTicks === stat.startTicks;
}

/** Whether any process has this pid (signal 0 asks without sending; EPERM: it runs as another user). */
function pidExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return hasCode(error, 'EPERM');
  }
}

function readStat(pid: number): { state: string; startTicks: string } | null {
  const text = readIfThere(`/proc/${pid}/stat`);
  if (text === null) return null;
  // proc(5): "pid (name) state ppid …"; the name may hold blanks and brackets. Start time is field 22.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', startTicks: fields[19] ?? '' };
}

function readBootId(): string | null {
  return readIfThere('/proc/sys/kernel/random/boot_id')?.trim() ?? null;
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return null;
    throw error;
  }
}
