import { readdir, readFile } from 'node:fs/promises';
import type { Sql } from '../src/store/sql.ts';

/** Of Linux' /proc, whatever the processor. */
const TICK_US = 10_000;

/**
 * Processor time of the Postgres that `sql` talks to, all its processes together since they began, in microseconds;
 * null where it does not run on this machine.
 */
export async function postgresCpuUs(sql: Sql): Promise<number | null> {
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const backend = await statOf(String(row?.pid));
  if (backend === null || backend.name !== 'postgres') return null;
  const postmaster = await statOf(String(backend.parent));
  if (postmaster === null) return null;
  const stats = await Promise.all((await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(statOf));
  const children = stats.filter((stat) => stat?.parent === backend.parent);
  const ticks = children.reduce((sum, stat) => sum + (stat?.ticks ?? 0), 0);
  return (ticks + postmaster.ticks + postmaster.endedTicks) * TICK_US;
}

/** Of a process: proc(5), /proc/pid/stat. `endedTicks` are those of its children that have ended. */
async function statOf(pid: string) {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null); // it has ended meanwhile
  if (text === null) return null;
  const end = text.lastIndexOf(')');
  const fields = text
    .slice(end + 2)
    .split(' ')
    .map(Number);
  const sum = (at: number) => (fields[at] ?? 0) + (fields[at + 1] ?? 0);
  return {
    name: text.slice(text.indexOf('(') + 1, end),
    parent: fields[1],
    ticks: sum(11),
    endedTicks: sum(13),
  };
}
