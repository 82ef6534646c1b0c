import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { type Clock, systemClock } from './base/clock.ts';
import { withDeadline } from './base/deadline.ts';
import type { Config } from './config.ts';
import { Admittance } from './flows/admit.ts';
import { awaitPods } from './flows/awaitPods.ts';
import { CreateOnce } from './flows/createOnce.ts';
import { DeliveryWorkers } from './flows/deliveryWorkers.ts';
import { Follower } from './flows/follow.ts';
import { deliveryWeeks, startHousekeeping } from './flows/housekeeping.ts';
import { ImportPlanner } from './flows/importPlanner.ts';
import { Ingest } from './flows/ingest.ts';
import type { WritePorts } from './flows/writeWorlds.ts';
import { createApp } from './http/app.ts';
import { areaEventsRoute } from './http/areaEvents.ts';
import { areaImportRoute } from './http/areaImport.ts';
import { areaReadRoutes } from './http/areaReads.ts';
import { areaWriteRoutes } from './http/areaWrites.ts';
import { commandsRoute } from './http/commands.ts';
import { deviceRoutes } from './http/devices.ts';
import { eventsRoute } from './http/events.ts';
import { historyRoute } from './http/history.ts';
import { ingestApp } from './http/ingestApp.ts';
import { nearestRoute } from './http/nearest.ts';
import { close, createHttpServer, listen } from './http/server.ts';
import { webhookDeliveryRoutes } from './http/webhookDeliveries.ts';
import { webhookRoutes } from './http/webhooks.ts';
import { AreaCatalog } from './memory/areaCatalog.ts';
import { Fleet } from './memory/fleet.ts';
import { Keyring } from './memory/keyring.ts';
import { Subscriptions } from './memory/subscriptions.ts';
import { Tenancy } from './memory/tenancy.ts';
import { createMetrics } from './metrics.ts';
import { sendWebhook } from './net/sendWebhook.ts';
import { loadSecrets } from './secrets.ts';
import { openSharing } from './sharing.ts';
import { CHANGE_CHANNEL } from './store/changes.ts';
import { startEmbedded } from './store/embedded.ts';
import { listen as listenTo } from './store/listen.ts';
import { migrate } from './store/migrate.ts';
import { DELIVERIES, ensureWeeks } from './store/partitions.ts';
import { selectInstanceId, selectLongestHistoryDays, selectNowMs } from './store/snapshot.ts';
import { openSql } from './store/sql.ts';

/** How long a stop waits for requests in flight. */
const STOP_GRACE_MS = 10_000;
/** What a stop waits for beside them: a Postgres that says nothing must not hold it up. */
const STEP_LIMIT_MS = 3_000;
/** Longer than Postgres is given to end by itself (store/embeddedGuard). */
const EMBEDDED_STOP_LIMIT_MS = 40_000;
const SQL_CONNECTIONS = 12;

export interface Service {
  /** The ports that were taken; null where a listener is not part of this pod's roles. */
  readonly port: number | null;
  readonly ingestPort: number;
  /** Set when the token was generated rather than configured. */
  readonly generatedIngestToken: string | null;
  /** Settles with the reason when the service cannot go on (its embedded cluster ended). */
  readonly failed: Promise<Error>;
  stop(): Promise<void>;
}

/** Undoes what was started, last first. Every step runs, whatever the others do, and none is waited for for ever. */
class Teardown {
  readonly #steps: { readonly step: () => unknown; readonly limitMs: number }[] = [];

  add(step: () => unknown, limitMs: number = STEP_LIMIT_MS): void {
    this.#steps.push({ step, limitMs });
  }

  async run(log: Logger): Promise<void> {
    for (const { step, limitMs } of this.#steps.splice(0).reverse()) {
      try {
        await withDeadline(Promise.resolve(step()), limitMs, 'a step of the stop');
      } catch (error) {
        log.warn({ err: error }, 'a step of the stop failed');
      }
    }
  }
}

/**
 * Builds one pod and starts it: the only place where things are constructed. Resolves when it serves; what was
 * started is taken down again when a later step fails.
 */
export async function startService(
  config: Config,
  log: Logger,
  clock: Clock = systemClock,
): Promise<Service> {
  const teardown = new Teardown();
  try {
    return await build(config, log, clock, teardown);
  } catch (error) {
    await teardown.run(log);
    throw error;
  }
}

async function build(config: Config, log: Logger, clock: Clock, teardown: Teardown): Promise<Service> {
  const { url, failed } = await openDatabase(config, log, teardown);
  const sql = openSql(url, { maxConnections: SQL_CONNECTIONS, name: 'fleet service' });
  teardown.add(() => sql.end());
  const plainLog = (message: string, fields: object = {}) => log.info(fields, message);
  await migrate(sql, plainLog);
  const { token, generated, secretsKey } = await secretsOf(config);
  const { instanceId, longestHistoryDays } = await sql.begin(async (tx) => ({
    instanceId: await selectInstanceId(tx),
    longestHistoryDays: await selectLongestHistoryDays(tx),
  }));

  const fleet = new Fleet();
  const areas = new AreaCatalog();
  const keyring = new Keyring();
  const tenancy = new Tenancy();
  const subscriptions = new Subscriptions();
  const memory = { fleet, areas, keyring, tenancy, subscriptions };
  const podId = randomUUID();
  const follower = new Follower({ ...memory, sql, clock, podId, log });
  teardown.add(() => follower.stop());

  const metrics = createMetrics({
    sizes: () => ({
      devices: fleet.deviceCount,
      positions: fleet.positionedCount,
      worlds: fleet.worldCount,
      keys: keyring.size,
    }),
    feedLagMs: () => follower.lagMs(),
    loadMs: () => follower.loadMs,
    waitingPoints: () => ingest?.waitingPoints ?? 0,
  });
  const sharing = openSharing(config, {
    instanceId,
    log,
    catchUp: () => follower.catchUp(),
    count: metrics.countRedis,
  });
  teardown.add(() => sharing.close());
  const workers = config.roles.has('delivery')
    ? new DeliveryWorkers({
        sql,
        clock,
        secretsKey,
        allowNets: config.webhookAllowNets,
        minuteMs: config.webhookMinuteMs,
        schedule: sharing.deliveries,
        send: sendWebhook,
        log,
        onAttempt: metrics.countAttempt,
        onSweep: metrics.observeSweep,
      })
    : null;
  const wake = (webhookIds: readonly number[]): void => {
    const added = webhookIds.map((webhookId) => sharing.deliveries.add(webhookId, 0));
    void Promise.all(added).then(() => workers?.poke());
  };
  const ingest = config.roles.has('ingest')
    ? new Ingest({
        sql,
        memory,
        follower,
        instanceId,
        clock,
        onQueued: wake,
        onMoved: sharing.ringOthers,
        onOutcomes: metrics.countFixes,
      })
    : null;

  const probes = { loaded: () => follower.loaded, ready: () => follower.ready() };
  const ingestServer = createHttpServer(
    ingestApp({ ingest, token, longestHistoryDays, clock, probes, metrics, log }),
  );
  const admittance = new Admittance({
    sql,
    fleet,
    keyring,
    gate: sharing.gate,
    follower,
    restoreVersion: (worldId, version, ticket) => sharing.versions.restore(worldId, version, ticket),
  });
  const writes: WritePorts = {
    sql,
    versions: sharing.versions,
    settle: async ({ xid, published }) => {
      await follower.catchUp();
      if (!published) await awaitPods(sql, xid);
    },
  };
  const planner = new ImportPlanner();
  teardown.add(() => planner.close());
  const apiServer = createHttpServer(
    createApp({
      admittance,
      routes: [
        nearestRoute(fleet),
        ...deviceRoutes(fleet),
        historyRoute({ sql, fleet }),
        commandsRoute({ sql, fleet }),
        eventsRoute(sql),
        ...areaReadRoutes(areas),
        areaEventsRoute({ sql, areas }),
        areaImportRoute({ ...writes, planner }),
        ...areaWriteRoutes({ ...writes, createOnce: new CreateOnce(writes) }),
        ...webhookRoutes({ ...writes, wake, secretsKey, allowNets: config.webhookAllowNets }),
        ...webhookDeliveryRoutes({ sql, wake }),
      ],
      trustedProxies: config.trustedProxies,
      clock,
      probes,
      log,
      observe: metrics.observeRequest,
    }),
  );
  teardown.add(
    () => Promise.all([ingestServer, apiServer].map((server) => close(server, STOP_GRACE_MS))),
    STOP_GRACE_MS + STEP_LIMIT_MS,
  );
  const ingestPort = await listen(ingestServer, config.ingestPort, config.ingestHost);
  const port = config.roles.has('api') ? await listen(apiServer, config.port, config.host) : null;

  await ensureWeeks(sql, DELIVERIES, deliveryWeeks(await selectNowMs(sql)));
  await sharing.ready();
  await follower.start();
  if (workers !== null) {
    workers.start();
    teardown.add(() => workers.stop(), STOP_GRACE_MS + STEP_LIMIT_MS);
  }
  // Whoever changes something rings: administrative writes by NOTIFY, moves of other pods by Redis.
  sharing.onRing(() => follower.poke());
  teardown.add(listenTo(url, CHANGE_CHANNEL, () => follower.poke()));
  teardown.add(startHousekeeping({ sql, clock, log }));
  return {
    port,
    ingestPort,
    generatedIngestToken: generated ? token : null,
    failed,
    stop: () => teardown.run(log),
  };
}

/** The configured Postgres, or the embedded one, started for this service. */
async function openDatabase(config: Config, log: Logger, teardown: Teardown) {
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

/** What was configured, else what was generated and is kept in the data folder. */
async function secretsOf(config: Config): Promise<{ token: string; generated: boolean; secretsKey: Buffer }> {
  const { ingestToken: token, secretsKey } = config;
  if (token !== null && secretsKey !== null) return { token, generated: false, secretsKey };
  const kept = await loadSecrets(config.dataDir);
  if (!kept.ok) throw new Error(kept.error);
  return {
    token: token ?? kept.value.ingestToken,
    generated: token === null,
    secretsKey: secretsKey ?? kept.value.secretsKey,
  };
}
