import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT } from './service.ts';

const run = promisify(execFile);
const OUTPUT_MAX_BYTES = 1e8;

/** Unpacks a version into a folder of its own, with the packages of its own lock file. */
export async function installVersion(
  ref: string,
): Promise<{ readonly folder: string; readonly remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-upgrade-'));
  await run('git', ['archive', '--output', join(folder, 'version.tar'), ref], { cwd: PROJECT });
  await run('tar', ['-xf', 'version.tar'], { cwd: folder });
  const args = ['ci', '--omit=dev', '--omit=optional', '--no-audit', '--no-fund'];
  await run('npm', args, { cwd: folder, maxBuffer: OUTPUT_MAX_BYTES });
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}
