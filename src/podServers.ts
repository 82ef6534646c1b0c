import type { Server } from 'node:http';
import type { Express } from 'express';
import { Authorizer, KeyUse, TRUST_MEMORY_MS } from './access/authorizer.ts';
import { IngestTokens, SenderAuthorizer } from './access/senderAuthorizer.ts';
import { SessionAuthorizer } from './access/sessionAuthorizer.ts';
import { describeApi } from './apiDescription.ts';
import { apiRoutes } from './apiRoutes.ts';
import { awaitPods, type WritePorts } from './changelog/writeWorlds.ts';
import { consoleRoutes } from './console/consolePage.ts';
import { homeRoute } from './console/homePage.ts';
import { BodyBudget } from './http/bodyBudget.ts';
import { apiListener } from './http/dispatcher.ts';
import type { Probes } from './http/expressApp.ts';
import { docsRoutes } from './http/openapi/docsPage.ts';
import type { Route } from './http/route.ts';
import { createHttpServer } from './http/server.ts';
import type { Ingest } from './ingest/ingest.ts';
import { BODY_PLACES, IngestBodies } from './ingest/ingestBodies.ts';
import { ingestApp } from './ingest/positions.routes.ts';
import { FairSemaphore } from './lib/fairSemaphore.ts';
import type { Pod } from './pod.ts';
import type { PodDeliveries } from './podDeliveries.ts';
import type { Readers } from './podReaders.ts';

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

/** The listener of the public API, with the pages for people. */
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
  return createHttpServer(apiListener(ports));
}

function probesOf({ follower, writeTrial, coordination }: Pod): Probes {
  return {
    loaded: () => follower.applied.isLoaded,
    canAnswer: () => follower.applied.heldLagMs() <= TRUST_MEMORY_MS,
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
    versions: coordination.versions,
    keyUse,
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
