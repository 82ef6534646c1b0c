import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT } from './service.ts';

const run = promisify(execFile);
const OUTPUT_MAX_BYTES = 1e8;
const git = async (...args: string[]) => (await run('git', args, { cwd: PROJECT })).stdout.trim();

/** The version to upgrade from, a git ref: FLEET_UPGRADE_FROM, or the newest release before; null: there is none. */
export async function releaseBefore(): Promise<string | null> {
  const tags = await git('tag', '--list', 'v*', '--sort=-v:refname', '--merged', 'HEAD');
  return process.env['FLEET_UPGRADE_FROM'] ?? (tags.split('\n')[0] || null);
}

/** What goes away after a test, or after all of a file. */
type After = (end: () => Promise<void>) => void;

/** Unpacks a version into a folder, with the packages of its own lock file. */
export async function installVersion(after: After, ref: string): Promise<string> {
  const folder = await unpackVersion(after, ref);
  const args = ['ci', '--omit=dev', '--omit=optional', '--no-audit', '--no-fund'];
  await run('npm', args, { cwd: folder, maxBuffer: OUTPUT_MAX_BYTES });
  return folder;
}

/** Unpacks files of a version, all or those below `paths`, into a folder. */
export async function unpackVersion(after: After, ref: string, ...paths: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-version-'));
  after(() => rm(folder, { recursive: true, force: true }));
  await git('archive', '--output', join(folder, 'version.tar'), ref, ...paths);
  await run('tar', ['-xf', 'version.tar'], { cwd: folder });
  return folder;
}
