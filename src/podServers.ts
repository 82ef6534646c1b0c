import type { KeyObject } from 'node:crypto';
import type { Server } from 'node:http';
import type { Express } from 'express';
import { Authorizer, TRUST_MEMORY_MS } from './access/authorizer.ts';
import type { CidrSet } from './access/cidrSet.ts';
import { IngestTokens } from './access/ingestTokens.ts';
import { KeyUse } from './access/keyUse.ts';
import { SenderAuthorizer } from './access/senderAuthorizer.ts';
import { SessionAuthorizer } from './access/sessionAuthorizer.ts';
import { describeApi } from './apiDescription.ts';
import type { AreaCatalog } from './areas/areaCatalog.memory.ts';
import { areaDevicesRoute } from './areas/areaDevices.routes.ts';
import { areaReadRoutes } from './areas/areaReads.routes.ts';
import { areasContainingRoutes } from './areas/areasContaining.routes.ts';
import { areaWriteRoutes } from './areas/areaWrites.routes.ts';
import { CreateOnce } from './areas/createOnce.ts';
import { areaImportRoute } from './areas/import/areaImport.routes.ts';
import { ImportPlanner } from './areas/import/importPlanner.ts';
import { areaOverlapsRoute } from './areas/overlap/areaOverlaps.routes.ts';
import { Overlaps } from './areas/overlap/overlaps.ts';
import { usageRoute } from './areas/usage.routes.ts';
import type { WritePorts } from './changelog/writeWorlds.ts';
import { awaitPods } from './coherence/awaitPods.ts';
import { consoleRoutes } from './console/consolePage.ts';
import { homeRoute } from './console/homePage.ts';
import { commandsRoute } from './devices/commands.routes.ts';
import { deviceRoutes } from './devices/devices.routes.ts';
import type { Fleet } from './devices/fleet.memory.ts';
import { nearestRoute } from './devices/nearest.routes.ts';
import { nearestBatchRoute } from './devices/nearestBatch.routes.ts';
import { areaEventsRoute } from './events/areaEvents.routes.ts';
import { type EventPorts, eventsRoute } from './events/events.routes.ts';
import { areaExplainRoute } from './explain/areaExplain.routes.ts';
import { areaBacktestRoute } from './explain/backtest/areaBacktest.routes.ts';
import { Backtests } from './explain/backtest/backtests.ts';
import { Explanations } from './explain/explanations.ts';
import { deviceChangesRoute } from './feeds/deviceChanges.routes.ts';
import { eventFeedRoute } from './feeds/eventFeed.routes.ts';
import { streamRoute } from './feeds/streams/stream.routes.ts';
import { HistoryExports } from './history/export/exportHistory.ts';
import { historyExportRoute } from './history/export/historyExport.routes.ts';
import { historyRoute } from './history/history.routes.ts';
import { Presences } from './history/presence/findPresence.ts';
import { presenceRoute } from './history/presence/presence.routes.ts';
import { historySummaryRoute } from './history/summary/historySummary.routes.ts';
import { HistorySummaries } from './history/summary/summarizeHistory.ts';
import { createApp } from './http/app.ts';
import { BodyBudget } from './http/body/bodyBudget.ts';
import { BulkCalls } from './http/bulk/bulkCalls.ts';
import { docsRoutes } from './http/openapi/docsPage.ts';
import { pollingListener } from './http/pollingListener.ts';
import type { ChangePorts } from './http/ports.ts';
import type { Probes } from './http/probes.ts';
import type { Route } from './http/route.ts';
import { createHttpServer } from './http/server.ts';
import type { Ingest } from './ingest/ingest.ts';
import { ingestApp } from './ingest/ingestApp.ts';
import { BODY_PLACES, IngestBodies } from './ingest/ingestBodies.ts';
import { AtOnce } from './lib/atOnce.ts';
import type { Clock } from './lib/clock.ts';
import { FairSemaphore } from './lib/fairSemaphore.ts';
import type { WorkTurns } from './lib/workTurns.ts';
import type { Pod } from './pod.ts';
import type { PodDeliveries } from './podDeliveries.ts';
import type { Readers } from './podReaders.ts';
import type { Teardown } from './teardown.ts';
import { applicationRoutes } from './tenants/application.routes.ts';
import { v1KeyRoutes } from './tenants/keys.routes.ts';
import type { LogInPorts } from './tenants/logIn.ts';
import { LoginTurns } from './tenants/loginTurns.ts';
import { v1SessionRoutes } from './tenants/sessions.routes.ts';
import { bulkReplayRoute } from './webhooks/bulkReplay.routes.ts';
import { webhookPauseRoutes } from './webhooks/pauses/webhookPauses.routes.ts';
import { SummaryCache } from './webhooks/summaryCache.ts';
import { webhookDeliveryRoutes } from './webhooks/webhookDeliveries.routes.ts';
import { webhookRoutes } from './webhooks/webhooks.routes.ts';

/** The listener for positions, probes and metrics. Without `ingest` (another role) it takes no positions. */
export function createIngestServer(pod: Pod, ingest: Ingest | null): Server {
  const { clock, turns, metrics, log } = pod;
  return createHttpServer(
    ingestApp({
      ingest,
      senders: new SenderAuthorizer(new IngestTokens(pod.ingestTokens), clock),
      bodies: new IngestBodies(turns, {
        known: new FairSemaphore(BODY_PLACES),
        forms: new FairSemaphore(BODY_PLACES),
      }),
      trustedProxies: pod.config.trustedProxies,
      longestHistoryDays: pod.longestHistoryDays,
      clock,
      probes: probesOf(pod),
      metrics,
      onDamaged: pod.onDamaged,
      log,
    }),
  );
}

/** The listener of the public API: the polled routes directly, everything else through the chain of Express. */
export function createApiServer(pod: Pod, deliveries: PodDeliveries, readers: Readers): Server {
  const { config, coordination, clock, metrics, log } = pod;
  const authorizer = createAuthorizer(pod);
  const { rateLimiter } = coordination;
  const routes = createRoutes(pod, deliveries, readers);
  const ports = {
    authorizer,
    sessions: new SessionAuthorizer({ sql: pod.connections.access, rateLimiter, authorizer }),
    bodies: new BodyBudget(),
    turns: pod.turns,
    routes,
    trustedProxies: config.trustedProxies,
    addPages: (app: Express) => {
      homeRoute(app);
      consoleRoutes(app, { consoleTiles: config.consoleTiles, log });
      docsRoutes(app, describeApi(routes));
    },
    clock,
    probes: probesOf(pod),
    log,
    onDamaged: pod.onDamaged,
    observe: metrics.observeRequest,
  };
  return createHttpServer(pollingListener(ports, createApp(ports)));
}

function probesOf({ follower, writeTrial, coordination }: Pod): Probes {
  return {
    loaded: () => follower.loaded,
    canAnswer: () => follower.heldLagMs() <= TRUST_MEMORY_MS,
    degradations: () => [
      ...follower.degradations(),
      ...(coordination.isReachable() ? [] : ['redis_unreachable']),
    ],
    writeTrouble: () => writeTrial.trouble(),
    lastWriteTrouble: () => writeTrial.lastTrouble(),
  };
}

function createAuthorizer(pod: Pod): Authorizer {
  const { connections, memory, coordination, follower, log } = pod;
  const keyUse = new KeyUse({ sql: connections.service, log });
  pod.teardown.add(() => keyUse.flush());
  return new Authorizer({
    sql: connections.access,
    fleet: memory.fleet,
    keyring: memory.keyring,
    rateLimiter: coordination.rateLimiter,
    follower,
    restoreVersion: (worldId, version, ticket) => coordination.versions.restore(worldId, version, ticket),
    noteUse: (keyId, nowMs) => keyUse.note(keyId, nowMs),
  });
}

function createRoutes(pod: Pod, deliveries: PodDeliveries, readers: Readers): Route[] {
  const { connections, memory, coordination, follower, turns } = pod;
  /** A write is answered once this pod has followed it, and the others have or know of its version. */
  const awaitEverywhere: WritePorts['awaitEverywhere'] = async ({ xid, published }) => {
    await follower.catchUp();
    if (!published) await awaitPods(connections.service, xid);
  };
  return apiRoutes({
    reads: (accountId) => connections.reads.of(accountId),
    eventCuts: pod.eventCuts,
    writes: (accountId) => ({
      sql: connections.writes.of(accountId),
      versions: coordination.versions,
      awaitEverywhere,
      turns,
    }),
    logins: (network) => connections.logins.of(network),
    fleet: memory.fleet,
    areas: memory.areas,
    turns,
    wake: deliveries.wake,
    secretsKey: pod.secretsKey,
    allowNets: pod.config.webhookAllowNets,
    readers,
    clock: pod.clock,
    teardown: pod.teardown,
  });
}

export interface RoutePorts extends EventPorts, ChangePorts {
  readonly logins: LogInPorts['logins'];
  readonly fleet: Fleet;
  readonly areas: AreaCatalog;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
  /** Takes the ids of endpoints that have deliveries to send. */
  readonly wake: (webhookIds: readonly number[]) => void;
  readonly secretsKey: KeyObject;
  readonly allowNets: CidrSet;
  readonly readers: Readers;
  readonly clock: Clock;
  readonly teardown: Teardown;
}

/** Every route of the public API, whatever its prefix. */
export function apiRoutes({ teardown, ...ports }: RoutePorts): Route[] {
  const planner = new ImportPlanner(ports.turns);
  teardown.add(() => planner.close());
  const overlaps = new Overlaps();
  teardown.add(() => overlaps.close());
  const bulkCalls = new BulkCalls(ports.turns);
  const atOnce = new AtOnce(ports.turns);
  const offered = [
    nearestRoute({ ...ports, atOnce }),
    nearestBatchRoute({ ...ports, bulkCalls }),
    ...areasContainingRoutes({ ...ports, bulkCalls, atOnce }),
    areaDevicesRoute(ports),
    usageRoute(ports),
    areaOverlapsRoute({ ...ports, overlaps, bulkCalls }),
    areaBacktestRoute({ ...ports, backtests: new Backtests(ports) }),
    areaExplainRoute({ ...ports, explanations: new Explanations(ports) }),
    deviceChangesRoute(ports),
    ...deviceRoutes(ports.fleet),
    historyRoute(ports),
    historyExportRoute({ ...ports, exports: new HistoryExports(ports) }),
    historySummaryRoute({ ...ports, summaries: new HistorySummaries(ports) }),
    presenceRoute({ ...ports, presences: new Presences(ports) }),
    commandsRoute(ports),
    eventsRoute(ports),
    eventFeedRoute(ports),
    streamRoute(ports),
    ...areaReadRoutes({ ...ports, atOnce }),
    areaEventsRoute(ports),
    areaImportRoute({ ...ports, planner }),
    ...areaWriteRoutes({ ...ports, createOnce: new CreateOnce(ports.writes) }),
    ...webhookRoutes(ports),
    ...webhookPauseRoutes(ports),
    bulkReplayRoute(ports),
    ...webhookDeliveryRoutes({ ...ports, summaries: new SummaryCache() }),
  ];
  return [
    ...offered,
    ...applicationRoutes(offered),
    ...v1SessionRoutes({ ...ports, turns: new LoginTurns() }),
    ...v1KeyRoutes(ports),
  ];
}
