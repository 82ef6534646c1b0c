import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { median } from './measure/latencies.ts';
import { formatTable } from './report/report.ts';

// npm run bench:compare -- <git ref> [case…] [--rounds N] [--seconds S]
// Measures another version and the working tree in turn, and prints the medians of their metrics side by side.

const PROJECT = join(import.meta.dirname, '..');
const CASES = ['nearest', 'contains', 'location', 'devices'];
const ROUNDS_MAX = 100;
const git = async (...args: string[]) =>
  (await promisify(execFile)('git', args, { cwd: PROJECT })).stdout.trim();

process.exitCode = await main();

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '6' } },
  });
  const [ref, ...cases] = positionals;
  const rounds = Number(values.rounds);
  if (ref === undefined || !(Number.isInteger(rounds) && rounds >= 1 && rounds <= ROUNDS_MAX)) {
    console.error('usage: npm run bench:compare -- <git ref> [case…] [--rounds N] [--seconds S]');
    return 2;
  }
  const commit = await git('rev-parse', '--verify', '--short', `${ref}^{commit}`).catch(() => null);
  if (commit === null) {
    console.error(`there is no commit ${ref} here`);
    return 2;
  }
  const folder = await mkdtemp(join(tmpdir(), 'fleet-compare-'));
  const other = join(folder, 'other');
  try {
    await git('worktree', 'add', '--detach', other, commit);
    await symlink(join(PROJECT, 'node_modules'), join(other, 'node_modules'));
    const chosen = cases.length === 0 ? CASES : cases;
    const runs = await alternate(other, commit, chosen, rounds, values.seconds);
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

/** The versions take turns at going first, since the first may find a cooler machine. */
async function alternate(
  other: string,
  commit: string,
  cases: readonly string[],
  rounds: number,
  seconds: string,
): Promise<Comparison[]> {
  const measure = async (folder: string, name: string) => {
    console.error(`  ${name} …`);
    return readMetrics(await runBench(folder, cases, seconds));
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

/** Runs a version's own bench and returns its output. A broken budget does not stop the comparison. */
async function runBench(folder: string, cases: readonly string[], seconds: string): Promise<string> {
  const args = [join(folder, 'bench', 'run.ts'), ...cases, '--seconds', seconds];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
  let out = '';
  child.stdout.on('data', (data) => {
    out += String(data);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code === null || /^FAILED: /m.test(out) || readMetrics(out).size === 0) {
    throw new Error(`the bench of ${folder} ended with ${code}:\n${out}`);
  }
  return out;
}

type Metrics = ReadonlyMap<string, number>;

/** One round: both versions, measured one after the other. */
type Comparison = Readonly<Record<'before' | 'after', Metrics>>;

/** Reads the lines `name 1.23, other 45` that a run prints below each `### case`. */
function readMetrics(output: string): Metrics {
  const metrics = new Map<string, number>();
  let name = '';
  for (const line of output.split('\n')) {
    if (line.startsWith('### ')) name = line.slice(4).trim();
    if (!/^[a-z][a-z0-9_]* -?[0-9.][0-9. ]*(?:, [a-z][a-z0-9_]* -?[0-9.][0-9. ]*)*$/.test(line)) continue;
    for (const pair of line.split(', ')) {
      const blank = pair.indexOf(' ');
      metrics.set(`${name} ${pair.slice(0, blank)}`, Number(pair.slice(blank).replaceAll(' ', '')));
    }
  }
  return metrics;
}

function formatComparison(rounds: readonly Comparison[], commit: string): string {
  const names = [...(rounds[0]?.before.keys() ?? [])].filter((name) =>
    rounds.every(({ before, after }) => before.has(name) && after.has(name)),
  );
  const rows = names.map((name) => {
    const before = rounds.map((round) => round.before.get(name) as number);
    const after = rounds.map((round) => round.after.get(name) as number);
    const ratios = after.map((value, n) => value / (before[n] as number));
    const span = `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;
    const ratio = `${median(ratios).toFixed(2)} (${span})`;
    return [name, median(before).toPrecision(3), median(after).toPrecision(3), ratio];
  });
  return formatTable(['metric', commit, 'working tree', 'ratio (of each round)'], rows, 4);
}
