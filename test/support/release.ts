import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { PROJECT } from './service.ts';

const run = promisify(execFile);
const git = async (...args: string[]) => (await run('git', args, { cwd: PROJECT })).stdout.trim();

/** The version to upgrade from, a git ref: FLEET_UPGRADE_FROM, or the newest release before; null: there is none. */
export async function releaseBefore(): Promise<string | null> {
  const tags = await git('tag', '--list', 'v*', '--sort=-v:refname', '--merged', 'HEAD');
  return process.env['FLEET_UPGRADE_FROM'] ?? (tags.split('\n')[0] || null);
}

/** Unpacks files of a version, all or those below `paths`, into a folder that goes away after the test. */
export async function unpackVersion(t: TestContext, ref: string, ...paths: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-version-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await git('archive', '--output', join(folder, 'version.tar'), ref, ...paths);
  await run('tar', ['-xf', 'version.tar'], { cwd: folder });
  return folder;
}
