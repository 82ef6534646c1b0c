import { createSecretKey, type KeyObject, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { selectInstanceId, selectLongestHistoryDays } from './changelog/database.sql.ts';
import { ReplicaReads } from './changelog/replicaReads.ts';
import { ReplicaWatch, SharedPlaces } from './changelog/replicaWatch.ts';
import { emptyMemory, type Memory } from './coherence/applyChanges.ts';
import { Follower } from './coherence/follower.ts';
import { WriteTrial } from './coherence/postgresHealth.ts';
import type { Config } from './config.ts';
import { type Coordination, openCoordination } from './coordination.ts';
import { EventCuts } from './events/eventPartitions.sql.ts';
import { Shedder } from './http/shedder.ts';
import type { Damage } from './lib/errors.ts';
import { type Clock, DeadlineExceeded, withDeadline } from './lib/time.ts';
import { WorkTurns } from './lib/workTurns.ts';
import { createMetrics, type Gauges, kindOfWork, type Metrics } from './metrics.ts';
import { type Connections, openConnections } from './postgres/connections.ts';
import { startEmbedded } from './postgres/embedded/embedded.ts';
import { PostgresHosts } from './postgres/hosts.ts';
import { migrate } from './postgres/migrate.ts';
import { sharesSessions } from './postgres/pooler.ts';
import { ServerKnowledge } from './postgres/serverEntry.ts';
import type { Sql } from './postgres/sql.ts';
import { errorFields, type Unavailability, unavailability } from './postgres/sqlErrors.ts';
import { loadSecrets } from './secrets.ts';
import type { Traces } from './traces/traces.ts';
import { findCommit, VERSION } from './version.ts';

/** How long all long computations together may run in one turn of the event loop. */
const TURN_BUDGET_MS = 0.5;

/** What the parts of one pod share: its connections, its memory, and what it agrees on with other pods. */
export interface Pod {
  readonly config: Config;
  readonly log: Logger;
  readonly clock: Clock;
  /** What is started is added here, to be stopped in reverse order. */
  readonly teardown: Teardown;
  readonly hosts: PostgresHosts;
  /** Settles with the reason when the embedded Postgres ended. */
  readonly failed: Promise<Error>;
  readonly connections: Connections;
  /** Null without a replica, and in a pod that answers no callers. */
  readonly replica: PodReplica | null;
  /** Names this database among those that share a Redis. */
  readonly instanceId: string;
  /** Ids of webhook events are made from what it says. */
  readonly server: ServerKnowledge;
  readonly longestHistoryDays: number;
  readonly ingestTokens: readonly string[];
  /** Set when the token was generated rather than configured. */
  readonly generatedIngestToken: string | null;
  readonly secretsKey: KeyObject;
  readonly turns: WorkTurns<string | number>;
  readonly memory: Memory;
  readonly eventCuts: EventCuts;
  readonly follower: Follower;
  readonly writeTrial: WriteTrial;
  readonly metrics: Metrics;
  readonly shedder: Shedder;
  readonly coordination: Coordination;
  /** Null: nothing is traced. */
  readonly traces: Traces | null;
  /** Takes packed points that cannot be read. */
  readonly onDamaged: (damage: Damage) => void;
}

/** A replica of Postgres that answers reads of callers while it is level with the primary. */
interface PodReplica {
  readonly watch: ReplicaWatch;
  readonly reads: ReplicaReads;
}

export interface PodOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly clock: Clock;
  readonly teardown: Teardown;
  readonly waitingPoints: Gauges['waitingPoints'];
}

/** Opens the database and updates its schema. Memory is empty until the follower is started. */
export async function openPod({ waitingPoints, ...options }: PodOptions): Promise<Pod> {
  const { config, log, clock, teardown } = options;
  const build = { version: VERSION, commit: config.buildCommit ?? (await findCommit()) };
  log.info(build, 'starting');
  const { url, failed } = await openDatabase(config, log, teardown);
  const hosts = new PostgresHosts(url, (host) => log.warn({ postgres: host }, 'another host is the primary'));
  const server = new ServerKnowledge();
  const turns = new WorkTurns<string | number>(TURN_BUDGET_MS, (key, workedMs) => {
    if (shedder.isActive) shedder.noteWork(key, workedMs);
  });
  const memory = emptyMemory();
  // What its gauges read is there before anybody can ask for them.
  const metrics = createMetrics(
    {
      sizes: () => sizesOf(memory),
      feedLagMs: () => follower.applied.lagMs(),
      loadMs: () => follower.loadMs,
      pools: () => connections.use(),
      loopLateMs: () => shedder.lateMs,
      computations: () => turns.sizes(kindOfWork),
      waitingPoints,
      replica: () => replica?.watch ?? null,
      redis: () => coordination.isAnswering(),
    },
    build,
  );
  const shedder = new Shedder({ log, onRefused: metrics.countShed });
  teardown.add(() => shedder.stop());
  const replicaHosts = openReplicaHosts(config, log);
  const connections = openConnections(hosts, server, metrics.countSqlError, replicaHosts);
  teardown.add(() => connections.end());
  const { tokens, generatedToken, secretsKey } = await secretsOf(config);
  const database = await whenAvailable(options, async () => {
    if (config.databaseUrl !== null && (await sharesSessions(hosts))) throw new Error(SHARED_SESSIONS);
    await migrate(connections.service, (message, fields = {}) => log.info(fields, message));
    return selectDatabase(connections.service);
  });
  const podId = randomUUID();
  const replica = openReplica(connections, podId, options, metrics);
  const follower = new Follower({ memory, sql: connections.follower, server, turns, clock, podId, log });
  teardown.add(() => follower.stop());
  const coordination = await openCoordination(config, {
    instanceId: database.instanceId,
    log,
    catchUp: () => follower.catchUp(),
    count: metrics.countRedis,
  });
  teardown.add(() => coordination.close());
  const traces = await tracesOf({ config, log, teardown, podId, coordination, metrics });
  return {
    ...options,
    ...database,
    hosts,
    failed,
    connections,
    replica,
    server,
    ingestTokens: tokens,
    generatedIngestToken: generatedToken,
    secretsKey: createSecretKey(secretsKey),
    turns,
    memory,
    eventCuts: new EventCuts(),
    follower,
    writeTrial: new WriteTrial(connections.probes, podId),
    metrics,
    shedder,
    coordination,
    traces,
    onDamaged: (damage) => {
      log.error(damage, 'packed points are damaged: restore them from a backup, or delete their row');
      metrics.countDamaged();
    },
  };
}

/** The SDK is loaded by those who send traces only. What has ended is sent before the connections are closed. */
async function tracesOf({
  config,
  log,
  teardown,
  podId,
  coordination: { notifier },
  metrics,
}: Pick<Pod, 'config' | 'log' | 'teardown' | 'coordination' | 'metrics'> & {
  readonly podId: string;
}): Promise<Traces | null> {
  if (config.traces === null) return null;
  const { openTraces } = await import('./traces/openTraces.ts');
  const { traces, close } = openTraces({
    config: config.traces,
    version: VERSION,
    podId,
    log,
    tell: (text) => notifier.tellTrace(text),
    count: metrics.countSpans,
    onIgnored: metrics.countIgnoredTrace,
  });
  teardown.add(() => close());
  notifier.onTrace((text) => traces.hear(text));
  return traces;
}

function openReplicaHosts({ replicaUrl, roles }: Config, log: Logger): PostgresHosts | null {
  if (replicaUrl === null || !roles.has('api')) return null;
  const onMoved = (host: string) => log.info({ postgres: host }, 'another host is the replica');
  return new PostgresHosts(replicaUrl, onMoved, 'replica');
}

function openReplica(
  { reads: primary, replica }: Connections,
  podId: string,
  { log, teardown }: Pick<PodOptions, 'log' | 'teardown'>,
  { countReplicaRead: count }: Metrics,
): PodReplica | null {
  if (replica === null) return null;
  const places = new SharedPlaces(replica.places, podId);
  const watch = new ReplicaWatch({ replica, places, podId, log });
  watch.start();
  teardown.add(() => watch.stop());
  const ports = { primary, replica: replica.reads, watch, places, podId, count };
  return { watch, reads: new ReplicaReads(ports) };
}

const SHARED_SESSIONS =
  'DATABASE_URL leads to a pooler that shares sessions of Postgres among connections (PgBouncer: pool_mode = transaction): set pool_mode = session, or connect to Postgres itself';

function selectDatabase(sql: Sql): Promise<{ instanceId: string; longestHistoryDays: number }> {
  return sql.begin(async (tx) => ({
    instanceId: await selectInstanceId(tx),
    longestHistoryDays: await selectLongestHistoryDays(tx),
  }));
}

function sizesOf({ fleet, keyring }: Memory): ReturnType<Gauges['sizes']> {
  return {
    devices: fleet.deviceCount,
    positions: fleet.positionedCount,
    worlds: fleet.worldCount,
    keys: keyring.size,
    stays: fleet.stays.total,
  };
}

/** Longer than the time that Postgres has to shut down on its own (postgres/embedded/watchdog.ts). */
const EMBEDDED_STOP_LIMIT_MS = 40_000;

/** The configured Postgres, or the embedded one, started for this service; `failed` settles when that one ends. */
async function openDatabase(
  config: Config,
  log: Logger,
  teardown: Teardown,
): Promise<{ url: string; failed: Promise<Error> }> {
  if (config.databaseUrl !== null)
    return { url: config.databaseUrl, failed: new Promise<Error>(() => undefined) };
  const embedded = await startEmbedded({
    dataDir: config.dataDir,
    log: (message, fields = {}) => log.info(fields, message),
  });
  teardown.add(() => embedded.stop(), EMBEDDED_STOP_LIMIT_MS);
  const failed = new Promise<Error>((resolve) => {
    void embedded.exited.then((error) => {
      if (error !== null) resolve(error);
    });
  });
  return { url: embedded.url, failed };
}

const RETRY_MS = 250;

/**
 * The result of `begin`, which is called again while Postgres cannot be asked, for STARTUP_WAIT_SECONDS at most. Each reason
 * is logged once. Rejects at once with any other error, such as a wrong password.
 */
export async function whenAvailable<T>(
  { config, log }: Pick<PodOptions, 'config' | 'log'>,
  begin: () => Promise<T>,
): Promise<T> {
  const limitMs = config.startupWaitSeconds * 1_000;
  const untilMs = performance.now() + limitMs;
  let said: Unavailability | null = null;
  for (;;) {
    try {
      return await begin();
    } catch (error) {
      const reason = unavailability(error);
      if (reason === null || performance.now() + RETRY_MS > untilMs) throw error;
      if (reason !== said)
        log.warn({ ...errorFields(error), limit_seconds: limitMs / 1_000 }, 'waiting for Postgres');
      said = reason;
      await sleep(RETRY_MS);
    }
  }
}

/** What was configured, else what was generated and is kept in the data folder. */
async function secretsOf(
  config: Config,
): Promise<{ tokens: readonly string[]; generatedToken: string | null; secretsKey: Buffer }> {
  const { ingestTokens: tokens, secretsKey } = config;
  if (tokens !== null && secretsKey !== null) return { tokens, generatedToken: null, secretsKey };
  const kept = await loadSecrets(config.dataDir);
  if (!kept.ok) throw new Error(kept.error);
  return {
    tokens: tokens ?? [kept.value.ingestToken],
    generatedToken: tokens === null ? kept.value.ingestToken : null,
    secretsKey: secretsKey ?? kept.value.secretsKey,
  };
}

/** What a stop waits for one step, unless it says otherwise: a Postgres that says nothing must not hold it up. */
export const STEP_LIMIT_MS = 3_000;
/** The same after a step that took too long: the next steps would probably wait for the same thing. */
const AFTER_STUCK_LIMIT_MS = 750;

/** Undoes what was started, last first. Every step runs, even if others fail, and each has a time limit. */
export class Teardown {
  readonly #steps: { readonly step: () => unknown; readonly limitMs: number }[] = [];

  add(step: () => unknown, limitMs: number = STEP_LIMIT_MS): void {
    this.#steps.push({ step, limitMs });
  }

  async run(log: Logger): Promise<void> {
    let usualMs = STEP_LIMIT_MS;
    for (const { step, limitMs } of this.#steps.splice(0).reverse()) {
      try {
        const ownMs = limitMs === STEP_LIMIT_MS ? usualMs : limitMs;
        await withDeadline(Promise.resolve(step()), ownMs, 'a step of the stop');
      } catch (error) {
        if (error instanceof DeadlineExceeded) usualMs = AFTER_STUCK_LIMIT_MS;
        log.warn({ err: error }, 'a step of the stop failed');
      }
    }
  }
}
