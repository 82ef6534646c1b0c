import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { chown, link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { hasCode } from '../../lib/errors.ts';
import { parseJsonText } from '../../lib/parseText.ts';

/** A service keeps its data folder for as long as it runs, a command only for one piece of work. */
export type HolderKind = 'service' | 'command';

/** Who uses a data folder. The port and the folder of the cluster are known once it accepts connections. */
export interface Holder extends ProcessIdentity {
  readonly kind: HolderKind;
  readonly sinceMs: number;
  readonly dataDir: string;
  readonly cluster: { readonly port: number; readonly dir: string } | null;
  readonly released: boolean;
}

/** The right to use a data folder, until released or until the process ends, however it ends. */
export interface FolderLock {
  /** Lets other processes find where the cluster listens. */
  publish(cluster: { port: number; dir: string }): Promise<void>;
  release(): Promise<void>;
}

const ATTEMPTS = 1000;

/**
 * Takes the data folder (its real path), or says who has it. Of any number of calls at the same instant exactly
 * one wins; a process that was killed has nothing.
 *
 * The folder `holder` has numbered records, the highest counts. To take the folder over from number n, whose
 * process is gone, is to create n + 1, which the system lets only one process do. The highest record is never
 * removed, only lower ones, so a process that was stopped between reading n and creating n + 1 finds either its
 * number taken or a higher one beside it, and gives up.
 */
export async function lockFolder(
  dataDir: string,
  kind: HolderKind,
): Promise<{ lock: FolderLock } | { holder: Holder }> {
  const folder = join(dataDir, 'holder');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await inheritOwner(folder, dataDir);
  const mine: Holder = {
    ...thisProcess(),
    kind,
    sinceMs: Date.now(),
    dataDir,
    cluster: null,
    released: false,
  };
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const latest = await readLatest(folder);
    if (latest === 'changing') continue;
    if (latest?.holder && (await isHolder(latest.holder, dataDir))) return { holder: latest.holder };
    const number = (latest?.number ?? 0) + 1;
    if (!(await create(folder, number, mine))) continue;
    if ((await listNumbers(folder)).at(-1) === number) {
      await removeOthers(folder, number);
      return { lock: createLock(folder, number, mine) };
    }
    await rm(recordPath(folder, number), { force: true });
  }
  throw new Error(`${folder} changed ${ATTEMPTS} times while this process tried to take it`);
}

/** The living process that has the data folder (its real path), or null. */
export async function readHolder(dataDir: string): Promise<Holder | null> {
  const folder = join(dataDir, 'holder');
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const latest = await readLatest(folder);
    if (latest === 'changing') continue;
    return latest?.holder && (await isHolder(latest.holder, dataDir)) ? latest.holder : null;
  }
  throw new Error(`${folder} changed ${ATTEMPTS} times while this process tried to read it`);
}

/**
 * Whether `recordedDir`, the path a file of this data folder was written for, is this folder (perhaps moved
 * since), and not another one that this is a copy of.
 */
export async function isSameFolder(recordedDir: string, dataDir: string): Promise<boolean> {
  if (recordedDir === dataDir) return true;
  try {
    const [recorded, own] = await Promise.all([stat(recordedDir), stat(dataDir)]);
    return recorded.dev === own.dev && recorded.ino === own.ino;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return true;
    throw error;
  }
}

async function isHolder(holder: Holder, dataDir: string): Promise<boolean> {
  return !holder.released && isAlive(holder) && (await isSameFolder(holder.dataDir, dataDir));
}

function createLock(folder: string, number: number, mine: Holder): FolderLock {
  let current = mine;
  const write = async (change: Partial<Holder>): Promise<void> => {
    current = { ...current, ...change };
    const draft = join(folder, `${number}.draft`);
    await writeRecord(draft, current);
    await rename(draft, recordPath(folder, number));
  };
  return {
    publish: (cluster) => write({ cluster }),
    release: () => write({ cluster: null, released: true }),
  };
}

/** False when the number is taken, or the draft was removed by another process that took the folder. */
async function create(folder: string, number: number, holder: Holder): Promise<boolean> {
  const draft = join(folder, `${randomUUID()}.draft`);
  try {
    await writeRecord(draft, holder);
    await link(draft, recordPath(folder, number)); // whole content at once, and only if the name is free
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST', 'ENOENT')) return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

async function writeRecord(path: string, holder: Holder): Promise<void> {
  await writeFile(path, JSON.stringify(holder), { mode: 0o600 });
  await inheritOwner(path, dirname(path));
}

/** What root leaves in the data folder of another user must not lock that user out. */
async function inheritOwner(path: string, from: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await stat(from);
  await chown(path, uid, gid);
}

async function readLatest(
  folder: string,
): Promise<{ number: number; holder: Holder | null } | null | 'changing'> {
  const number = (await listNumbers(folder)).at(-1);
  if (number === undefined) return null;
  try {
    return { number, holder: parseHolder(await readFile(recordPath(folder, number), 'utf8')) };
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 'changing';
    throw error;
  }
}

/** Null when a power cut left an empty file: records are not flushed, since they mean nothing after a restart. */
function parseHolder(text: string): Holder | null {
  return (parseJsonText(text) ?? null) as Holder | null;
}

async function listNumbers(folder: string): Promise<number[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  });
  return names
    .filter((name) => name.endsWith('.json'))
    .map((name) => Number.parseInt(name, 10))
    .sort((a, b) => a - b);
}

async function removeOthers(folder: string, number: number): Promise<void> {
  for (const name of await readdir(folder)) {
    if (name !== `${number}.json`) await rm(join(folder, name), { force: true });
  }
}

function recordPath(folder: string, number: number): string {
  return join(folder, `${number}.json`);
}

/** Names one process of one machine for good: a pid alone is given to another process later. */
interface ProcessIdentity {
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
