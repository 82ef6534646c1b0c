import { createSecretKey, type KeyObject, randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { CidrSet } from './access/cidrSet.ts';
import { IngestTokens } from './access/ingestTokens.ts';
import { type Clock, systemClock } from './base/clock.ts';
import { FairSemaphore } from './base/fairSemaphore.ts';
import { WorkTurns } from './base/workTurns.ts';
import type { Config } from './config.ts';
import { openConnections } from './connections.ts';
import { Admittance } from './flows/admit.ts';
import { SenderAdmittance } from './flows/admitSender.ts';
import { SessionAdmittance } from './flows/admitSession.ts';
import { awaitPods } from './flows/awaitPods.ts';
import { CreateOnce } from './flows/createOnce.ts';
import { DeliveryWorkers } from './flows/deliveryWorkers.ts';
import { FanOut } from './flows/fanOut.ts';
import { Follower } from './flows/follow.ts';
import { deliveryWeeks, startHousekeeping } from './flows/housekeeping.ts';
import { ImportPlanner } from './flows/importPlanner.ts';
import { Ingest } from './flows/ingest.ts';
import { KeptSummaries } from './flows/keptSummaries.ts';
import { KeyUse } from './flows/keyUse.ts';
import { LaneDesk } from './flows/laneDesk.ts';
import { LANE_LIMITS, LanePlaces } from './flows/lanePlaces.ts';
import type { LogInPorts } from './flows/logIn.ts';
import { LoginTurns } from './flows/loginTurns.ts';
import type { WritePorts } from './flows/writeWorlds.ts';
import { openDatabase, secretsOf } from './foundation.ts';
import { createApp } from './http/app.ts';
import { areaEventsRoute } from './http/areaEvents.ts';
import { areaImportRoute } from './http/areaImport.ts';
import { areaReadRoutes } from './http/areaReads.ts';
import { areaWriteRoutes } from './http/areaWrites.ts';
import { Bodies } from './http/bodies.ts';
import { commandsRoute } from './http/commands.ts';
import { deviceRoutes } from './http/devices.ts';
import { eventsRoute } from './http/events.ts';
import { historyRoute } from './http/history.ts';
import { ingestApp } from './http/ingestApp.ts';
import { BODY_PLACES, IngestBodies } from './http/ingestBodies.ts';
import { nearestRoute } from './http/nearest.ts';
import { pollingListener } from './http/pollingListener.ts';
import type { ChangePorts, ReadPorts } from './http/ports.ts';
import type { Route } from './http/route.ts';
import { close, createHttpServer, listen } from './http/server.ts';
import { v1KeyRoutes } from './http/v1Keys.ts';
import { v1SessionRoutes } from './http/v1Session.ts';
import { webhookDeliveryRoutes } from './http/webhookDeliveries.ts';
import { webhookRoutes } from './http/webhooks.ts';
import { AreaCatalog } from './memory/areaCatalog.ts';
import { Fleet } from './memory/fleet.ts';
import { Keyring } from './memory/keyring.ts';
import { Subscriptions } from './memory/subscriptions.ts';
import { Tenancy } from './memory/tenancy.ts';
import { createMetrics } from './metrics.ts';
import { sendWebhook } from './net/sendWebhook.ts';
import { OUTBOX_LANE } from './queue/deliverySchedule.ts';
import { openSharing } from './sharing.ts';
import { CHANGE_CHANNEL } from './store/changes.ts';
import { listen as listenTo } from './store/listen.ts';
import { migrate } from './store/migrate.ts';
import { DELIVERIES, ensureWeeks } from './store/partitions.ts';
import { selectInstanceId, selectLongestHistoryDays, selectNowMs } from './store/snapshot.ts';
import { STEP_LIMIT_MS, Teardown } from './teardown.ts';

/** How long a stop waits for requests in flight. */
const STOP_GRACE_MS = 10_000;
/** What all long computations together may take of one turn of the event loop. */
const TURN_BUDGET_MS = 3;

export interface Service {
  /** The ports that were taken; null where a listener is not part of this pod's roles. */
  readonly port: number | null;
  readonly ingestPort: number;
  /** Set when the token was generated rather than configured. */
  readonly generatedIngestToken: string | null;
  /** Settles with the reason when the service cannot go on (its embedded cluster ended). */
  readonly failed: Promise<Error>;
  /** `idleMs`: how long connections without a request are kept, for what a proxy may be sending on them. */
  stop(idleMs?: number): Promise<void>;
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
  const connections = openConnections(url);
  const { service } = connections;
  teardown.add(() => connections.end());
  const plainLog = (message: string, fields: object = {}) => log.info(fields, message);
  await migrate(service, plainLog);
  const { tokens, generatedToken, ...kept } = await secretsOf(config);
  const secretsKey = createSecretKey(kept.secretsKey);
  const { instanceId, longestHistoryDays } = await service.begin(async (tx) => ({
    instanceId: await selectInstanceId(tx),
    longestHistoryDays: await selectLongestHistoryDays(tx),
  }));

  const turns = new WorkTurns<string | number>(TURN_BUDGET_MS);
  const fleet = new Fleet();
  const areas = new AreaCatalog();
  const keyring = new Keyring();
  const tenancy = new Tenancy();
  const subscriptions = new Subscriptions();
  const memory = { fleet, areas, keyring, tenancy, subscriptions };
  const podId = randomUUID();
  const follower = new Follower({ ...memory, sql: connections.follower, turns, clock, podId, log });
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
  const wakeLanes = (webhookIds: readonly number[]): void => {
    const added = sharing.deliveries.addAll(webhookIds.map((webhookId) => ({ webhookId, dueInMs: 0 })));
    void added.then(() => workers?.poke());
  };
  const fanOut = config.roles.has('delivery')
    ? new FanOut({ sql: service, log, onQueued: wakeLanes, onWaiting: metrics.observeOutbox })
    : null;
  const workers = config.roles.has('delivery')
    ? new DeliveryWorkers({
        sql: connections.delivery,
        desk: new LaneDesk(connections.delivery),
        places: new LanePlaces(LANE_LIMITS),
        clock,
        secretsKey,
        allowNets: config.webhookAllowNets,
        minuteMs: config.webhookMinuteMs,
        schedule: sharing.deliveries,
        send: sendWebhook,
        log,
        onAttempt: metrics.countAttempt,
        onSweep: metrics.observeSweep,
        onOutboxFilled: () => fanOut?.wake(),
      })
    : null;
  const ingest = config.roles.has('ingest')
    ? new Ingest({
        sql: connections.ingest,
        memory,
        follower,
        instanceId,
        clock,
        turns,
        onQueued: wakeLanes,
        onOutboxFilled: () => (fanOut === null ? wakeLanes([OUTBOX_LANE]) : fanOut.wake()),
        onMoved: sharing.ringOthers,
        onOutcomes: metrics.countFixes,
      })
    : null;

  const probes = { loaded: () => follower.loaded, ready: () => follower.ready() };
  const ingestServer = createHttpServer(
    ingestApp({
      ingest,
      senders: new SenderAdmittance(new IngestTokens(tokens), clock),
      bodies: new IngestBodies(turns, {
        known: new FairSemaphore(BODY_PLACES),
        forms: new FairSemaphore(BODY_PLACES),
      }),
      trustedProxies: config.trustedProxies,
      longestHistoryDays,
      clock,
      probes,
      metrics,
      log,
    }),
  );
  const keyUse = new KeyUse({ sql: service, log });
  teardown.add(() => keyUse.flush());
  const admittance = new Admittance({
    sql: connections.admission,
    fleet,
    keyring,
    gate: sharing.gate,
    follower,
    restoreVersion: (worldId, version, ticket) => sharing.versions.restore(worldId, version, ticket),
    noteUse: (keyId, nowMs) => keyUse.note(keyId, nowMs),
  });
  const settle: WritePorts['settle'] = async ({ xid, published }) => {
    await follower.catchUp();
    if (!published) await awaitPods(service, xid);
  };
  const bodies = new Bodies();
  const apiPorts = {
    admittance,
    sessions: new SessionAdmittance({ sql: connections.admission, gate: sharing.gate }),
    bodies,
    turns,
    routes: apiRoutes({
      reads: (accountId) => connections.reads.of(accountId),
      writes: (accountId) => ({
        sql: connections.writes.of(accountId),
        versions: sharing.versions,
        settle,
        turns,
      }),
      logins: (network) => connections.logins.of(network),
      fleet,
      areas,
      turns,
      wake: wakeLanes,
      secretsKey,
      allowNets: config.webhookAllowNets,
      teardown,
    }),
    trustedProxies: config.trustedProxies,
    clock,
    probes,
    log,
    observe: metrics.observeRequest,
  };
  const apiServer = createHttpServer(pollingListener(apiPorts, createApp(apiPorts)));
  let idleMs = 0;
  const closeBoth = () =>
    Promise.all([ingestServer, apiServer].map((server) => close(server, STOP_GRACE_MS, idleMs)));
  teardown.add(
    () => Promise.all([closeBoth(), workers?.stop(), fanOut?.stop()]),
    STOP_GRACE_MS + STEP_LIMIT_MS,
  );
  const ingestPort = await listen(ingestServer, config.ingestPort, config.ingestHost);
  const port = config.roles.has('api') ? await listen(apiServer, config.port, config.host) : null;

  await ensureWeeks(service, DELIVERIES, deliveryWeeks(await selectNowMs(service)));
  await sharing.ready();
  await follower.start();
  workers?.start();
  fanOut?.start();
  // Whoever changes something rings: administrative writes by NOTIFY, moves of other pods by Redis.
  sharing.onRing(() => follower.poke());
  teardown.add(listenTo(url, CHANGE_CHANNEL, () => follower.poke()));
  teardown.add(startHousekeeping({ sql: service, clock, log }));
  return {
    port,
    ingestPort,
    generatedIngestToken: generatedToken,
    failed,
    stop: (forMs = 0) => {
      idleMs = forMs;
      return teardown.run(log);
    },
  };
}

export interface RoutePorts extends ReadPorts, ChangePorts {
  readonly logins: LogInPorts['logins'];
  readonly fleet: Fleet;
  readonly areas: AreaCatalog;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
  readonly wake: (webhookIds: readonly number[]) => void;
  readonly secretsKey: KeyObject;
  readonly allowNets: CidrSet;
  readonly teardown: Teardown;
}

/** Every route of the public API, whatever its prefix. */
export function apiRoutes({ teardown, ...ports }: RoutePorts): Route[] {
  const planner = new ImportPlanner(ports.turns);
  teardown.add(() => planner.close());
  return [
    nearestRoute(ports),
    ...deviceRoutes(ports.fleet),
    historyRoute(ports),
    commandsRoute(ports),
    eventsRoute(ports),
    ...areaReadRoutes(ports),
    areaEventsRoute(ports),
    areaImportRoute({ ...ports, planner }),
    ...areaWriteRoutes({ ...ports, createOnce: new CreateOnce(ports.writes) }),
    ...v1SessionRoutes({
      ...ports,
      turns: new LoginTurns(),
    }),
    ...v1KeyRoutes(ports),
    ...webhookRoutes(ports),
    ...webhookDeliveryRoutes({ ...ports, summaries: new KeptSummaries() }),
  ];
}
