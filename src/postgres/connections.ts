import type { Client, Pool, QueryConfig } from 'pg';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import { DeadlineExceeded } from '../lib/time.ts';
import { type PostgresHosts, sessionName } from './hosts.ts';
import type { ServerKnowledge } from './serverEntry.ts';
import type { Lend, OnSqlError, Sql, SqlOptions } from './sql.ts';
import { lendOf, openPool, sqlOn } from './sql.ts';

/**
 * How many connections to Postgres a pod opens at most for each of its tasks. No task waits for another's: the log is
 * followed, callers are authorized and points are stored whatever anybody reads. With the one that listens for notifications
 * they are 33.
 */
const CONNECTIONS = {
  follower: 2,
  access: 3,
  ingest: 6,
  delivery: 4,
  reads: 6,
  writes: 4,
  logins: 2,
  service: 4,
  probes: 1,
} as const;
/** The same with a replica: reads on it, and what asks it and the primary how far they are. */
const REPLICA_CONNECTIONS = { replica: 6, replica_probes: 1, places: 1 } as const;

/** What a pod reports of itself need not reach a synchronous replica: a replica that hangs must not end the following. */
const FOLLOWER_SETTINGS = { synchronous_commit: 'local' };
/** A read that takes longer is given up: it has an index for what it asks, or asks for too much. */
const READ_LIMIT_MS = 5_000;
const PROBE_LIMIT_MS = 2_000;
/** A read takes one core, its own: no workers beside it, and no compiler for what an index answers. */
const READ_SETTINGS = { max_parallel_workers_per_gather: '0', jit: 'off' };
const REPLICA_SETTINGS = { ...READ_SETTINGS, default_transaction_read_only: 'on' };
/** Waiting calls of one account, or of one network that logs in: as many as either may make in a minute. */
const WAITING_PER_KEY = 120;
const WAITING = 10_000;

/** Connections of a pod, apart by what must not wait for what. */
export interface Connections {
  /** Follows the change log. */
  readonly follower: Sql;
  /** Reads keys and sessions. */
  readonly access: Sql;
  readonly ingest: Sql;
  readonly delivery: Sql;
  /** Reads of callers, by account: two at once for each. */
  readonly reads: SqlShares<number>;
  /** Writes of callers, by account: one after the other, so that none waits for another's lock with a connection. */
  readonly writes: SqlShares<number>;
  /** Counts attempts to log in, by network (see addressNetwork). */
  readonly logins: SqlShares<string>;
  /** Work that no caller waits for: migrations, housekeeping, the last use of keys. */
  readonly service: Sql;
  /** Tries whether writes are taken. */
  readonly probes: Sql;
  /** Null without a replica. */
  readonly replica: ReplicaConnections | null;
  /** How its connections are used at this moment. */
  use(): PoolUse[];
  /** Opens all connections that callers and senders wait for: opening one takes 50 ms and more where Postgres is busy. */
  open(tasks: { readonly reads: boolean; readonly ingest: boolean }): Promise<void>;
  end(): Promise<void>;
}

/** What reads on a replica need. Those that reach it are closed together, when it is left. */
export interface ReplicaConnections {
  /** Reads of callers, by account, as on the primary. */
  readonly reads: SqlShares<number>;
  /** Asks how far the replica is. */
  readonly probes: Sql;
  /** Asks the primary how far it is. */
  readonly places: Sql;
  readonly hosts: PostgresHosts;
}

/** Connections of one task. */
export interface PoolUse {
  readonly task: string;
  /** How many it opens at most. */
  readonly max: number;
  readonly used: number;
  readonly idle: number;
  /** Statements and transactions that wait for one. */
  readonly waiting: number;
}

/**
 * Opens nothing before the first statement, or `open`. Those of reads and ingest stay open; others close when they are
 * idle. `onError` is told of every statement that fails.
 */
export function openConnections(
  hosts: PostgresHosts,
  server: ServerKnowledge,
  onError?: OnSqlError,
  replicaHosts: PostgresHosts | null = null,
): Connections {
  const pools = new Map<string, Pool>();
  const open = (task: Task, options: Partial<SqlOptions> = {}, at = hosts): Pool => {
    const maxConnections = { ...CONNECTIONS, ...REPLICA_CONNECTIONS }[task];
    const pool = openPool(at, { maxConnections, name: sessionName(task), server, ...options });
    pools.set(task, pool);
    return pool;
  };
  const unlimited = (pool: Pool): Sql =>
    sqlOn(
      lendOf(pool, (work) => work(), onError),
      () => pool.end(),
    );
  const fairly = { waitingPerKey: WAITING_PER_KEY, waiting: WAITING, onError };
  const ingest = open('ingest', { keepsIdle: true });
  const reads = open('reads', { keepsIdle: true, statementLimitMs: READ_LIMIT_MS, settings: READ_SETTINGS });
  const replica = replicaHosts === null ? null : openReplica(replicaHosts, open, fairly, unlimited);
  const shares = {
    ...(replica === null ? {} : { replica: replica.reads }),
    reads: new SqlShares<number>(reads, { ...fairly, perKey: 2 }),
    writes: new SqlShares<number>(open('writes'), { ...fairly, perKey: 1 }),
    logins: new SqlShares<string>(open('logins'), { ...fairly, perKey: 1 }),
  };
  const useOf = ([task, pool]: [string, Pool]): PoolUse => ({
    task,
    max: pool.options.max,
    used: pool.totalCount - pool.idleCount,
    idle: pool.idleCount,
    waiting: pool.waitingCount + (shares[task as keyof typeof shares]?.waiting ?? 0),
  });
  return {
    follower: unlimited(open('follower', { settings: FOLLOWER_SETTINGS })),
    access: unlimited(open('access')),
    ingest: unlimited(ingest),
    delivery: unlimited(open('delivery')),
    service: unlimited(open('service')),
    probes: unlimited(open('probes')),
    reads: shares.reads,
    writes: shares.writes,
    logins: shares.logins,
    replica,
    use: () => Array.from(pools, useOf),
    open: async (tasks) => {
      if (tasks.ingest) await openAll(ingest);
      if (tasks.reads) await openAll(reads);
    },
    end: async () => {
      await Promise.all(Array.from(pools.values(), (pool) => pool.end()));
    },
  };
}

type Task = keyof typeof CONNECTIONS | keyof typeof REPLICA_CONNECTIONS;

function openReplica(
  hosts: PostgresHosts,
  open: (task: Task, options: Partial<SqlOptions>, at?: PostgresHosts) => Pool,
  fairly: Omit<ShareOptions, 'perKey'>,
  unlimited: (pool: Pool) => Sql,
): ReplicaConnections {
  const options = { isReplica: true, settings: REPLICA_SETTINGS };
  const reads = open('replica', { ...options, statementLimitMs: READ_LIMIT_MS }, hosts);
  const probes = open('replica_probes', { ...options, statementLimitMs: PROBE_LIMIT_MS }, hosts);
  return {
    reads: new SqlShares<number>(reads, { ...fairly, perKey: 2 }),
    probes: unlimited(probes),
    places: unlimited(open('places', { statementLimitMs: PROBE_LIMIT_MS })),
    hosts,
  };
}

/** Rejects when Postgres cannot be reached. */
async function openAll(pool: Pool): Promise<void> {
  const clients = Array.from({ length: pool.options.max }, () => pool.connect());
  for (const opened of await Promise.allSettled(clients))
    if (opened.status === 'fulfilled') opened.value.release();
  await Promise.all(clients);
}

/** How long a statement or transaction waits for a connection. The caller has its answer by then. */
const WAIT_LIMIT_MS = 10_000;

interface ShareOptions {
  /** Connections of one key at a time. */
  readonly perKey: number;
  /** Statements and transactions that may wait, of one key and of all keys. Further ones reject. */
  readonly waitingPerKey: number;
  readonly waiting: number;
  readonly onError?: OnSqlError | undefined;
}

/**
 * Connections that keys (accounts, addresses) share fairly. A free connection goes to the next key in turn, and no key
 * holds more than its share. What waits holds no connection. A transaction must not use the client of the same key
 * beside it: that would wait for the connection of the transaction.
 */
export class SqlShares<Key> {
  readonly #pool: Pool;
  readonly #slots: FairSemaphore<Key>;
  readonly #onError: OnSqlError | undefined;

  constructor(pool: Pool, { perKey, waiting, waitingPerKey, onError }: ShareOptions) {
    this.#pool = pool;
    this.#onError = onError;
    this.#slots = new FairSemaphore({
      running: pool.options.max,
      runningPerKey: perKey,
      waiting,
      waitingPerKey,
    });
  }

  /** How many statements and transactions wait. */
  get waiting(): number {
    return this.#slots.waiting;
  }

  /** A client on the share of `key`. Its statements reject with Overloaded when too many of them wait. */
  readonly of = (key: Key): Sql => sqlOn(this.lend(key), () => this.#pool.end());

  /** Lends connections of the share of `key`. */
  lend(key: Key): Lend {
    return lendOf(this.#pool, (work) => this.#limited(key, work), this.#onError);
  }

  #limited<T>(key: Key, work: () => Promise<T>): Promise<T> {
    const askedAtMs = performance.now();
    return this.#slots.run(key, () => {
      if (performance.now() - askedAtMs > WAIT_LIMIT_MS)
        throw new DeadlineExceeded('waiting for a connection took too long');
      return work();
    });
  }
}

/** Between two attempts to connect. Listeners poll as well, so a gap does no harm. */
const RETRY_MS = 250;
const ANSWER_LIMIT_MS = 5_000;
/** Where there are several hosts, the listener asks so often whether its own still answers, within this time. */
const BEAT_MS = 1_000;
const BEAT_LIMIT_MS = 2_000;

/**
 * Calls `onNotify` for every NOTIFY on `channel`, and after each new connection, because some may have been missed. Uses
 * a connection of its own, and always reconnects, also when one of several hosts is silent: so it finds another primary
 * within seconds, and `hosts` then closes the connections that wait for the silent one. Returns a function that stops it.
 */
export function listen(hosts: PostgresHosts, channel: string, onNotify: () => void): () => Promise<void> {
  let stopped = false;
  let client: Client | null = null;
  let timer: NodeJS.Timeout | undefined;

  const retry = () => {
    client = null;
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(() => void connect(), RETRY_MS);
  };
  const beat = async (own: Client): Promise<void> => {
    try {
      await own.query({ text: 'select 1', query_timeout: BEAT_LIMIT_MS } as QueryConfig);
      if (client === own && !stopped) timer = setTimeout(() => void beat(own), BEAT_MS);
    } catch {
      hosts.passOver(own);
      await own.end().catch(() => undefined);
    }
  };
  const connect = async (): Promise<void> => {
    const own = new hosts.Client({
      application_name: sessionName('listener'),
      query_timeout: ANSWER_LIMIT_MS,
    });
    client = own;
    // An error is always followed by the end of the connection, which leads to a retry.
    own.on('error', () => undefined);
    own.on('notification', onNotify);
    own.once('end', retry);
    try {
      await own.connect();
      await hosts.enter(own);
      await own.query(`listen "${channel}"`);
      onNotify();
    } catch {
      // Not reachable. The poll of the change log reports it. Ending the client makes sure that 'end' comes.
      await own.end().catch(() => undefined);
      return;
    }
    if (hosts.areSeveral) await beat(own);
  };
  void connect();

  return async () => {
    stopped = true;
    clearTimeout(timer);
    await client?.end().catch(() => undefined);
  };
}
