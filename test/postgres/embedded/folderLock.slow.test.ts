import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fsPromises, { cp, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, test } from 'node:test';
import {
  type FolderLock,
  lockFolder,
  readHolder,
  thisProcess,
} from '../../../src/postgres/embedded/folderLock.ts';
import { makeDataDir, removeDataDir } from '../../support/postgres/cluster.ts';
import { eventually } from '../../support/postgres/embedded.ts';

const HIGHEST_PID = 2 ** 22; // of Linux; no process ever has it
const withoutProc = process.platform !== 'linux' && 'needs the /proc of Linux';

async function take(dataDir: string): Promise<FolderLock | null> {
  const outcome = await lockFolder(dataDir, 'service');
  return 'lock' in outcome ? outcome.lock : null;
}

async function leaveRecord(dataDir: string, record: unknown): Promise<void> {
  await mkdir(join(dataDir, 'holder'), { recursive: true });
  const text = typeof record === 'string' ? record : JSON.stringify(record);
  await writeFile(join(dataDir, 'holder', '7.json'), text);
}

describe('the lock of a data folder', () => {
  test('goes to exactly one of many who ask at the same instant, again and again', async (t) => {
    const dataDir = await makeDataDir();
    t.after(() => removeDataDir(dataDir));
    for (let round = 0; round < 30; round++) {
      const locks = await Promise.all(Array.from({ length: 12 }, () => take(dataDir)));
      const winners = locks.filter((lock) => lock !== null);
      assert.equal(winners.length, 1, `round ${round}`);
      await winners[0]?.release();
    }
    assert.equal((await readdir(join(dataDir, 'holder'))).length, 1, 'nothing piles up');
  });

  test('is kept against everybody until it is released', async (t) => {
    const dataDir = await makeDataDir();
    t.after(() => removeDataDir(dataDir));
    const lock = await take(dataDir);
    await lock?.publish({ port: 1234, dir: '/somewhere' });
    assert.equal(await take(dataDir), null);
    assert.deepEqual((await readHolder(dataDir))?.cluster, { port: 1234, dir: '/somewhere' });
    await lock?.release();
    assert.equal(await readHolder(dataDir), null);
    assert.notEqual(await take(dataDir), null);
  });

  test('is not given to one that slept while it changed hands twice', async (t) => {
    const dataDir = await makeDataDir();
    t.after(() => removeDataDir(dataDir));
    await (await take(dataDir))?.release();
    let lock: FolderLock | null = null;
    const write = fsPromises.writeFile;
    // Between looking who has the folder and writing down that it takes it, the sleeper misses two others.
    const asleep = t.mock.method(fsPromises, 'writeFile', async (...args: Parameters<typeof write>) => {
      asleep.mock.restore();
      syncBuiltinESMExports();
      await (await take(dataDir))?.release();
      lock = await take(dataDir);
      return write(...args);
    });
    syncBuiltinESMExports(); // so that named imports see it
    assert.equal(await take(dataDir), null);
    assert.notEqual(lock, null);
    assert.deepEqual(await readdir(join(dataDir, 'holder')), ['3.json'], 'what it wrote is gone');
  });

  const gone: [string, (dataDir: string) => object | string, (string | false)?][] = [
    ['a process that is gone', (dataDir) => ({ ...recordOf(dataDir), pid: HIGHEST_PID, startTicks: null })],
    [
      'a process whose pid another one has now',
      (dataDir) => ({ ...recordOf(dataDir), startTicks: '1' }),
      withoutProc,
    ],
    [
      'a process from before the last boot',
      (dataDir) => ({ ...recordOf(dataDir), bootId: 'other' }),
      withoutProc,
    ],
    ['a process that has released it', (dataDir) => ({ ...recordOf(dataDir), released: true })],
    ['a record that a power failure left empty', () => ''],
    ['a record of zeros', () => '\0\0\0\0'],
    ['a process of the folder that this one is a copy of', () => recordOf('/')],
  ];
  for (const [name, record, skip = false] of gone) {
    test(`is free after ${name}`, { skip }, async (t) => {
      const dataDir = await makeDataDir();
      t.after(() => removeDataDir(dataDir));
      await leaveRecord(dataDir, record(dataDir));
      assert.equal(await readHolder(dataDir), null);
      assert.notEqual(await take(dataDir), null);
    });
  }

  test('is free after a process that is dead but not yet collected by its parent', {
    skip: withoutProc,
  }, async (t) => {
    const dataDir = await makeDataDir();
    t.after(() => removeDataDir(dataDir));
    // The shell becomes `sleep`, which never collects the child that the shell had.
    const script = 'sleep 0.1 & echo $!; exec sleep 60';
    const parent = spawn('/bin/sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
    t.after(() => parent.kill('SIGKILL'));
    const pid = await new Promise<number>((resolve) => {
      createInterface(parent.stdout).once('line', (line) => resolve(Number(line)));
    });
    const isZombie = async (): Promise<boolean> => / Z /.test(await readFile(`/proc/${pid}/stat`, 'utf8'));
    await eventually('a zombie', isZombie);
    await leaveRecord(dataDir, { ...recordOf(dataDir), pid, startTicks: null });
    assert.equal(await readHolder(dataDir), null);
  });

  test('stays with its process when the folder is moved, and does not come along with a copy', async (t) => {
    const dataDir = await makeDataDir();
    const moved = `${dataDir}-moved`;
    const copied = `${dataDir}-copied`;
    t.after(() => Promise.all([dataDir, moved, copied].map(removeDataDir)));
    assert.notEqual(await take(dataDir), null);
    await cp(dataDir, copied, { recursive: true });
    assert.notEqual(await take(copied), null);
    await rename(dataDir, moved);
    assert.equal(await take(moved), null);
  });
});

function recordOf(dataDir: string): object {
  return { ...thisProcess(), kind: 'service', sinceMs: 0, dataDir, cluster: null, released: false };
}
