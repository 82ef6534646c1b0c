import { execFile } from 'node:child_process';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { promisify } from 'node:util';

/** Where and of what something was measured. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly node: string;
  /** Abbreviated, with `+dirty` when files were changed since; `none` without a commit. */
  readonly commit: string;
  /** Processes that wanted a processor in the minute before: more than 1 means that others work here, too. */
  readonly load: number;
}

export async function describeMachine(): Promise<Machine> {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    commit: await findCommit(),
    load: loadavg()[0] ?? 0,
  };
}

async function findCommit(): Promise<string> {
  const hash = await git('rev-parse', '--short', 'HEAD');
  if (hash === null) return 'none';
  return (await git('status', '--porcelain')) === '' ? hash : `${hash}+dirty`;
}

/** What git prints; null when there is no git, no repository, or no commit. */
async function git(...args: string[]): Promise<string | null> {
  try {
    const { stdout } = await promisify(execFile)('git', args, { cwd: import.meta.dirname });
    return stdout.trim();
  } catch {
    return null; // a copy without its history can be measured, too
  }
}
