import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { findFreePort } from './ports.ts';
import { launchRedis, startRedis, type TestRedis } from './redis.ts';
import { waitFor } from './waitFor.ts';

/** A master, its replica, and a sentinel that promotes the replica when the master is silent for a moment. */
export interface SentinelRedis {
  readonly url: string;
  readonly master: TestRedis;
  readonly replica: TestRedis;
}

const MASTER = 'fleet';
const SILENCE_MS = 300;
const FAILOVER_LIMIT_MS = 2_000;

/** Starts the three; they end after the test. The URL names a sentinel first that is not there. */
export async function startSentinelRedis(t: TestContext): Promise<SentinelRedis> {
  const master = await startRedis(t);
  const replica = await startRedis(t);
  const [masterPort, replicaPort] = [master, replica].map(({ url }) => new URL(url).port) as [string, string];
  const admin = new Redis(replica.url);
  await admin.replicaof('127.0.0.1', Number(masterPort));
  await waitFor(async () => (await admin.info('replication')).includes('master_link_status:up'));
  admin.disconnect();
  const port = await findFreePort();
  const sentinel = await startSentinel(t, port, [
    `sentinel monitor ${MASTER} 127.0.0.1 ${masterPort} 1`,
    `sentinel down-after-milliseconds ${MASTER} ${SILENCE_MS}`,
    `sentinel failover-timeout ${MASTER} ${FAILOVER_LIMIT_MS}`,
  ]);
  // It finds the replica by asking the master.
  await waitFor(async () => {
    const replicas = (await sentinel.call('SENTINEL', 'replicas', MASTER)) as readonly string[][];
    return replicas.some((fields) => fields.includes(replicaPort));
  });
  sentinel.disconnect();
  return { url: `redis+sentinel://${MASTER}@127.0.0.1:1,127.0.0.1:${port}/0`, master, replica };
}

/** It writes what it finds out into its configuration. */
async function startSentinel(t: TestContext, port: number, lines: readonly string[]): Promise<Redis> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-sentinel-'));
  const file = join(folder, 'sentinel.conf');
  await writeFile(file, ['bind 127.0.0.1', `port ${port}`, `dir ${folder}`, ...lines, ''].join('\n'));
  const process = await launchRedis([file, '--sentinel'], port, folder);
  t.after(async () => {
    process.kill('SIGKILL');
    await process.ended;
    await rm(folder, { recursive: true, force: true });
  });
  return new Redis(port, '127.0.0.1');
}
