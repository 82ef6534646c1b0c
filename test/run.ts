import { execFileSync, spawnSync } from 'node:child_process';
import { pbkdf2Sync } from 'node:crypto';
import { existsSync, globSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { run } from 'node:test';
import { parseArgs } from 'node:util';
import { printCosts } from './runner/costs.ts';
import { report } from './runner/report.ts';

// npm test [-- [options] [words]]: starts the test runner of Node.

const HELP = `npm test [-- [options] [words]]        the long form of random tests: npm run torture

Runs the test files that have one of the words in their path, such as "nearest" or "test/pods"; without words all.

  --name PATTERN   only tests whose names match this regular expression
  --seed NUMBER    what random tests start from, to repeat a run
  --quick          only what takes a moment: no processes, browsers or faults; about a minute
  --torture        random tests go on for longer
  --times          prints the files that take most processor time
  --coverage       prints which lines of src have run
  --help           prints this`;

const PROJECT = join(import.meta.dirname, '..');
const WORKER = join(PROJECT, 'test', 'runner', 'worker.ts');
/** What Node has compiled, for later runs too: with it a process of the service starts with half the processor time. */
const COMPILED = join(PROJECT, 'node_modules', '.cache', 'fleet-test');
/** A run makes some 2 000; clones may share the folder, and the rest is of files that there are no more. */
const COMPILED_FILES_MAX = 30_000;
/** More than two cores: many tests wait for leases, time-outs and processes rather than for a processor. */
const PROCESSES = 5;
/** On a slow machine: what the service gives Postgres and Redis to answer does not grow with the slowness. */
const PROCESSES_WHEN_SLOW = 3;
const SLOW_FROM = 1.4;
/** Of each process: room for young objects, in MB. With less, files that read much spend a fifth of their time collecting. */
const YOUNG_SPACE = '--max-semi-space-size=64';
/** What ends a test that hangs, on a quiet machine. A slow machine gets more time, and the run as a whole has no limit. */
const TEST_SECONDS = { short: 180, torture: 7_200 };
/** Files that take longest start first: a run must not end with a long file alone. */
const FIRST = ['Browser.slow.', 'test/pods/', 'test/webhooks/', 'test/guide/', '.slow.'];
/**
 * Of a whole run, so many files that failed beside others run once more alone. What passes then depends on what else the
 * machine does: the run passes and names it, and it is to be mended. More failures than this have another cause.
 */
const UNSTABLE_FILES_MAX = 3;
const USAGE_ERROR = 2;

async function main(): Promise<void> {
  const { values, positionals: words } = parseOptions();
  if (values.help) {
    console.log(HELP);
    return;
  }
  const files = findFiles(words, values.quick);
  const folder = mkdtempSync(join(tmpdir(), 'fleet-test-run-'));
  const slowness = measureSlowness();
  const processes = Math.min(slowness < SLOW_FROM ? PROCESSES : PROCESSES_WHEN_SLOW, files.length);
  if (existsSync(COMPILED) && readdirSync(COMPILED, { recursive: true }).length > COMPILED_FILES_MAX)
    rmSync(COMPILED, { recursive: true });
  Object.assign(process.env, {
    FLEET_TEST_FILES: JSON.stringify([folder, ...files]),
    FLEET_TEST_SLOWNESS: String(slowness),
    ...(!values.coverage && { NODE_COMPILE_CACHE: COMPILED }), // what is not compiled again counts no lines exactly
    ...(values.torture && { FLEET_TORTURE: '1' }),
    ...(values.seed !== undefined && { FLEET_SEED: values.seed }),
  });
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort());
  const options = {
    signal: interrupted.signal,
    files: Array.from({ length: processes }, () => WORKER),
    cwd: PROJECT,
    concurrency: processes,
    execArgv: [YOUNG_SPACE],
    globalSetupPath: join(PROJECT, 'test', 'runner', 'cluster.ts'),
    timeout: (values.torture ? TEST_SECONDS.torture : TEST_SECONDS.short) * 1_000 * slowness,
    ...(values.name !== undefined && { testNamePatterns: new RegExp(values.name) }),
    ...(values.coverage && { coverage: true, coverageIncludeGlobs: ['src/**'] }),
  };
  try {
    const { failedFiles, isComplete } = await report(
      run(options),
      files,
      values.name !== undefined,
      values.torture,
    );
    if (values.times) printCosts(folder, files);
    const isWhole = words.length === 0 && values.name === undefined && !values.torture && !values.coverage;
    const isUnstable = isWhole && isComplete && failedFiles.length > 0 && passAlone(failedFiles, values.seed);
    process.exitCode = (isComplete && failedFiles.length === 0) || isUnstable ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Whether files that failed beside others are few, and each passes by itself; says so. */
function passAlone(files: readonly string[], seed: string | undefined): boolean {
  if (files.length > UNSTABLE_FILES_MAX) return false;
  console.log('\nOnce more, each alone:');
  const seedArgs = seed === undefined ? [] : ['--seed', seed];
  for (const file of files) {
    const { status } = spawnSync(process.execPath, [import.meta.filename, file, ...seedArgs], {
      stdio: 'inherit',
    });
    if (status !== 0) return false;
  }
  console.log(`UNSTABLE, failed beside others and passed alone: ${files.join(', ')}`);
  return true;
}

function parseOptions() {
  try {
    const options = parseArgs({
      allowPositionals: true,
      options: {
        name: { type: 'string' },
        seed: { type: 'string' },
        torture: { type: 'boolean', default: false },
        quick: { type: 'boolean', default: false },
        times: { type: 'boolean', default: false },
        coverage: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    if (/^\d{1,9}$/.test(options.values.seed ?? '1')) return options;
    return complain('--seed takes a whole number of at most 9 digits.');
  } catch (error) {
    return complain(`${(error as Error).message}\n\n${HELP}`);
  }
}

/** The files with one of the words in their path, all without words, in the order in which they start. */
function findFiles(words: readonly string[], quick: boolean): string[] {
  const parts = words.map((word) => (existsSync(word) ? relative(PROJECT, resolve(word)) : word));
  const rank = (file: string): number => {
    const found = FIRST.findIndex((part) => file.includes(part));
    return found === -1 ? FIRST.length : found;
  };
  const all = globSync('test/**/*.test.ts', { cwd: PROJECT, exclude: ['**/node_modules'] });
  for (const part of parts) {
    if (!all.some((file) => file.includes(part))) complain(`No test file has "${part}" in its path.`);
  }
  return all
    .filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)))
    .filter((file) => !(quick && file.endsWith('.slow.test.ts')))
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

/**
 * How many times as long as on two quiet cores of 2023 a start of a process and some arithmetic take here, at least 1:
 * the largest of a few samples, since a busy machine is not busy all the time.
 */
function measureSlowness(): number {
  const quietMs = 100;
  const samples = Array.from({ length: 3 }, () => {
    const sinceMs = performance.now();
    execFileSync(process.execPath, ['--eval', '0'], { stdio: 'ignore' });
    pbkdf2Sync('password', 'salt', 500_000, 32, 'sha256');
    return performance.now() - sinceMs;
  });
  return Math.max(1, Math.max(...samples) / quietMs);
}

function complain(message: string): never {
  console.error(message);
  process.exit(USAGE_ERROR);
}

await main();
