import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Express } from 'express';
import type { Logger } from 'pino';
import { Authorizer, TRUST_MEMORY_MS } from './access/authorizer.ts';
import { KeyUse } from './access/keyUse.ts';
import { SenderAuthorizer } from './access/senderAuthorizer.ts';
import { apiRoutes, createReaders, describeApi, type Readers } from './apiRoutes.ts';
import { CHANGE_CHANNEL } from './changelog/changes.sql.ts';
import { selectNowMs, selectPostgresState } from './changelog/database.sql.ts';
import { writesOfPod } from './changelog/writeWorlds.ts';
import { readQuotas } from './coherence/fillMemory.ts';
import type { Config } from './config.ts';
import { consoleRoutes } from './console/consolePage.ts';
import { homeRoute } from './console/homePage.ts';
import { sharePageRoute } from './console/sharePage.ts';
import { WorldTiles } from './console/world/worldTiles.ts';
import { HistoryPacker } from './history/packHistory.ts';
import { deliveryWeeks, startHousekeeping } from './housekeeping.ts';
import { countAnybody } from './http/authorize.ts';
import { apiListener } from './http/dispatcher.ts';
import type { Probes } from './http/expressApp.ts';
import { docsRoutes } from './http/openapi/docsPage.ts';
import { BodyBudget } from './http/requestBody.ts';
import type { Route } from './http/route.ts';
import { close, createHttpServer, listen } from './http/server.ts';
import { Ingest } from './ingest/ingest.ts';
import { BODY_SLOTS, IngestBodies, ingestListener } from './ingest/positions.routes.ts';
import { FairSemaphore } from './lib/fairSemaphore.ts';
import type { RepeatedWork } from './lib/repeatedWork.ts';
import { type Clock, DAY_MS, MINUTE_MS, systemClock } from './lib/time.ts';
import { openPod, type Pod, STEP_LIMIT_MS, Teardown, whenAvailable } from './pod.ts';
import { listen as listenTo } from './postgres/connections.ts';
import { stepsWork } from './postgres/migrationSteps.ts';
import { DELIVERIES, ensureWeeks } from './postgres/partitions.ts';
import { errorFields } from './postgres/sqlErrors.ts';
import { OUTBOX_ENTRY } from './redis/wakeUps.ts';
import { claimDeliveries } from './webhooks/delivery/claims.sql.ts';
import { claimInBatches } from './webhooks/delivery/deliverEndpoint.ts';
import {
  DeliverySlots,
  DeliveryWaker,
  DeliveryWorkers,
  SLOT_LIMITS,
} from './webhooks/delivery/deliveryWorkers.ts';
import { fanOutWork, OUTBOX_POLL_MS } from './webhooks/delivery/outbox.sql.ts';
import { ReceiverConnections } from './webhooks/delivery/receiverConnections.ts';
import { sendWebhook } from './webhooks/delivery/sendWebhook.ts';
import { BacklogWatch } from './webhooks/pauses/backlogWatch.ts';
import { LEFT_OUT_POLL_MS, leftOutWork } from './webhooks/pauses/makeLeftOut.ts';

/** How long a stop waits for requests in flight. */
const STOP_GRACE_MS = 10_000;

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

interface StartOptions {
  readonly clock: Clock;
  readonly callsSoon: boolean;
  readonly sheds: boolean;
}

/**
 * Builds one pod and starts it. This file, pod and apiRoutes are the only ones that
 * construct its parts. Resolves when it serves; when a step fails, what was started before is stopped.
 * `callsSoon`: connections to Postgres are opened before it serves, so that the first calls do not wait for them.
 * `sheds`: calls are refused while the pod is late. Its event loop has to be its own.
 */
export async function startService(
  config: Config,
  log: Logger,
  { clock = systemClock, callsSoon = true, sheds = true }: Partial<StartOptions> = {},
): Promise<Service> {
  const teardown = new Teardown();
  try {
    return await start(config, log, { clock, callsSoon, sheds }, teardown);
  } catch (error) {
    await teardown.run(log);
    throw error;
  }
}

async function start(
  config: Config,
  log: Logger,
  { clock, callsSoon, sheds }: StartOptions,
  teardown: Teardown,
): Promise<Service> {
  const pod = await openPod({
    config,
    log,
    clock,
    teardown,
    waitingPoints: () => ingest?.waitingPoints ?? 0,
  });
  const deliveries = createDeliveries(pod);
  const ingest = createIngest(pod, deliveries);
  const readers = createReaders(pod);
  const servers = { ingest: createIngestServer(pod, ingest), api: createApiServer(pod, deliveries, readers) };
  let idleMs = 0;
  teardown.add(() => deliveries.stop());
  const stopServing = () => {
    readers.close();
    return Promise.all([closeAll(servers, idleMs), deliveries.endAttempts()]);
  };
  teardown.add(stopServing, STOP_GRACE_MS + STEP_LIMIT_MS);

  // Both ports first: a port in use is reported before memory is loaded. Until then requests are answered with 503.
  const ingestPort = await listen(servers.ingest, config.ingestPort, config.ingestHost);
  const port = config.roles.has('api') ? await listen(servers.api, config.port, config.host) : null;
  await startWork(pod, deliveries, callsSoon);
  if (sheds) pod.shedder.start();
  return {
    port,
    ingestPort,
    generatedIngestToken: pod.generatedIngestToken,
    failed: pod.failed,
    stop: (forMs = 0) => {
      idleMs = forMs;
      return teardown.run(log);
    },
  };
}

function createIngest(pod: Pod, deliveries: PodDeliveries): Ingest | null {
  if (!pod.config.roles.has('ingest')) return null;
  const { memory, follower, server, clock, turns } = pod;
  return new Ingest({
    sql: pod.connections.ingest,
    memory,
    follower,
    server,
    clock,
    turns,
    onDamaged: pod.onDamaged,
    onQueued: deliveries.queued,
    onOutboxFilled: deliveries.wakeOutbox,
    notifier: pod.coordination.notifier,
    onOutcomes: pod.metrics.countFixes,
    traces: pod.traces,
  });
}

/** Loads memory, then follows the change log, sends deliveries and does housekeeping until the teardown. */
async function startWork(pod: Pod, deliveries: PodDeliveries, callsSoon: boolean): Promise<void> {
  const { connections, coordination, follower, eventCuts, clock, log, teardown } = pod;
  const { eventRetentionDays, roles } = pod.config;
  const sql = connections.service;
  await eventCuts.refresh(sql);
  await ensureWeeks(sql, DELIVERIES, deliveryWeeks(await selectNowMs(sql)));
  await coordination.ready();
  const tasks = { reads: roles.has('api'), ingest: roles.has('ingest') };
  // A pod that ends may still hold the connections that this one lacks.
  if (callsSoon) await whenAvailable(pod, () => connections.open(tasks));
  await follower.start();
  deliveries.start();
  // Other pods announce position updates through Redis; commands announce their writes by NOTIFY.
  coordination.notifier.onNotify(() => follower.catchUpSoon());
  teardown.add(listenTo(pod.hosts, CHANGE_CHANNEL, () => follower.catchUpSoon()));
  const packer = new HistoryPacker({
    sql,
    turns: pod.turns,
    rest: sleep,
    lateWaitMs: DAY_MS,
    onUnpackedDays: pod.metrics.setUnpackedDays,
    onPacked: pod.metrics.countPacked,
    onDamaged: pod.onDamaged,
  });
  const housekeeping = { sql, clock, log, eventRetentionDays, eventCuts };
  const look = {
    readQuotas: () => readQuotas(sql, pod.memory),
    observePostgres: async () => pod.metrics.observePostgres(await selectPostgresState(sql)),
  };
  teardown.add(startHousekeeping({ ...housekeeping, ...look }, packer, sleep));
  const steps = createSteps(pod);
  teardown.add(() => steps.stop());
  steps.start(MINUTE_MS);
}

/** The steps of migrations, which the first pod that gets to them runs beside its other work. */
function createSteps({ connections, log, metrics }: Pod): RepeatedWork {
  const ports = {
    sql: connections.service,
    log: (message: string, fields: object) => log.info(fields, message),
    rest: sleep,
    onWaiting: metrics.observeSteps,
  };
  return stepsWork(ports, (error) => log.error(errorFields(error), 'a step of a migration failed'));
}

function closeAll(servers: Readonly<Record<string, Server>>, idleMs: number): Promise<unknown> {
  return Promise.all(Object.values(servers).map((server) => close(server, STOP_GRACE_MS, idleMs)));
}

/** The listener for positions, probes and metrics. Without `ingest` (another role) it takes no positions. */
function createIngestServer(pod: Pod, ingest: Ingest | null): Server {
  const { clock, turns, metrics, log } = pod;
  return createHttpServer(
    ingestListener({
      ingest,
      senders: new SenderAuthorizer(pod.ingestTokens, clock),
      bodies: new IngestBodies(turns, {
        known: new FairSemaphore(BODY_SLOTS),
        forms: new FairSemaphore(BODY_SLOTS),
      }),
      trustedProxies: pod.config.trustedProxies,
      longestHistoryDays: pod.longestHistoryDays,
      clock,
      probes: probesOf(pod),
      traces: pod.traces,
      metrics,
      onDamaged: pod.onDamaged,
      log,
    }),
  );
}

/** The listener of the public API, with the pages for people. */
function createApiServer(pod: Pod, deliveries: PodDeliveries, readers: Readers): Server {
  const { config, clock, metrics, log, teardown } = pod;
  const authorizer = createAuthorizer(pod);
  const routes = createRoutes(pod, deliveries, readers);
  const worldTiles = new WorldTiles();
  teardown.add(() => worldTiles.close());
  const { consoleTiles, trustedProxies } = config;
  const pages = { consoleTiles, worldTiles, trustedProxies, log };
  const ports = {
    authorizer,
    bodies: new BodyBudget(),
    turns: pod.turns,
    routes,
    trustedProxies,
    addPages: (app: Express) => {
      homeRoute(app);
      consoleRoutes(app, pages);
      sharePageRoute(app, {
        ...pages,
        find: (token) => readers.shared.find(token),
        count: (request) => countAnybody({ authorizer, trustedProxies }, request, clock()),
      });
      docsRoutes(app, () => describeApi(routes));
    },
    clock,
    probes: probesOf(pod),
    log,
    onDamaged: pod.onDamaged,
    observe: metrics.observeRequest,
    traces: pod.traces,
    shedder: pod.shedder,
  };
  return createHttpServer(apiListener(ports));
}

function probesOf({ follower, writeTrial, coordination, shedder }: Pod): Probes {
  return {
    loaded: () => follower.applied.isLoaded,
    canAnswer: () => follower.applied.heldLagMs() <= TRUST_MEMORY_MS,
    degradations: () => [
      ...follower.degradations(),
      ...(coordination.isReachable() ? [] : ['redis_unreachable']),
      ...(shedder.isActive ? ['overloaded'] : []),
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
  return apiRoutes({
    reads: connections.reads.of,
    heavyReads: pod.replica?.reads.of ?? connections.reads.of,
    eventCuts: pod.eventCuts,
    writes: writesOfPod({
      of: connections.writes.of,
      service: connections.service,
      versions: coordination.versions,
      follower,
      turns,
    }),
    logins: connections.logins.of,
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

/** How the deliveries of a pod are started and woken. */
interface PodDeliveries extends Pick<DeliveryWaker, 'wake' | 'queued'> {
  /** Wakes the pods that make deliveries: there are events in the outbox. */
  wakeOutbox(): void;
  start(): void;
  /** Begins no further attempt, and waits for those in flight. */
  endAttempts(): Promise<unknown>;
  /** Waits for the sweep and the fan-out that are still under way. */
  stop(): Promise<unknown>;
}

/** Makes and sends deliveries in a pod with the role `delivery`; other pods only wake those. */
function createDeliveries(pod: Pod): PodDeliveries {
  const { connections, coordination, metrics, log } = pod;
  const watch = new BacklogWatch({ sql: connections.service, log });
  const waker = new DeliveryWaker(coordination.deliveries, watch);
  const { wake, queued } = waker;
  if (!pod.config.roles.has('delivery')) {
    return {
      wake,
      queued,
      wakeOutbox: () => wake([OUTBOX_ENTRY]),
      start: () => undefined,
      endAttempts: () => Promise.resolve(),
      stop: () => watch.stop(),
    };
  }
  const leftOut = leftOutWork({
    sql: connections.service,
    fleet: pod.memory.fleet,
    log,
    onQueued: queued,
    onPaused: metrics.observePaused,
  });
  const fanOut = fanOutWork({
    sql: connections.service,
    log,
    onQueued: queued,
    onWaiting: metrics.observeOutbox,
  });
  const receivers = new ReceiverConnections();
  const workers = createWorkers(pod, receivers, () => fanOut.wake());
  waker.workers = workers;
  return {
    wake,
    queued,
    wakeOutbox: () => fanOut.wake(),
    start: () => {
      workers.start();
      fanOut.start(OUTBOX_POLL_MS);
      leftOut.start(LEFT_OUT_POLL_MS);
    },
    endAttempts: () => workers.endAttempts().finally(() => receivers.destroy()),
    stop: () => Promise.all([workers.stop(), fanOut.stop(), leftOut.stop(), watch.stop()]),
  };
}

function createWorkers(
  pod: Pod,
  connections: ReceiverConnections,
  onOutboxFilled: () => void,
): DeliveryWorkers {
  const { config, coordination, metrics } = pod;
  const sql = pod.connections.delivery;
  return new DeliveryWorkers({
    sql,
    claim: claimInBatches((claims) => claimDeliveries(sql, claims)),
    slots: new DeliverySlots(SLOT_LIMITS),
    clock: pod.clock,
    secretsKey: pod.secretsKey,
    allowNets: config.webhookAllowNets,
    minuteMs: config.webhookMinuteMs,
    traces: pod.traces,
    schedule: coordination.deliveries,
    send: sendWebhook.bind(null, connections),
    log: pod.log,
    onAttempt: metrics.countAttempt,
    onSweep: metrics.observeSweep,
    onOutboxFilled,
  });
}
