import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { PostgresState } from './changelog/database.sql.ts';
import { RequestDurations } from './http/exchange.ts';
import { SHED_CLASSES, type ShedClass } from './http/shedding.ts';
import type { FixOutcome, RefusedStays } from './ingest/fix.ts';
import { DAY_MS } from './lib/time.ts';
import { type ServerSources, serverGauges } from './serverGauges.ts';
import type { SpanOutcome } from './traces/spanQueue.ts';

/** What the pod measures of itself. Gauges are read when they are scraped, so keeping them costs nothing. */
export interface Metrics {
  observeRequest(route: string, method: string, status: number, seconds: number): void;
  countFixes(
    outcomes: readonly FixOutcome[],
    eventCount: number,
    refusedStays: readonly RefusedStays[],
  ): void;
  countRejected(count: number): void;
  countAttempt(outcome: string, durationMs: number | null): void;
  observeSweep(backlog: { waiting: number; oldestDueMs: number }, durationMs: number): void;
  observeOutbox(deliveries: number): void;
  /** Closed days of an average device that are not packed. */
  setUnpackedDays(days: number): void;
  observePaused(webhooks: number): void;
  /** Points that were rows and are packed now. */
  countPacked(points: number): void;
  countDamaged(): void;
  /** Steps of migrations that are not done. */
  observeSteps(steps: number): void;
  /** Sets the gauges that show the state of Postgres. */
  observePostgres(state: PostgresState): void;
  /** A statement has failed with this SQLSTATE, or the server could not be asked (`unreachable`). */
  countSqlError(code: string): void;
  /** A call was refused because the pod is overloaded. */
  countShed(shedAs: ShedClass): void;
  /** A statement that a replica may answer was answered by this server. */
  countReplicaRead(server: ReplicaReader): void;
  countRedis(event: 'back' | 'lost' | 'notify_failed' | 'subscribe_failed'): void;
  countSpans(outcome: SpanOutcome, spans: number): void;
  /** A caller's trace was not continued, because the caller has too many. */
  countIgnoredTrace(): void;
  exposition(): Promise<{ contentType: string; text: string }>;
}

export interface Gauges extends ServerSources {
  /** Devices known, devices with a position, tenants, keys remembered, stays of devices in areas. */
  readonly sizes: () => { devices: number; positions: number; worlds: number; keys: number; stays: number };
  readonly feedLagMs: () => number;
  readonly loadMs: () => number;
  readonly waitingPoints: () => number;
  /** How late polls were at the last measurement, see Shedder. */
  readonly loopLateMs: () => number;
  /** Long computations that have begun or wait for their turn, by kind. */
  readonly computations: () => ReadonlyMap<string, number>;
}

const REPLICA_READERS = ['replica', 'primary'] as const;
type ReplicaReader = (typeof REPLICA_READERS)[number];

/** Gauges of prom-client with names that end like those of counters: promtool reports them, and they mislead readers. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

/**
 * SQLSTATEs of a Postgres that lacks disk, memory or connections, or whose disk fails. Their counters exist from the start,
 * so that the first of them shows as an increase.
 */
const EXHAUSTED = ['53100', '53200', '53300', '58030'];

/** From a fraction of a millisecond (memory) to seconds (a database in trouble). */
const DURATION_BUCKETS_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** What runs: `fleet_build_info`. */
export interface Build {
  readonly version: string;
  readonly commit: string;
}

/** A registry of its own for each pod, so that two can run in one process. */
export function createMetrics(gauges: Gauges, build: Build): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers });
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name, help, labelNames, registers });
  /** Read when it is scraped. */
  const readGauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  const requests = new RequestDurations(DURATION_BUCKETS_SECONDS);
  // The registry only ever asks a metric for its name and its values.
  registry.registerMetric(requests as unknown as Histogram);
  const fixes = counter('fleet_ingest_points_total', 'Points received, by outcome.', 'outcome');
  const events = counter('fleet_events_total', 'Fleet events produced.');
  const refused = counter(
    'fleet_stays_refused_total',
    'Points at which stays did not begin, by the limit that was reached.',
    'limit',
  );
  const redis = counter(
    'fleet_redis_events_total',
    'Losses and returns of Redis, and notifications and subscriptions that failed.',
    'event',
  );
  const attempts = counter(
    'fleet_webhook_attempts_total',
    'Webhook attempts by outcome; fenced ones ended after another pod had taken over.',
    'outcome',
  );
  const shed = counter(
    'fleet_requests_shed_total',
    'Calls refused because the event loop was late, by class.',
    'class',
  );
  const exported = counter('fleet_trace_spans_exported_total', 'Spans that the collector has taken.');
  const dropped = counter(
    'fleet_trace_spans_dropped_total',
    'Spans that were lost: too many waited for the collector, or it did not take them.',
    'reason',
  );
  const ignored = counter(
    'fleet_trace_parents_ignored_total',
    'Calls whose traceparent was ignored, because their caller continues too many traces.',
  );
  // A rate does not count the first of a series, and a comparison passes over one that is not there.
  for (const outcome of ['accepted', 'rejected', 'unknown_device']) fixes.inc({ outcome }, 0);
  for (const event of ['back', 'lost']) redis.inc({ event }, 0);
  attempts.inc({ outcome: 'fenced' }, 0);
  for (const reason of ['queue_full', 'export_failed']) dropped.inc({ reason }, 0);
  for (const shedAs of SHED_CLASSES) shed.inc({ class: shedAs }, 0);
  const attemptDurations = new Histogram({
    name: 'fleet_webhook_attempt_duration_seconds',
    help: 'Duration of webhook attempts, from DNS to the last byte.',
    buckets: DURATION_BUCKETS_SECONDS,
    registers,
  });
  const backlog = gauge(
    'fleet_webhook_waiting',
    'Deliveries that wait for an attempt, counted up to 10 000.',
  );
  const outbox = gauge('fleet_webhook_outbox', 'Deliveries of large transactions that wait to be made.');
  const paused = gauge(
    'fleet_webhook_paused',
    'Webhook endpoints that get no new deliveries, because too many wait or none succeeds.',
  );
  const oldestDue = gauge(
    'fleet_webhook_oldest_due_seconds',
    'For how long the oldest delivery that may be sent has been due.',
  );
  const sweepDuration = gauge(
    'fleet_webhook_schedule_rebuild_seconds',
    'Duration of the last rebuild of the delivery schedule.',
  );
  const unpackedDays = gauge(
    'fleet_history_unpacked_seconds',
    'Closed days of an average device whose points are not packed, up to 60.',
  );
  const packed = counter(
    'fleet_history_packed_points_total',
    'Points of closed days that this pod has packed.',
  );
  const damaged = counter(
    'fleet_history_damaged_total',
    'Attempts to read packed points whose bytes are not those that were stored.',
  );
  const steps = gauge('fleet_migration_steps_waiting', 'Steps of migrations that are not done yet.');
  gauge(
    'fleet_build_info',
    'Always 1; its labels say which version and commit runs.',
    'version',
    'commit',
  ).set({ ...build }, 1);
  readGauge('fleet_memory_devices', 'Devices held in memory.', () => gauges.sizes().devices);
  readGauge('fleet_memory_positions', 'Devices in the position indexes.', () => gauges.sizes().positions);
  readGauge(
    'fleet_memory_worlds',
    'Worlds (accounts and organizations) held in memory.',
    () => gauges.sizes().worlds,
  );
  readGauge('fleet_memory_stays', 'Stays of devices in areas.', () => gauges.sizes().stays);
  readGauge('fleet_memory_keys', 'API keys held in memory.', () => gauges.sizes().keys);
  readGauge(
    'fleet_memory_load_seconds',
    'Duration of the last full load of memory.',
    () => gauges.loadMs() / 1000,
  );
  readGauge(
    'fleet_feed_lag_seconds',
    'Time since memory was last known to match Postgres.',
    () => gauges.feedLagMs() / 1000,
  );
  readGauge(
    'fleet_event_loop_late_seconds',
    'How late polls were at the last measurement, because of the event loop or of calls that were answered first.',
    () => gauges.loopLateMs() / 1000,
  );
  readGauge('fleet_ingest_waiting_points', 'Points waiting for a transaction.', gauges.waitingPoints);
  registry.registerMetric(computationsGauge(gauges.computations));
  const sqlErrors = counter(
    'fleet_postgres_errors_total',
    'Statements that failed, by SQLSTATE; unreachable: the server could not be asked.',
    'code',
  );
  for (const code of EXHAUSTED) sqlErrors.inc({ code }, 0);
  const databaseBytes = gauge('fleet_postgres_database_bytes', 'Space that the database takes on its disk.');
  const replicaLag = gauge(
    'fleet_postgres_replica_lag_bytes',
    'WAL that a replica has not replayed yet, by the name of its connection.',
    'replica',
  );
  const replicaReads = counter(
    'fleet_replica_reads_total',
    'Statements that a replica may answer, by the server that was asked last.',
    'server',
  );
  for (const server of REPLICA_READERS) replicaReads.inc({ server }, 0);
  for (const metric of serverGauges(gauges)) registry.registerMetric(metric);
  return {
    countSqlError: (code) => sqlErrors.labels(code).inc(),
    observeRequest: requests.observe.bind(requests),
    countFixes: (outcomes, eventCount, refusedStays) => {
      for (const { points } of refusedStays) {
        for (const limit of ['account', 'device'] as const) refused.labels(limit).inc(points[limit]);
      }
      for (const outcome of outcomes) {
        fixes.labels(typeof outcome === 'object' ? 'rate_exceeded' : outcome).inc();
      }
      events.inc(eventCount);
    },
    countRejected: (count) => fixes.labels('rejected').inc(count),
    countAttempt: (outcome, durationMs) => {
      attempts.labels(outcome).inc();
      if (durationMs !== null) attemptDurations.observe(durationMs / 1000);
    },
    observeSweep: ({ waiting, oldestDueMs }, durationMs) => {
      backlog.set(waiting);
      oldestDue.set(oldestDueMs / 1000);
      sweepDuration.set(durationMs / 1000);
    },
    observeOutbox: (deliveries) => outbox.set(deliveries),
    observePostgres: ({ databaseBytes: bytes, replicas }) => {
      databaseBytes.set(bytes);
      // Without the reset, a replica that has gone would keep its last lag.
      replicaLag.reset();
      for (const { replica, lagBytes } of replicas) replicaLag.set({ replica }, lagBytes);
    },
    setUnpackedDays: (days) => unpackedDays.set((days * DAY_MS) / 1000),
    observePaused: (webhooks) => paused.set(webhooks),
    countPacked: (points) => packed.inc(points),
    countDamaged: () => damaged.inc(),
    observeSteps: (waiting) => steps.set(waiting),
    countShed: (shedAs) => shed.labels(shedAs).inc(),
    countSpans: (outcome, spans) => {
      if (outcome === 'exported') exported.inc(spans);
      else dropped.labels(outcome).inc(spans);
    },
    countIgnoredTrace: () => ignored.inc(),
    countReplicaRead: (server) => replicaReads.labels(server).inc(),
    countRedis: (event) => redis.labels(event).inc(),
    exposition: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}

/** The tasks of the service whose computations are counted apart, by the first word of their keys (see WorkTurns). */
const TASKS = ['answers', 'changes', 'events', 'ingest', 'log', 'packing', 'points', 'positions', 'waits'];
const CALLS = 'calls';

/** The kind of a computation by its key. A number is an account, and any other text an address that logs in. */
export function kindOfWork(key: string | number): string {
  const [task = ''] = typeof key === 'number' ? [] : key.split(' ', 1);
  return TASKS.includes(task) ? task : CALLS;
}

function computationsGauge(computations: Gauges['computations']): Gauge {
  return new Gauge({
    name: 'fleet_computations',
    help: 'Long computations that have begun or wait for their turn, by kind.',
    labelNames: ['kind'],
    registers: [],
    collect() {
      const sizes = computations();
      for (const kind of [CALLS, ...TASKS]) this.set({ kind }, sizes.get(kind) ?? 0);
    },
  });
}
