import type { TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { patienceMs } from './patience.ts';
import { findFreePort } from './ports.ts';
import { startRedis, type TestRedis } from './redis.ts';
import { waitFor } from './waitFor.ts';

/** Three masters that vote, and a replica of the first. */
export interface ClusterRedis {
  readonly url: string;
  /** Has all slots but two others, which the other two masters have. */
  readonly master: TestRedis;
  readonly replica: TestRedis;
  /** Gives the slot of the first key, with all that is in it, to the second master; the next call gives it back. */
  moveSlot(): Promise<void>;
}

interface Node {
  readonly server: TestRedis;
  readonly admin: Redis;
  readonly id: string;
  readonly port: number;
  readonly busPort: number;
}

const SLOTS = 16_384;
const SILENCE_MS = patienceMs(1_000);
const KEYS_MAX = 1_000;
const MIGRATE_LIMIT_MS = 5_000;

/** Starts the four; they end after the test. The URL names a node first that is not there. `keys`: what the first master has. */
export async function startClusterRedis(t: TestContext, keys: readonly string[]): Promise<ClusterRedis> {
  const nodes: Node[] = [];
  for (let n = 0; n < 4; n++) nodes.push(await startNode(t));
  const [first, second, third, replica] = nodes as [Node, Node, Node, Node];
  const held = await Promise.all(keys.map((key) => first.admin.cluster('KEYSLOT', key)));
  const all = Array.from({ length: SLOTS }, (_, n) => n);
  const [forSecond, forThird] = all.filter((n) => !held.includes(n)) as [number, number];
  await first.admin.cluster('ADDSLOTS', ...all.filter((n) => n !== forSecond && n !== forThird));
  await second.admin.cluster('ADDSLOTS', forSecond);
  await third.admin.cluster('ADDSLOTS', forThird);
  for (const { port, busPort } of nodes.slice(1))
    await first.admin.call('CLUSTER', 'MEET', '127.0.0.1', port, busPort);
  for (const { admin } of nodes)
    await waitFor(async () => (await admin.cluster('INFO')).includes('cluster_state:ok'));
  await replica.admin.cluster('REPLICATE', first.id);
  await waitFor(async () => (await replica.admin.info('replication')).includes('master_link_status:up'));
  await waitFor(async () => String(await second.admin.cluster('NODES')).includes(`slave ${first.id}`));
  let holders: readonly [Node, Node] = [first, second];
  return {
    url: `redis+cluster://127.0.0.1:1,127.0.0.1:${third.port}`,
    master: first.server,
    replica: replica.server,
    moveSlot: async () => {
      await moveSlot(held[0] as number, ...holders, [third]);
      holders = [holders[1], holders[0]];
    },
  };
}

/** Starts a node that knows no other and has no slots. */
export async function startNode(t: TestContext): Promise<Node> {
  const busPort = await findFreePort();
  const server = await startRedis(t, [
    ...['--cluster-enabled', 'yes', '--cluster-port', String(busPort)],
    ...['--cluster-node-timeout', String(SILENCE_MS), '--cluster-replica-validity-factor', '0'],
  ]);
  const admin = new Redis(server.url);
  admin.on('error', () => undefined); // the server ends first
  t.after(() => admin.disconnect());
  const port = Number(new URL(server.url).port);
  return { server, admin, id: String(await admin.cluster('MYID')), port, busPort };
}

/** As redis-cli does it, by the "Live resharding" of the specification of Redis Cluster. */
async function moveSlot(slot: number, from: Node, to: Node, told: readonly Node[]): Promise<void> {
  await to.admin.cluster('SETSLOT', slot, 'IMPORTING', from.id);
  await from.admin.cluster('SETSLOT', slot, 'MIGRATING', to.id);
  const keys = (await from.admin.cluster('GETKEYSINSLOT', slot, KEYS_MAX)) as string[];
  if (keys.length > 0)
    await from.admin.call('MIGRATE', '127.0.0.1', to.port, '', 0, MIGRATE_LIMIT_MS, 'KEYS', ...keys);
  for (const { admin } of [to, from, ...told]) await admin.cluster('SETSLOT', slot, 'NODE', to.id);
}
