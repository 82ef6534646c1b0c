import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, Redis, type RedisOptions } from 'ioredis';
import type { RedisAddress } from './redisUrl.ts';

/** How long a node may take to say which node has a slot. */
const ASK_LIMIT_MS = 1_000;
/** Between two rounds through all nodes. */
const PAUSE_MS = 250;
/** In a cluster with more nodes, only this many are asked. */
const ASKED_MAX = 30;

/**
 * The connector of a client (option `Connector` of ioredis) whose keys are all in the slot of `key`: each connection first
 * asks the nodes of the cluster for the master of that slot. The client of ioredis for clusters keeps a connection to each
 * node and sends a command again where a node says so. Here a connection ends when the slot has moved, and what a caller
 * knows of its keys ends with it: a replica that was promoted may not have all that its master confirmed.
 *
 * `seeds`: the nodes that are asked first. All that they name are asked later.
 */
export function slotConnector(seeds: readonly RedisAddress[], key: string) {
  return class SlotConnector extends AbstractConnector {
    readonly #options: RedisOptions;
    #nodes = [...seeds];

    constructor(options: unknown) {
      super((options as RedisOptions).disconnectTimeout as number);
      this.#options = options as RedisOptions;
    }

    /** Of `INFO`, on each new connection: the master may have lost its slots since it was named. */
    override check({ role }: { readonly role?: string }): boolean {
      return role === undefined || role === 'master';
    }

    /** Settles when a node has said where to connect, and rejects when `disconnect` is called before. */
    override async connect(emit: (type: string, error: Error) => void) {
      this.connecting = true;
      while (this.connecting) {
        const reasons: Error[] = [];
        for (const node of this.#nodes) {
          const found = await findMaster(node, key, this.#options).catch((error: Error) => error);
          if (!this.connecting) break;
          if (!(found instanceof Error)) return this.#open(found);
          reasons.push(found);
        }
        for (const reason of reasons) emit('error', reason);
        await sleep(PAUSE_MS);
      }
      throw new Error('Connection is closed.');
    }

    #open({ master, nodes }: Found) {
      // The next time nodes are asked, this master has been lost, so it is asked last. The seeds are kept, because one host name
      // may lead to several nodes.
      const others = [...nodes, ...seeds].filter((node) => !isSame(node, master));
      this.#nodes = [...others.slice(0, ASKED_MAX), master];
      const { tls } = this.#options;
      const stream = tls ? connectTls({ ...tls, ...master }) : connect(master);
      stream.once('error', (error) => {
        this.firstError = error;
      });
      this.stream = stream;
      return stream;
    }
  };
}

interface Found {
  readonly master: RedisAddress;
  /** All that the node knows. */
  readonly nodes: readonly RedisAddress[];
}

/** Asks one node. Rejects when it does not answer, is not part of a cluster that works, or knows nobody for the slot. */
async function findMaster(node: RedisAddress, key: string, options: RedisOptions): Promise<Found> {
  const { username, password, tls } = options;
  const redis = new Redis({
    ...node,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls }),
    lazyConnect: true,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectTimeout: ASK_LIMIT_MS,
    commandTimeout: ASK_LIMIT_MS,
  });
  let reason: Error | null = null;
  redis.on('error', (error: Error) => {
    reason = error;
  });
  try {
    await redis.connect();
    const [slot, info, ranges] = await Promise.all([
      redis.cluster('KEYSLOT', key),
      redis.cluster('INFO'),
      redis.cluster('SLOTS'),
    ]);
    // A node that is cut off from the others still names itself.
    if (!info.includes('cluster_state:ok')) throw new Error('its cluster is down');
    const [, , master] = ranges.find(([from, to]) => from <= slot && slot <= to) ?? [];
    if (master === undefined) throw new Error('nobody has the slot of this service');
    const all = ranges.flatMap(([, , ...members]) => members.map((member) => addressOf(member, node)));
    const unique = new Map(all.map((one) => [`${one.host}:${one.port}`, one]));
    return { master: addressOf(master, node), nodes: [...unique.values()] };
  } catch (error) {
    const { message } = reason ?? (error as Error);
    throw new Error(`node ${node.host}:${node.port}: ${message}`);
  } finally {
    redis.disconnect();
  }
}

/** Of a member in the answer of CLUSTER SLOTS. Its preferred address is empty, null or ? where the node does not know it. */
function addressOf(
  [host, port]: readonly [string | null, number, ...unknown[]],
  asked: RedisAddress,
): RedisAddress {
  return { host: host === null || host === '' || host === '?' ? asked.host : host, port };
}

function isSame(a: RedisAddress, b: RedisAddress): boolean {
  return a.host === b.host && a.port === b.port;
}
