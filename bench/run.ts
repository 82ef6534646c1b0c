import { readFile, writeFile } from 'node:fs/promises';
import type { Curve } from './benchCase.ts';
import { judge, readBudgets } from './budgets.ts';
import { type BenchCluster, openCluster } from './cluster.ts';
import { findCases } from './findCases.ts';
import { describeMachine } from './machine.ts';
import { type BenchOptions, parseOptions } from './options.ts';
import { plot } from './plot.ts';
import { addRecord } from './record.ts';
import { formatMachine, formatRun, formatVerdicts } from './report.ts';
import { runCase } from './runCase.ts';

// npm run bench [case…] [-- --smoke | [--seconds S] [--sizes N,…] [--profile] [--record]]
// Measures each case in a fresh process and holds it against budgets.json. --smoke only looks whether all work.

const RESULTS = new URL('./RESULTS.md', import.meta.url);
const GROWTH = new URL('./growth.svg', import.meta.url);
const EXIT_INTERRUPTED = 130;

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort());
process.exitCode = await main();

async function main(): Promise<number> {
  const cases = await findCases();
  const options = parseOptions(process.argv.slice(2), [...cases.keys()]);
  if (!options.ok) {
    for (const problem of options.error) console.error(problem);
    return 2;
  }
  const machine = await describeMachine();
  const cluster = await openCluster(process.env);
  try {
    const about = formatMachine(machine, cluster.about);
    console.log(about);
    const { sections, curves, isGood, isComplete } = await runAll(options.value, cases, cluster);
    if (interrupted.signal.aborted) return EXIT_INTERRUPTED;
    // Also when a budget was broken: a record that leaves out bad hours would say nothing.
    if (options.value.record && isComplete) {
      const title = `## ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, ${machine.commit}`;
      await writeFile(
        RESULTS,
        addRecord(await readIfThere(RESULTS), [title, about, ...sections].join('\n\n')),
      );
      if (curves.length > 0) await writeFile(GROWTH, plot(curves, about));
    }
    return isGood ? 0 : 1;
  } finally {
    await cluster.stop();
  }
}

/** Each case in turn, told as soon as it is done. */
async function runAll(
  options: BenchOptions,
  cases: ReadonlyMap<string, string>,
  cluster: BenchCluster,
): Promise<{ sections: string[]; curves: Curve[]; isGood: boolean; isComplete: boolean }> {
  const budgets = await readBudgets();
  const { smoke, seconds, sizes, profile } = options;
  const sections: string[] = [];
  const curves: Curve[] = [];
  let isGood = true;
  let isComplete = true;
  for (const name of options.cases) {
    const path = cases.get(name);
    if (path === undefined || interrupted.signal.aborted) break;
    const run = await cluster.withDatabase((databaseUrl) =>
      runCase({ path, context: { smoke, seconds, sizes, profile, databaseUrl } }, interrupted.signal),
    );
    if (interrupted.signal.aborted) break;
    // Budgets are for the sizes and times that cases choose themselves.
    const isJudged = run.kind === 'measured' && !smoke && sizes === null;
    const verdicts = isJudged ? judge(budgets[name] ?? {}, run.figures) : [];
    if (run.kind === 'failed') isComplete = false;
    if (run.kind === 'failed' || verdicts.some(({ isKept }) => !isKept)) isGood = false;
    const section = [`### ${name}`, formatRun(run), formatVerdicts(verdicts)]
      .filter((part) => part !== '')
      .join('\n\n');
    console.log(`\n${section}`);
    sections.push(section);
    if (run.kind === 'measured') curves.push(...(run.curves ?? []));
  }
  return { sections, curves, isGood, isComplete };
}

async function readIfThere(file: URL): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
