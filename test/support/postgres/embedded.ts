import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { patienceMs } from '../patience.ts';

const HOLDER = join(import.meta.dirname, 'embeddedHolder.ts');
const PROJECT = join(import.meta.dirname, '..', '..', '..');
const WAIT_LIMIT_MS = patienceMs(25_000);
const POLL_MS = 20;

/** Of a cluster that need not outlive a power failure; each start has three processes fewer. */
export const CHEAP = { fsync: 'off', io_method: 'sync' };

/** What a holder process said when it had started the cluster, or had not. */
export interface HolderAnswer {
  readonly url?: string;
  readonly logged?: string[];
  readonly error?: string;
  readonly message?: string;
}

export interface HolderOptions {
  readonly settings?: Record<string, string>;
  /** Where src/postgres/embedded/embedded.ts is taken from; default this project. */
  readonly project?: string;
  readonly uid?: number;
  readonly gid?: number;
}

/** Starts another process that starts the cluster of a data folder. It heads a process group of its own. */
export async function spawnHolder(
  dataDir: string,
  options: HolderOptions = {},
): Promise<{ child: ChildProcess; answer: HolderAnswer; ended: Promise<void> }> {
  const project = options.project ?? PROJECT;
  const embedded = pathToFileURL(join(project, 'src', 'postgres', 'embedded', 'embedded.ts')).href;
  const child = spawn(
    process.execPath,
    [HOLDER, embedded, dataDir, JSON.stringify({ ...CHEAP, ...options.settings })],
    {
      cwd: project,
      detached: true,
      stdio: ['pipe', 'pipe', 'inherit'],
      ...(options.uid !== undefined && { uid: options.uid }),
      ...(options.gid !== undefined && { gid: options.gid }),
    },
  );
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  const answer = await new Promise<HolderAnswer>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the holder ended with ${code} and said nothing`)));
    createInterface(child.stdout).once('line', (line) => resolve(JSON.parse(line) as HolderAnswer));
  });
  return { child, answer, ended };
}

/** Works on a database with one connection. */
export async function withSql<T>(url: string | undefined, work: (sql: Sql) => Promise<T>): Promise<T> {
  if (url === undefined) throw new Error('there is no cluster to work on');
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}

/** The processes that work in a folder, as those of Postgres do in that of their cluster. Linux only. */
export async function processesIn(folder: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const folders = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => null)));
  return pids.filter((_, index) => folders[index] === folder).map(Number);
}

/** Waits for something that must come true soon, and fails when it does not. */
export async function eventually(what: string, isTrue: () => Promise<boolean> | boolean): Promise<void> {
  const untilMs = Date.now() + WAIT_LIMIT_MS;
  while (!(await isTrue())) {
    if (Date.now() > untilMs) throw new Error(`not within ${WAIT_LIMIT_MS / 1000} s: ${what}`);
    await sleep(POLL_MS);
  }
}
