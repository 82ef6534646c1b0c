import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { type Comparison, formatComparison, readMetrics } from './report/comparison.ts';

// npm run bench:compare -- <git ref> [case…] [--rounds N] [--seconds S]
// Measures another version, with the packages of its own lock file, and the working tree in turn.

const PROJECT = join(import.meta.dirname, '..');
const CASES = ['nearest', 'contains', 'location', 'devices'];
const ROUNDS_MAX = 100;
const OUTPUT_MAX_BYTES = 1e8;
const run = promisify(execFile);
const git = async (...args: string[]) => (await run('git', args, { cwd: PROJECT })).stdout.trim();
/** In a folder, with the Node and the packages that are installed there. */
const npm = (cwd: string, ...args: string[]) => run('npm', args, { cwd, maxBuffer: OUTPUT_MAX_BYTES });

process.exitCode = await main();

async function main(): Promise<number> {
  const options = readOptions();
  if (options === null) {
    console.error('usage: npm run bench:compare -- <git ref> [case…] [--rounds N, at least 2] [--seconds S]');
    return 2;
  }
  const { ref, cases, rounds, seconds } = options;
  const commit = await git('rev-parse', '--verify', '--short', `${ref}^{commit}`).catch(() => null);
  if (commit === null) {
    console.error(`there is no commit ${ref} here`);
    return 2;
  }
  const folder = await mkdtemp(join(tmpdir(), 'fleet-compare-'));
  const other = join(folder, 'other');
  try {
    await git('worktree', 'add', '--detach', other, commit);
    console.error(`installing the packages of ${commit}`);
    await npm(other, 'ci', '--no-audit', '--no-fund');
    const args = [...(cases.length === 0 ? CASES : cases), '--seconds', seconds];
    const runs = await alternate(other, commit, args, rounds);
    console.log(`\n${formatComparison(runs, commit)}`);
    return 0;
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 1;
  } finally {
    await git('worktree', 'remove', '--force', other).catch(() => undefined);
    await rm(folder, { recursive: true, force: true });
  }
}

/** Null: they are not as they have to be. */
function readOptions() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '6' } },
    });
    const [ref, ...cases] = positionals;
    const rounds = Number(values.rounds);
    if (ref === undefined || !(Number.isInteger(rounds) && rounds >= 2 && rounds <= ROUNDS_MAX)) return null;
    return { ref, cases, rounds, seconds: values.seconds };
  } catch (error) {
    console.error((error as Error).message);
    return null;
  }
}

/** The versions take turns at going first, since the first may find a cooler machine. */
async function alternate(other: string, commit: string, args: string[], rounds: number) {
  const measure = async (folder: string, name: string) => {
    console.error(`  ${name} …`);
    // Of a run that breaks a budget, the error has the output. This does not stop the comparison.
    const ended = npm(folder, 'run', '-s', 'bench', '--', ...args);
    const { stdout } = await ended.catch((error: { stdout: string }) => error);
    const metrics = readMetrics(stdout);
    if (/^FAILED: /m.test(stdout) || metrics.size === 0)
      throw new Error(`the bench of ${name} failed:\n${stdout}`);
    return metrics;
  };
  const runs: Comparison[] = [];
  for (let round = 0; round < rounds; round++) {
    console.error(`round ${round + 1} of ${rounds}`);
    const early = round % 2 === 0 ? await measure(other, commit) : null;
    const after = await measure(PROJECT, 'working tree');
    runs.push({ before: early ?? (await measure(other, commit)), after });
  }
  return runs;
}
