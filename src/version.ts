import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';

const PACKAGE_FILE = new URL('../package.json', import.meta.url);

/** The version of the service, from package.json. */
export const VERSION = (JSON.parse(readFileSync(PACKAGE_FILE, 'utf8')) as { version: string }).version;

let found: Promise<string> | undefined;

/** The full commit id of the clone that this runs from; "unknown" without git or outside a clone. Git is asked once. */
export function findCommit(): Promise<string> {
  found ??= askGit();
  return found;
}

async function askGit(): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)('git', ['rev-parse', 'HEAD'], { cwd: import.meta.dirname });
    return stdout.trim();
  } catch {
    return 'unknown'; // an unpacked archive, or a machine without git
  }
}
