import { accessSync, constants } from 'node:fs';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawnWatched, type Watched } from '../../src/postgres/embedded/watchdog.ts';
import { patienceMs } from './patience.ts';
import { started } from './started.ts';

const READY_LIMIT_MS = patienceMs(10_000);
const POLL_MS = 20;

export interface TestRedis {
  readonly url: string;
  /** Kills it, as a failing machine would; with `restart` it is back on the same port, empty. */
  stop(): Promise<void>;
  restart(): Promise<void>;
  /** Lets it answer nothing, with its connections open, until `resume`. */
  pause(): void;
  resume(): void;
}

/** The path of redis-server, or null. */
export function findRedisServer(): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, 'redis-server')).find(isExecutable) ?? null;
}

/**
 * For the option `skip` of a test that needs Redis: why it cannot run here, or false. With CI=true it runs
 * anyway, and `startRedis` fails, since nobody reads the skipped tests of a pipeline.
 */
export function skipWithoutRedis(): string | false {
  if (findRedisServer() || process.env['CI'] === 'true') return false;
  return 'there is no redis-server on this machine';
}

/**
 * Starts a redis-server of its own on a free port, without persistence. It ends after the test, or with this process.
 * `settings`: further arguments.
 */
export async function startRedis(t?: TestContext, settings: readonly string[] = []): Promise<TestRedis> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-redis-'));
  const port = await findFreePort();
  const launch = () => launchRedis([...serverArgs(port, folder), ...settings], port, folder);
  let server = await launch();
  const stop = async (): Promise<void> => {
    server.kill('SIGKILL');
    await server.ended;
  };
  t?.after(async () => {
    await stop();
    await rm(folder, { recursive: true, force: true });
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    stop,
    restart: async () => {
      await stop();
      server = await launch();
    },
    pause: () => server.kill('SIGSTOP'),
    resume: () => server.kill('SIGCONT'),
  };
}

/** One for the tests of the suite that calls this, which do it no harm. */
export const sharedRedis = (): TestRedis =>
  started(
    () => startRedis(),
    ({ stop }) => stop(),
  );

function serverArgs(port: number, folder: string): string[] {
  const settings = ['--bind', '127.0.0.1', '--port', String(port), '--dir', folder];
  return [...settings, '--save', '', '--appendonly', 'no'];
}

/** Starts redis-server in a folder and waits until it answers on the port. Its log goes there. */
export async function launchRedis(args: readonly string[], port: number, folder: string): Promise<Watched> {
  const program = findRedisServer();
  if (!program)
    throw new Error('There is no redis-server in PATH, and with CI=true the Redis tests must run.');
  const logPath = join(folder, 'redis.log');
  const log = await open(logPath, 'w');
  const server = await spawnWatched(program, args, { cwd: folder, logFd: log.fd, account: null });
  await log.close();
  let hasEnded = false;
  void server.ended.then(() => {
    hasEnded = true;
  });
  for (const untilMs = Date.now() + READY_LIMIT_MS; Date.now() < untilMs && !hasEnded; await sleep(POLL_MS)) {
    if (await answers(port)) {
      server.unref();
      return server;
    }
  }
  server.kill('SIGKILL');
  throw new Error(`redis-server did not start:\n${await readFile(logPath, 'utf8')}`);
}

/** Whether a Redis on that port answers PING with PONG. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    const finish = (yes: boolean): void => {
      socket.destroy();
      resolve(yes);
    };
    socket.once('data', (data) => finish(data.toString().startsWith('+PONG')));
    socket.once('error', () => finish(false));
    socket.once('close', () => finish(false));
  });
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
