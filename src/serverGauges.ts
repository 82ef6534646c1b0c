import { Gauge } from 'prom-client';
import type { PoolUse } from './postgres/connections.ts';

/** What is read of Postgres when it is scraped. */
export interface ServerSources {
  /** Connections to Postgres by task. */
  readonly pools: () => readonly PoolUse[];
}

/** Gauges of Postgres, in no registry. */
export function serverGauges({ pools }: ServerSources): Gauge[] {
  return [connectionGauge(pools), waitingGauge(pools)];
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
