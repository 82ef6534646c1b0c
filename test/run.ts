import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { startTestCluster, type TestCluster } from './support/cluster.ts';
import { findRedisServer } from './support/redis.ts';

// npm test [-- [--torture] [options of node --test] [files]]
// Runs the tests against one embedded Postgres, started here: neither Postgres nor Redis need to be installed.

const LIMITS = { testSeconds: 60, runSeconds: 600 };
const TORTURE_LIMITS = { testSeconds: 1800, runSeconds: 7200 };
const END_GRACE_MS = 5_000;
/** More than two cores: many tests wait for leases, time-outs and processes rather than for a processor. */
const FILES_AT_A_TIME = 3;

/** What all processes of a run have in common. */
interface Shared {
  readonly cluster: TestCluster;
  /**
   * A folder in which Node keeps what it has compiled. Hundreds of processes load the same sources, and to strip their
   * types is more than half of what a small test file costs.
   */
  readonly compileCache: string;
}

async function main(): Promise<number> {
  const torture = process.argv.includes('--torture');
  const given = process.argv.slice(2).filter((argument) => argument !== '--torture');
  const missing = given.filter(
    (argument) => /\.ts$/.test(argument) && !/[*?[{]/.test(argument) && !existsSync(argument),
  );
  if (missing.length > 0) return complain(`There is no ${missing.join(', ')}.`);
  if (process.env['CI'] === 'true' && !findRedisServer()) {
    return complain('CI=true, and there is no redis-server in PATH: the Redis tests would not run.');
  }
  // `on`, not `once`: a second Ctrl-C must not keep the cluster from being removed.
  const interrupted = new Promise<number>((resolve) => {
    process.on('SIGINT', () => resolve(130));
    process.on('SIGTERM', () => resolve(143));
  });
  const cluster = await startTestCluster();
  const compileCache = await mkdtemp(join(tmpdir(), 'fleet-compiled-'));
  try {
    return await runTests({ cluster, compileCache }, given, torture, interrupted);
  } finally {
    await cluster.stop();
    await rm(compileCache, { recursive: true, force: true });
  }
}

/** The exit code: that of the tests, unless they are ended from here. */
async function runTests(
  shared: Shared,
  given: readonly string[],
  torture: boolean,
  interrupted: Promise<number>,
): Promise<number> {
  const limits = torture ? TORTURE_LIMITS : LIMITS;
  const tests = spawnTests(shared, given, torture, limits.testSeconds);
  const ended = new Promise<number>((resolve, reject) => {
    tests.once('error', reject);
    tests.once('exit', (code) => resolve(code ?? 1));
  });
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<number>((resolve) => {
    timer = setTimeout(() => {
      resolve(complain(`The tests were ended: they took longer than ${limits.runSeconds} s.`));
    }, limits.runSeconds * 1000);
  });
  const lost = shared.cluster.exited.then((error) =>
    error ? complain(`The tests were ended. ${error.message}`) : 1,
  );
  const outcome = await Promise.race([ended, interrupted, overdue, lost]);
  clearTimeout(timer);
  await endTests(tests, ended);
  return outcome;
}

function spawnTests(
  { cluster, compileCache }: Shared,
  given: readonly string[],
  torture: boolean,
  testSeconds: number,
): ChildProcess {
  const files = given.filter((argument) => argument.endsWith('.ts'));
  if (files.length === 0) files.push(relative(process.cwd(), join(import.meta.dirname, '**', '*.test.ts')));
  const options = ['--test', `--test-concurrency=${FILES_AT_A_TIME}`, `--test-timeout=${testSeconds * 1000}`];
  options.push(...given.filter((argument) => !argument.endsWith('.ts')));
  return spawn(process.execPath, [...options, ...files], {
    stdio: 'inherit',
    detached: true, // a process group, to end the tests together with everything they have started
    env: {
      ...process.env,
      FLEET_TEST_POSTGRES: cluster.adminUrl,
      FLEET_TEST_TEMPLATE: cluster.template,
      NODE_COMPILE_CACHE: compileCache,
      ...(torture && { FLEET_TORTURE: '1' }),
    },
  });
}

async function endTests(tests: ChildProcess, ended: Promise<number>): Promise<void> {
  if (tests.exitCode !== null || tests.signalCode !== null || tests.pid === undefined) return;
  const group = -tests.pid;
  process.kill(group, 'SIGINT');
  const timer = setTimeout(() => process.kill(group, 'SIGKILL'), END_GRACE_MS);
  await ended;
  clearTimeout(timer);
}

function complain(message: string): number {
  console.error(message);
  return 1;
}

process.exitCode = await main();
