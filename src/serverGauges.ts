import { Gauge } from 'prom-client';
import { REPLICA_STATES, type ReplicaState } from './changelog/replicaWatch.ts';
import type { PoolUse } from './postgres/connections.ts';

/** What is read, when the pod is scraped, about the servers that it uses. */
export interface ServerSources {
  /** Connections to Postgres by task. */
  readonly pools: () => readonly PoolUse[];
  /** Null without a replica. */
  readonly replica: () => { readonly state: ReplicaState; readonly lagMs: number } | null;
  /** Whether Redis answers. Null without one. */
  readonly redis: () => boolean | null;
}

/** Gauges of Postgres, its replica and Redis, in no registry. */
export function serverGauges({ pools, replica, redis }: ServerSources): Gauge[] {
  return [connectionGauge(pools), waitingGauge(pools), ...replicaGauges(replica), redisGauge(redis)];
}

/** Without Redis it has no value. */
function redisGauge(redis: ServerSources['redis']): Gauge {
  return new Gauge({
    name: 'fleet_redis_up',
    help: 'Whether Redis has answered the last command in time (1) or not (0).',
    registers: [],
    collect() {
      const isUp = redis();
      if (isUp === null) this.remove();
      else this.set(Number(isUp));
    },
  });
}

/** Without a replica they have no values. */
function replicaGauges(replica: ServerSources['replica']): Gauge[] {
  const lag = new Gauge({
    name: 'fleet_replica_lag_seconds',
    help: 'How long the replica has been behind; once it has caught up, how long that took.',
    registers: [],
    collect() {
      const found = replica();
      if (found === null) this.remove();
      else this.set(found.lagMs / 1000);
    },
  });
  const state = new Gauge({
    name: 'fleet_replica_state',
    help: 'Whether the replica answers reads (serving), or why not: 1 for the present state, 0 for the others.',
    labelNames: ['state'],
    registers: [],
    collect() {
      const found = replica();
      if (found !== null)
        for (const each of REPLICA_STATES) this.set({ state: each }, Number(each === found.state));
    },
  });
  return [lag, state];
}

function connectionGauge(pools: ServerSources['pools']): Gauge {
  return new Gauge({
    name: 'fleet_postgres_connections',
    help: 'Connections to Postgres by task and state: used, idle, or free to be opened.',
    labelNames: ['task', 'state'],
    registers: [],
    collect() {
      for (const { task, used, idle, max } of pools()) {
        this.set({ task, state: 'used' }, used);
        this.set({ task, state: 'idle' }, idle);
        this.set({ task, state: 'free' }, max - used - idle);
      }
    },
  });
}

function waitingGauge(pools: ServerSources['pools']): Gauge {
  return new Gauge({
    name: 'fleet_postgres_waiting',
    help: 'Statements and transactions that wait for a connection to Postgres, by task.',
    labelNames: ['task'],
    registers: [],
    collect() {
      for (const { task, waiting } of pools()) this.set({ task }, waiting);
    },
  });
}
