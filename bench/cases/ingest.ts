import type { SimulatedPoint } from '../../src/cli/simulate/simulatedFleet.ts';
import { arrayLiteral, type Sql } from '../../src/postgres/sql.ts';
import type { BenchCase, CaseContext, CaseOutcome, Row } from '../benchCase.ts';
import { Latencies, median } from '../measure/latencies.ts';
import { metricsOf } from '../measure/noise.ts';
import { type Profile, profile } from '../measure/profile.ts';
import { rssMb } from '../measure/usage.ts';
import { jaggedRing, smallAreas, storeAreas } from '../setup/areas.ts';
import { openBenchSql } from '../setup/cluster.ts';
import { type ServingPods, startPods } from '../setup/pods.ts';
import { POINTS_CENTRE, PointSource } from '../setup/pointSource.ts';
import { type BenchWorld, createWorld } from '../setup/world.ts';
import { openWorker, type Worker } from '../worker.ts';
import type { IngestLoad, IngestResult } from '../workers/ingestLoad.ts';

const DEVICES = 10_000;
/** In the world. No point of the first phase is in any of them, like most points and most areas. */
const AREAS = 10_000;
/** How many areas contain each point, phase by phase. */
const MATCHED = [0, 1, 10];
const PROFILED = 1;
const TOWN_VERTICES = 200;
const TOWN_RADIUS_DEG = 0.2;
const SENDERS = 8;
const BATCH = 1_000;
/** Rows of one plain insert: the most that the service puts into one transaction. */
const FLOOR_BATCH = 10_000;
const ROUNDS = 3;
const WARMUP_BATCHES = 10;
const SPAN_MS = 6 * 3_600_000;

export const ingest: BenchCase = {
  about: 'points over HTTP into Postgres, evaluated against areas, each answer after the commit',
  run: async (context) => {
    const { databaseUrl, smoke, say } = context;
    await using sql = openBenchSql(databaseUrl);
    const [fsync] = await sql<{ fsync: string }[]>`show fsync`;
    if (fsync?.fsync !== 'on') throw new Error('fsync is off: acknowledged points would not be durable');
    const devices = context.sizes?.at(-1) ?? (smoke ? DEVICES / 10 : DEVICES);
    const areas = smoke ? AREAS / 100 : AREAS;
    const world = await createWorld(context, devices);
    await storeAreas(databaseUrl, smallAreas(areas), say);
    await using pods = await startPods(context);
    if (pods === null) return { kind: 'skipped', reason: 'there is no redis-server in PATH' };
    await using load = openWorker<IngestLoad, IngestResult>('ingestLoad');
    // The positions of the world must be older than the points.
    await sql`update device_state set recorded_at = null`;
    return await measure(context, { devices, areas }, { load, sql, pods, world });
  },
};

interface IngestPorts {
  readonly load: Worker<IngestLoad, IngestResult>;
  readonly sql: Sql;
  readonly pods: ServingPods;
  readonly world: BenchWorld;
}

interface Round {
  readonly load: IngestResult;
  readonly cpuUs: number;
  readonly floorPerSecond: number;
}

const perSecond = ({ load }: Round): number => load.points / load.seconds;

async function measure(
  context: CaseContext,
  { devices, areas }: { devices: number; areas: number },
  ports: IngestPorts,
): Promise<CaseOutcome> {
  const startMs = Date.now() - SPAN_MS;
  const source = { devices, senders: SENDERS, batch: context.smoke ? BATCH / 10 : BATCH, startMs };
  const { ingestUrls: urls, usage } = ports.pods;
  const ask = (batchesPerSender: number) => ports.load.ask({ urls, source, batchesPerSender });
  const floor = await openFloor(ports, { ...source, senders: 1, batch: Math.min(devices, FLOOR_BATCH) });
  const rounds = context.smoke ? 1 : ROUNDS;
  const seconds = context.smoke ? 0.2 : context.seconds / rounds;

  const phases: Round[][] = [];
  const profiles: Profile[] = [];
  let stored = 0;
  for (const matched of MATCHED) {
    await coverTown(ports, matched);
    const warmup = await ask(context.smoke ? 1 : WARMUP_BATCHES);
    const batchesPerSender = Math.max(1, Math.round((seconds * warmup.completed) / warmup.seconds / SENDERS));
    stored += warmup.points;
    const phase: Round[] = [];
    for (let round = 0; round < rounds; round++) {
      const floorPerSecond = await floor(seconds);
      const before = await usage();
      const load = await ask(batchesPerSender);
      const usedUs = (await usage()).cpuUs - before.cpuUs;
      phase.push({ load, cpuUs: usedUs / load.points, floorPerSecond });
      stored += load.points;
    }
    phases.push(phase);
    if (context.profile && matched === PROFILED) {
      const work = async () => (await ask(batchesPerSender)).points;
      profiles.push(await profile(`a point, ${matched} area around it,`, work));
      stored += batchesPerSender * SENDERS * source.batch;
    }
  }
  const [row] = await ports.sql<{ count: number }[]>`select count(*) from position`;
  if (row?.count !== stored) throw new Error(`${row?.count} of ${stored} acknowledged points are stored`);

  const all = phases.flat();
  const [none, one, ten] = phases.map((phase) => median(phase.map(perSecond))) as [number, number, number];
  const ofFloor = (round: Round) => perSecond(round) / round.floorPerSecond;
  const ofUnnest = metricsOf({ of_unnest: (phases[1] ?? []).map(ofFloor) });
  return {
    kind: 'measured',
    size: `${devices} devices, ${areas} areas, ${SENDERS} connections, ${urls.length === 1 ? '' : 'two pods, '}${source.batch} points a request`,
    rows: [
      ...phases.map((phase, n) => ingestRow(`ingest, ${MATCHED[n]} areas around each point`, phase)),
      {
        what: `floor: unnest insert of ${Math.min(devices, FLOOR_BATCH)} rows`,
        unit: 'rows',
        perSecond: median(all.map(({ floorPerSecond }) => floorPerSecond)),
      },
    ],
    metrics: { points_per_second: one, slower_with_ten: none / ten, ...ofUnnest.metrics },
    noise: ofUnnest.noise,
    notes: [`${stored} acknowledged points are in Postgres`],
    profiles,
  };
}

async function coverTown({ pods, world }: IngestPorts, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const points = jaggedRing(TOWN_VERTICES, POINTS_CENTRE, TOWN_RADIUS_DEG, n);
    const response = await fetch(`${pods.urls[0]}/api/v3/areas/by-external-id/town-${n}`, {
      method: 'PUT',
      headers: { 'X-API-Key': world.key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: `Town ${n}`, type: 'polygon', points }),
    });
    if (!response.ok) throw new Error(`an area cannot be saved: ${await response.text()}`);
  }
}

function ingestRow(what: string, results: readonly Round[]): Row {
  const latencies = new Latencies();
  for (const { load } of results) latencies.merge(load.latencies);
  return {
    what,
    unit: 'points',
    perSecond: median(results.map(perSecond)),
    ...latencies.percentiles(),
    cpuUs: median(results.map(({ cpuUs }) => cpuUs)),
    rssMb: rssMb(),
    serverBusy: median(results.map(({ load, cpuUs }) => (cpuUs * load.points) / 1e6 / load.seconds)),
    loadBusy: median(results.map(({ load }) => load.busy)),
  };
}

/** Inserts the same rows into a table with the same columns and key, one statement after the other. */
async function openFloor(
  { sql, world: { deviceIds } }: IngestPorts,
  options: ConstructorParameters<typeof PointSource>[0],
) {
  await sql.unsafe('create table bench_floor (like position including all)');
  const source = new PointSource(options);
  let at = 0;
  return async (seconds: number): Promise<number> => {
    let rows = 0;
    let ms = 0;
    while (ms < seconds * 1_000) {
      const points = source.next(0);
      const ids = points.map(() => deviceIds[at++ % deviceIds.length] as number);
      const startMs = performance.now();
      const list = (of: (point: SimulatedPoint) => number | null) => arrayLiteral(points.map(of));
      await sql`
        insert into bench_floor
          (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites, odometer_km)
        select a, to_timestamp(b / 1000), c, d, e, f, g, h, i from unnest(
          ${arrayLiteral(ids)}::bigint[], ${list((p) => Date.parse(p.recorded_at))}::float8[],
          ${list((p) => p.latitude)}::float8[], ${list((p) => p.longitude)}::float8[],
          ${list((p) => p.altitude_m)}::float8[], ${list((p) => p.speed_kmh)}::float8[],
          ${list((p) => p.heading)}::float8[], ${list((p) => p.satellites)}::int[],
          ${list((p) => p.odometer_km)}::float8[]) as r (a, b, c, d, e, f, g, h, i)`;
      ms += performance.now() - startMs;
      rows += points.length;
    }
    return (rows * 1_000) / ms;
  };
}
