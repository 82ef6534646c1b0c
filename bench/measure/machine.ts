import { execFile } from 'node:child_process';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { promisify } from 'node:util';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly node: string;
  readonly postgres: string;
  /** Abbreviated, with `+dirty` when files were changed. `none` without a commit. */
  readonly commit: string;
  /** Load average of the last minute. Above 1 other work runs on the machine. */
  readonly load: number;
}

export async function describeMachine(): Promise<Omit<Machine, 'postgres'>> {
  const hash = await git('rev-parse', '--short', 'HEAD');
  const isClean = (await git('status', '--porcelain')) === '';
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    commit: hash === null ? 'none' : `${hash}${isClean ? '' : '+dirty'}`,
    load: loadavg()[0] ?? 0,
  };
}

/** Null when there is no git, repository or commit. */
async function git(...args: string[]): Promise<string | null> {
  const found = await promisify(execFile)('git', args, { cwd: import.meta.dirname }).catch(() => null);
  return found === null ? null : found.stdout.trim();
}
