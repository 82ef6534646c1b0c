import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { access, chmod, mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from '../../lib/errors.ts';
import type { Log } from '../migrate.ts';
import { isSameFolder } from './folderLock.ts';

/** The folder of the cluster, its password and its log, and the account that Postgres runs as (null: that of this process). */
export interface DataFolder {
  readonly dir: string;
  readonly account: Account | null;
}

/** Left in the data folder when the cluster is elsewhere. The id is in both folders, and says that they belong together. */
interface Pointer {
  readonly place: string;
  readonly dataDir: string;
  readonly id: string;
}

const PLACES = '/var/lib/fleet-tracking-service';

/**
 * Finds or makes the folder of the cluster of a data folder (its real path), which the caller must have locked.
 *
 * It is the data folder itself, except for root where the account that Postgres has to run as cannot enter the
 * data folder (inside a home directory with mode 0700, for instance): then it is a folder of /var/lib named after the
 * data folder, and the data folder keeps a pointer to it.
 */
export async function findDataFolder(dataDir: string, log: Log): Promise<DataFolder> {
  const pointer = await readPointer(dataDir);
  if (process.getuid?.() !== 0) {
    if (!pointer) return { dir: dataDir, account: null };
    throw new Error(
      `The database of ${dataDir} was made by root and is in ${pointer.place}. ` +
        'Start as root, or remove the data folder to begin with an empty one.',
    );
  }
  if (pointer && (await isSameFolder(pointer.dataDir, dataDir))) return follow(pointer, dataDir);
  if (await exists(join(dataDir, 'cluster'))) return folderOfOwner(dataDir);
  const account = await findUnprivilegedAccount();
  if (await canEnter(account, dataDir)) return { dir: dataDir, account };
  return { dir: await makePlace(dataDir, log), account };
}

/** Postgres runs as the owner of the cluster, so root can also start a cluster that another user created. */
async function folderOfOwner(dir: string): Promise<DataFolder> {
  const cluster = await stat(join(dir, 'cluster'));
  const account = { name: `uid ${cluster.uid}`, uid: cluster.uid, gid: cluster.gid };
  if (await canEnter(account, dir)) return { dir, account };
  throw new Error(
    `The database in ${dir} belongs to user id ${account.uid}, who can no longer enter that folder. ` +
      'Give execute permission (chmod o+x) on it and on the folders above it.',
  );
}

async function follow(pointer: Pointer, dataDir: string): Promise<DataFolder> {
  if ((await readId(pointer.place)) !== pointer.id) {
    throw new Error(
      `The database of ${dataDir} was in ${pointer.place}, which is gone or belongs to another data folder now. ` +
        'Put it back, or remove the data folder to begin with an empty one.',
    );
  }
  const place = placeOf(dataDir);
  if (pointer.place !== place) {
    // The data folder was moved. The folder of its cluster moves too: a new data folder at the old path would find it.
    await setAside(place);
    await rename(pointer.place, place);
    await writePointer({ ...pointer, place, dataDir });
  }
  if (await exists(join(place, 'cluster'))) return folderOfOwner(place);
  return { dir: place, account: await findUnprivilegedAccount() };
}

async function makePlace(dataDir: string, log: Log): Promise<string> {
  const place = placeOf(dataDir);
  if (await setAside(place))
    log('set aside the database of a removed data folder', { place: `${place}.old` });
  await makePlaces();
  await mkdir(place);
  await chmod(place, 0o755); // mkdir's mode is cut by the umask, which may keep everybody else out
  const id = randomUUID();
  await writeFile(join(place, 'id'), id, { flush: true });
  await writePointer({ place, dataDir, id });
  return place;
}

/** The folder of root for what other accounts have to reach. */
export async function makePlaces(): Promise<string> {
  await mkdir(PLACES, { recursive: true });
  await chmod(PLACES, 0o711);
  return PLACES;
}

/** Renames a folder that no data folder points to. One such folder is kept. True if there was any. */
async function setAside(place: string): Promise<boolean> {
  if (!(await exists(place))) return false;
  await rm(`${place}.old`, { recursive: true, force: true });
  await rename(place, `${place}.old`);
  return true;
}

function placeOf(dataDir: string): string {
  return join(PLACES, createHash('sha256').update(dataDir).digest('hex').slice(0, 16));
}

async function readPointer(dataDir: string): Promise<Pointer | null> {
  const text = await readIfThere(join(dataDir, 'place.json'));
  return text === null ? null : (JSON.parse(text) as Pointer);
}

async function writePointer(pointer: Pointer): Promise<void> {
  const path = join(pointer.dataDir, 'place.json');
  await writeFile(`${path}.draft`, JSON.stringify(pointer), { flush: true });
  await rename(`${path}.draft`, path);
  await flushFolder(pointer.dataDir);
}

/** Writes the names in a folder to disk, as `flush` does with the content of a file, so that they survive a power cut. */
export async function flushFolder(dir: string): Promise<void> {
  const handle = await open(dir, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function readId(place: string): Promise<string | null> {
  return readIfThere(join(place, 'id'));
}

/** The text of a file; null when there is none. */
export async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/** Whether there is anything at that path. */
export async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

/** A user of the system that Postgres may run as. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

const PREFERRED = ['postgres', 'nobody'];

/**
 * The account to run Postgres as when this process is root, which Postgres does not allow: an existing one, since a bare
 * machine has no tool to add one. Throws when there is none.
 */
export async function findUnprivilegedAccount(): Promise<Account> {
  const accounts = parsePasswd(await readFile('/etc/passwd', 'utf8'));
  for (const name of PREFERRED) {
    const account = accounts.find((candidate) => candidate.name === name && candidate.uid > 0);
    if (account) return account;
  }
  throw new Error(
    `Postgres does not run as root, and /etc/passwd names neither of the accounts ${PREFERRED.join(', ')}. ` +
      'Start the service as another user, or set DATABASE_URL.',
  );
}

/** Lines of passwd(5): name:password:uid:gid:comment:home:shell. */
function parsePasswd(text: string): Account[] {
  return text
    .split('\n')
    .map((line) => line.split(':'))
    .filter((fields) => fields.length >= 4)
    .map((fields) => ({ name: fields[0] ?? '', uid: Number(fields[2]), gid: Number(fields[3]) }));
}

/** Whether the account can enter a folder: asked of the system, since ACLs and mounts have their say too. */
export function canEnter(account: Account, folder: string): Promise<boolean> {
  return runsQuietly('/bin/sh', ['-c', 'cd "$1"', 'sh', folder], account);
}

/** Whether a program runs to its end with exit code 0, as that account if one is given. */
export function runsQuietly(
  program: string,
  args: readonly string[],
  account: Account | null,
): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: '/',
      stdio: 'ignore',
      ...(account && { uid: account.uid, gid: account.gid }),
    });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}
