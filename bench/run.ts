import { describeMachine } from './measure/machine.ts';
import { type BenchOptions, parseOptions } from './options.ts';
import { evaluateBudgets, readBudgets } from './report/budgets.ts';
import { formatMachine, formatRun, formatVerdicts } from './report/report.ts';
import { RECORDS, type RecordedCase, writeRecord, writeResults } from './report/results.ts';
import { type CasePlace, findCases, runCase } from './runCase.ts';
import { type BenchCluster, openCluster } from './setup/cluster.ts';

// npm run bench [case…] [-- --smoke | [--seconds S] [--sizes N,…] [--profile] | --record [--profile] | --results]
// Measures each case in a new process and compares it with budgets.json. --smoke only shows that the cases work.

const EXIT_INTERRUPTED = 130;

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort());
process.exitCode = await main();

async function main(): Promise<number> {
  const cases = await findCases();
  const options = parseOptions(process.argv.slice(2), [...cases.keys()]);
  if (!options.ok) {
    for (const error of options.error) console.error(error);
    return 2;
  }
  if (options.value.results) {
    await writeResults();
    return 0;
  }
  const before = await describeMachine();
  await using cluster = await openCluster(process.env);
  const machine = { ...before, postgres: cluster.about };
  console.log(formatMachine(machine));
  const { measured, isGood, isComplete } = await runAll(options.value, cases, cluster);
  if (interrupted.signal.aborted) return EXIT_INTERRUPTED;
  const { record, seconds } = options.value;
  // A run that breaks a budget is recorded too: results without bad hours would mean nothing.
  if (record && isComplete) {
    await writeRecord(RECORDS, { takenAt: new Date().toISOString(), machine, seconds, cases: measured });
    await writeResults();
  }
  return isGood ? 0 : 1;
}

/** Runs the cases in turn and prints each result at once. Complete: no case failed. Good: no budget was broken either. */
async function runAll(
  options: BenchOptions,
  cases: ReadonlyMap<string, CasePlace>,
  cluster: BenchCluster,
): Promise<{ measured: RecordedCase[]; isGood: boolean; isComplete: boolean }> {
  const budgets = await readBudgets();
  const { smoke, seconds, sizes, profile } = options;
  const measured: RecordedCase[] = [];
  let isGood = true;
  let isComplete = true;
  for (const name of options.cases) {
    const place = cases.get(name);
    if (place === undefined || interrupted.signal.aborted) break;
    const run = await cluster.withDatabase((databaseUrl) =>
      runCase({ place, context: { smoke, seconds, sizes, profile, databaseUrl } }, interrupted.signal),
    );
    if (interrupted.signal.aborted) break;
    // Budgets are for the sizes and times that cases choose themselves.
    const hasBudgets = run.kind === 'measured' && !smoke && sizes === null;
    const verdicts = hasBudgets ? evaluateBudgets(budgets[name] ?? {}, run.metrics) : [];
    if (run.kind === 'failed') isComplete = false;
    if (run.kind === 'failed' || verdicts.some(({ isKept }) => !isKept)) isGood = false;
    const parts = [`### ${name}`, formatRun(run), formatVerdicts(verdicts)];
    console.log(`\n${parts.filter((part) => part !== '').join('\n\n')}`);
    if (run.kind === 'measured') {
      const { kind: _, ...result } = run;
      measured.push({ name, ...result });
    }
  }
  return { measured, isGood, isComplete };
}
