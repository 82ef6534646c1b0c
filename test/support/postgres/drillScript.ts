import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT } from '../service.ts';

const run = promisify(execFile);

/** Runs a command of a script of deploy/drills; resolves to what it prints. */
export function drillScript(name: string): (...args: string[]) => Promise<string> {
  const script = join(PROJECT, 'deploy', 'drills', name);
  return async (...args) => (await run(script, args)).stdout.trim();
}

/** For the option `skip` of a test: why a drill with these programs cannot be run here, or false. */
export function skipWithoutPrograms(programs: readonly string[]): string | false {
  if (process.getuid?.() !== 0) return 'only root can run the drill';
  const missing = programs.find((program) => !isExecutable(program));
  return missing === undefined ? false : `there is no ${missing} on this machine`;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
