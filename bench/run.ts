import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Measured } from './benchCase.ts';
import { describeMachine } from './measure/machine.ts';
import { metricsOf } from './measure/noise.ts';
import { type BenchOptions, HELP, parseOptions } from './options.ts';
import { evaluateBudgets, readBudgets } from './report/budgets.ts';
import { formatDuration, formatMachine, formatRun, formatVerdicts } from './report/report.ts';
import {
  type BenchRecord,
  newestCases,
  RECORDS,
  type RecordedCase,
  readRecords,
  writeProfiles,
  writeRecord,
  writeResults,
} from './report/results.ts';
import { type CasePlace, type CaseRun, findCases, loadCase, runCase } from './runCase.ts';
import { type BenchCluster, openCluster } from './setup/cluster.ts';

// npm run bench: measures each case in a new process and compares it with budgets.json.

const EXIT_INTERRUPTED = 130;
/** A look whether cases work measures nothing, and waits more than it computes: so many go on at once. */
const SMOKE_CASES = 2;

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort());
process.exitCode = await main();

async function main(): Promise<number> {
  const startMs = performance.now();
  const cases = await findCases();
  const options = parseOptions(process.argv.slice(2), [...cases.keys()]);
  if (!options.ok) {
    for (const error of options.error) console.error(error);
    return 2;
  }
  if (options.value.help) {
    console.log(`${HELP}\n\ncases:`);
    for (const [name, place] of cases) console.log(`  ${name.padEnd(17)} ${(await loadCase(place)).about}`);
    return 0;
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
  const { record, profile, seconds } = options.value;
  // A run that breaks a budget is recorded too: results without bad hours would mean nothing.
  if (record && isComplete) {
    await writeRecord(RECORDS, { takenAt: new Date().toISOString(), machine, seconds, cases: measured });
    await writeResults();
  } else if (profile) {
    const folder = pathToFileURL(`${await mkdtemp(join(tmpdir(), 'fleet-profiles-'))}/`);
    await writeProfiles(folder, '', measured);
    console.log(`\nthe profiles are in ${fileURLToPath(folder)}`);
  }
  console.log(`\n${measured.length} cases measured in ${formatDuration(performance.now() - startMs)}`);
  return isGood ? 0 : 1;
}

/** Runs the cases in turn, or two at a time with --smoke, and prints each result at once. Complete: no case failed. Good: no budget was broken either. */
async function runAll(
  options: BenchOptions,
  cases: ReadonlyMap<string, CasePlace>,
  cluster: BenchCluster,
): Promise<{ measured: RecordedCase[]; isGood: boolean; isComplete: boolean }> {
  const budgets = await readBudgets();
  const records = await readRecords(RECORDS);
  const { smoke, sizes, pods } = options;
  const measured: RecordedCase[] = [];
  let isGood = true;
  let isComplete = true;
  const runNamed = async (name: string): Promise<void> => {
    const place = cases.get(name);
    if (place === undefined || interrupted.signal.aborted) return;
    console.error(`${name} …${smoke ? '' : estimateOf(name, options, records)}`);
    const startMs = performance.now();
    const run = await runRounds(place, options, cluster);
    const tookSeconds = (performance.now() - startMs) / 1_000;
    if (interrupted.signal.aborted) return;
    // Budgets are for the sizes, times and pods that cases choose themselves.
    const hasBudgets = run.kind === 'measured' && !smoke && sizes === null && pods === 1;
    const verdicts = hasBudgets ? evaluateBudgets(budgets[name] ?? {}, run.metrics) : [];
    if (run.kind === 'failed') isComplete = false;
    if (run.kind === 'failed' || verdicts.some(({ isKept }) => !isKept)) isGood = false;
    const took = `took ${formatDuration(1_000 * tookSeconds)}`;
    const parts = [`### ${name}`, formatRun(run), formatVerdicts(verdicts), took];
    console.log(`\n${parts.filter((part) => part !== '').join('\n\n')}`);
    if (run.kind === 'measured') {
      const { kind: _, ...result } = run;
      measured.push({ name, ...result, tookSeconds });
    }
  };
  const names = options.cases.values();
  const runRest = async (): Promise<void> => {
    for (const name of names) await runNamed(name);
  };
  await Promise.all(Array.from({ length: smoke ? SMOKE_CASES : 1 }, runRest));
  return { measured, isGood, isComplete };
}

/** How long a case will take, as far as a record says it. */
function estimateOf(name: string, { rounds }: BenchOptions, records: readonly BenchRecord[]): string {
  const known = newestCases(records).find((of) => of.measured.name === name);
  const seconds = known?.measured.tookSeconds;
  if (seconds === undefined) return ' no record says how long it takes';
  return ` about ${formatDuration(1_000 * rounds * seconds)}, as in the record of ${known?.record.machine.commit}`;
}

/** Runs a case, each time on an empty database. Of several rounds metrics are medians, and their noise is known. */
async function runRounds(place: CasePlace, options: BenchOptions, cluster: BenchCluster): Promise<CaseRun> {
  const { rounds, smoke, seconds, sizes, pods, profile } = options;
  const runs: Measured[] = [];
  while (runs.length < rounds) {
    const run = await cluster.withDatabase((databaseUrl) =>
      runCase({ place, context: { smoke, seconds, sizes, pods, profile, databaseUrl } }, interrupted.signal),
    );
    if (run.kind !== 'measured') return run;
    runs.push(run);
  }
  const last = runs.at(-1) as Measured;
  const values = Object.keys(last.metrics).map((name) => [
    name,
    runs.map((run) => run.metrics[name] as number),
  ]);
  return rounds === 1 ? last : { ...last, ...metricsOf(Object.fromEntries(values)) };
}
