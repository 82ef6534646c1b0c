import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WorkTurns } from '../src/lib/workTurns.ts';
import { createMetrics, type Gauges, kindOfWork } from '../src/metrics.ts';

const metricsOf = (
  turns: WorkTurns<string | number>,
  replica: ReturnType<Gauges['replica']> = null,
  redis: boolean | null = null,
) =>
  createMetrics(
    {
      sizes: () => ({ devices: 0, positions: 0, worlds: 0, keys: 0, stays: 0 }),
      ...{
        feedLagMs: () => 0,
        loadMs: () => 0,
        waitingPoints: () => 0,
        loopLateMs: () => 0,
        pools: () => [],
        replica: () => replica,
        redis: () => redis,
      },
      computations: () => turns.sizes(kindOfWork),
    },
    { version: '1.0.0', commit: 'unknown' },
  );
const linesOf = (text: string, name: string): string[] =>
  text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));

test('computations are told by kind, and an address or an account makes no series of its own', async () => {
  const turns = new WorkTurns<string | number>(1);
  const metrics = metricsOf(turns);
  const keys = [7, 8, '192.0.2.0/24', 'events of 7', 'events of 8', 'packing', 'log'];
  const done: Promise<void>[] = keys.map((key) => turns.once(key, () => undefined));
  done.push(turns.run('log', (function* () {})(), true));
  const lines = linesOf((await metrics.exposition()).text, 'fleet_computations');
  const counted = lines.filter((line) => !line.endsWith(' 0'));
  assert.deepEqual(counted.toSorted(), [
    'fleet_computations{kind="calls"} 3',
    'fleet_computations{kind="events"} 2',
    'fleet_computations{kind="log"} 2',
    'fleet_computations{kind="packing"} 1',
  ]);
  assert.equal(lines.length, 10);
  await Promise.all(done);
});

test('a replica that is gone is not told any more', async () => {
  const metrics = metricsOf(new WorkTurns<string | number>(1));
  const told = async () => linesOf((await metrics.exposition()).text, 'fleet_postgres_replica_lag_bytes');
  const replicas = [
    { replica: 'a', lagBytes: 5 },
    { replica: 'b', lagBytes: 0 },
  ];
  metrics.observePostgres({ databaseBytes: 9, replicas });
  assert.equal((await told()).length, 2);
  metrics.observePostgres({ databaseBytes: 9, replicas: replicas.slice(1) });
  assert.deepEqual(await told(), ['fleet_postgres_replica_lag_bytes{replica="b"} 0']);
});

test('a replica is told of where there is one, in one of its states', async () => {
  const turns = new WorkTurns<string | number>(1);
  const told = async (replica: ReturnType<Gauges['replica']>) => {
    const { text } = await metricsOf(turns, replica).exposition();
    const lines = [...linesOf(text, 'fleet_replica_lag_seconds'), ...linesOf(text, 'fleet_replica_state')];
    return lines.filter((line) => !line.endsWith('} 0'));
  };
  assert.deepEqual(await told(null), []);
  assert.deepEqual(await told({ state: 'behind', lagMs: 2_500 }), [
    'fleet_replica_lag_seconds 2.5',
    'fleet_replica_state{state="behind"} 1',
  ]);
});

test('Redis is told of where there is one', async () => {
  const told = async (redis: boolean | null) => {
    const metrics = metricsOf(new WorkTurns<string | number>(1), null, redis);
    return linesOf((await metrics.exposition()).text, 'fleet_redis_up');
  };
  assert.deepEqual(await told(null), []);
  assert.deepEqual(await told(true), ['fleet_redis_up 1']);
  assert.deepEqual(await told(false), ['fleet_redis_up 0']);
});
