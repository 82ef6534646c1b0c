import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HELP, parseOptions, type RunOptions } from './runner/options.ts';
import { Report } from './runner/report.ts';
import { measureSlowness } from './runner/slowness.ts';
import { findTestFiles, selectTestFiles } from './runner/testFiles.ts';
import { Workers } from './runner/workers.ts';
import { startTestCluster, type TestCluster } from './support/postgres/cluster.ts';
import { findRedisServer } from './support/redis.ts';

// npm test [-- [options] [words]]; options.ts has the help.
// Runs the tests against one embedded Postgres, started here: neither Postgres nor Redis need to be installed.

/**
 * What ends a test that hangs, and a file that leaves something open, on a quiet machine. A slow machine gets more time,
 * and the run as a whole has no limit.
 */
const LIMITS = { testSeconds: 180, openLimitMs: 10_000 };
const TORTURE_LIMITS = { testSeconds: 7_200, openLimitMs: 10_000 };
/** More than two cores: many tests wait for leases, time-outs and processes rather than for a processor. */
const WORKERS = 4;
/** From here on a run says how slow the machine is. */
const WORTH_SAYING = 1.5;
const USAGE_ERROR = 2;

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2));
  if (!options.ok) return complain(`${options.error}\n\n${HELP}`, USAGE_ERROR);
  if (options.value.help) {
    console.log(HELP);
    return 0;
  }
  const files = selectTestFiles(findTestFiles(options.value), options.value.words);
  if (!files.ok) return complain(files.error, USAGE_ERROR);
  if (process.env['CI'] === 'true' && !findRedisServer()) {
    return complain('CI=true, and there is no redis-server in PATH: the Redis tests would not run.');
  }
  // `on`, not `once`: a second Ctrl-C must not keep the cluster from being removed.
  const interrupted = new Promise<Ending>((resolve) => {
    process.on('SIGINT', () => resolve({ code: 130, note: 'The tests were ended by SIGINT.' }));
    process.on('SIGTERM', () => resolve({ code: 143, note: 'The tests were ended by SIGTERM.' }));
  });
  const cluster = await startTestCluster();
  const folder = await mkdtemp(join(tmpdir(), 'fleet-test-run-'));
  try {
    return await runTests(files.value, options.value, { cluster, folder }, interrupted);
  } finally {
    await cluster.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Why a run ends before all files have run, with its exit code. */
interface Ending {
  readonly code: number;
  readonly note: string;
}

/** What all processes of a run have in common. */
interface Shared {
  readonly cluster: TestCluster;
  /** Of this run alone: for what Node has compiled, and for what the processes know of coverage. */
  readonly folder: string;
}

/** Runs the files and prints the report. The exit code is that of the tests, unless something else ends them. */
async function runTests(
  files: readonly string[],
  options: RunOptions,
  { cluster, folder }: Shared,
  interrupted: Promise<Ending>,
): Promise<number> {
  const startMs = performance.now();
  const slowness = measureSlowness();
  if (slowness >= WORTH_SAYING)
    console.log(`This machine is ${slowness.toFixed(1)} times as slow as a quiet one: tests get more time.`);
  const { testSeconds, openLimitMs } = options.torture ? TORTURE_LIMITS : LIMITS;
  const coverageFolder = options.coverage ? join(folder, 'coverage') : null;
  if (coverageFolder !== null) await mkdir(coverageFolder);
  const report = new Report(files.length, (text) => void process.stdout.write(text));
  const env = {
    ...process.env,
    FLEET_TEST_POSTGRES: cluster.adminUrl,
    FLEET_TEST_TEMPLATE: cluster.template,
    FLEET_TEST_SLOWNESS: String(slowness),
    NODE_COMPILE_CACHE: join(folder, 'compiled'),
    ...(coverageFolder !== null && { NODE_V8_COVERAGE: coverageFolder }),
    ...(options.torture && { FLEET_TORTURE: '1' }),
    ...(options.seed !== null && { FLEET_SEED: options.seed }),
  };
  const workers = new Workers(
    files,
    {
      workers: Math.min(WORKERS, files.length),
      testSeconds: testSeconds * slowness,
      openLimitMs: openLimitMs * slowness,
      name: options.name,
      env,
    },
    (result) => report.take(result),
  );
  const lost = cluster.exited.then((error): Ending => {
    return { code: 1, note: `The tests were ended. ${error?.message ?? 'Postgres has stopped.'}` };
  });
  const ending = await Promise.race([workers.run(), interrupted, lost]);
  await workers.end();
  report.end((performance.now() - startMs) / 1_000, ending?.note ?? null);
  if (coverageFolder !== null) await (await import('./runner/coverage.ts')).printCoverage(coverageFolder);
  return ending?.code ?? (report.isGreen ? 0 : 1);
}

function complain(message: string, code = 1): number {
  console.error(message);
  return code;
}

process.exitCode = await main();
