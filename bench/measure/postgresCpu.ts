import { readdir, readFile } from 'node:fs/promises';
import type { Sql } from '../../src/postgres/sql.ts';

const TICK_US = 10_000;

/** Processor time of all processes of the Postgres of `sql` so far. Null when it runs on another machine. */
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

/** Reads /proc/pid/stat, see proc(5). `endedTicks` are those of its ended children. */
async function statOf(pid: string) {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null); // the process has ended
  if (text === null) return null;
  const end = text.lastIndexOf(')');
  const fields = text
    .slice(end + 2)
    .split(' ')
    .map(Number);
  const sum = (at: number) => (fields[at] ?? 0) + (fields[at + 1] ?? 0);
  const name = text.slice(text.indexOf('(') + 1, end);
  return { name, parent: fields[1], ticks: sum(11), endedTicks: sum(13) };
}
