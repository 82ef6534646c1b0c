import { setTimeout as sleep } from 'node:timers/promises';
import { toShape } from '../../src/areas/shape.ts';
import { AreaReplay } from '../../src/explain/backtest/areaReplay.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import type { BenchCase, CaseContext, Row } from '../benchCase.ts';
import { median } from '../measure/latencies.ts';
import { profile } from '../measure/profile.ts';
import { cpuUs } from '../measure/usage.ts';
import { jaggedRing, polygonArea, smallAreas, storeAreas } from '../setup/areas.ts';
import { openBenchSql } from '../setup/cluster.ts';
import { openNearestProbe } from '../setup/nearestProbe.ts';
import { POLYGON_CENTRE } from '../setup/places.ts';
import { type BenchService, startBenchService } from '../setup/service.ts';
import { type StoredPoints, storePoints } from '../setup/storedPoints.ts';
import { type BenchWorld, createWorld } from '../setup/world.ts';
import { openWorker } from '../worker.ts';
import type { TrafficQuestion, TrafficReply } from '../workers/traffic.ts';

const VERTICES = 100;
const AREA_RADIUS_DEG = 0.05;
const DEVICES = 20_000;
const SMOKE_DEVICES = 200;
/** A month of 100 vehicles at two points a minute: three million points, of devices that are half of the time near. */
const STORED = { devices: 100, days: 30, everySeconds: 86, centre: POLYGON_CENTRE, radiusDeg: 0.1 };
const SMOKE_STORED = { ...STORED, devices: 20, days: 2 };
const POINTS_PER_SECOND = 1_000;
const BATCH = 100;
const CHANGED_AREAS = 2;
const START_DELAY_MS = 1_000;
const ROUNDS = 3;
const ENGINE_POINTS = 1 << 18;

const RING = jaggedRing(VERTICES, POLYGON_CENTRE, AREA_RADIUS_DEG, 1);

export const backtest: BenchCase = {
  about: 'an area of 100 vertices replayed on a month of stored points, alone and beside polls and points',
  run: async (context) => {
    const { databaseUrl, smoke, say } = context;
    const world = await createWorld(context, smoke ? SMOKE_DEVICES : DEVICES);
    const startMs = Math.floor(Date.now() / DAY_MS - 31) * DAY_MS;
    const stored: StoredPoints = { ...(smoke ? SMOKE_STORED : STORED), startMs };
    await using sql = openBenchSql(databaseUrl);
    const points = await storePoints(sql, world.deviceIds, stored, say);
    const areaIds = await storeAreas(databaseUrl, smallAreas(CHANGED_AREAS));
    const engine = measureEngine(smoke);
    await using service = await startBenchService(databaseUrl);
    const post = (dwellSeconds: readonly number[]) => postBacktest(service, world, stored, dwellSeconds);
    const tenDwells = Array.from({ length: 10 }, (_, n) => n * 60);
    const alone = await measureAlone(smoke ? 1 : ROUNDS, points, () => post([0]));
    const ten = await measureAlone(1, points, () => post(tenDwells));
    const calm = await traffic(context, service, { ...world, areaIds }, null);
    const beside = await traffic(context, service, { ...world, areaIds }, () => post([0]));
    const work = () => post([0]).then(() => points);
    const rows: Row[] = [
      { what: 'the engine alone, half of the points in the box', unit: 'points', ...engine },
      { what: 'over HTTP, one minimum stay', unit: 'points', ...alone },
      { what: 'over HTTP, ten minimum stays', unit: 'points', ...ten },
      { what: 'nearest alone', ...calm.polls },
      { what: 'nearest meanwhile', ...beside.polls },
      { what: 'points taken alone', unit: 'points', perSecond: calm.pointsPerSecond },
      { what: 'points taken meanwhile', unit: 'points', perSecond: beside.pointsPerSecond },
    ];
    return {
      kind: 'measured',
      size: `${points} points of ${stored.devices} devices, ${VERTICES} vertices`,
      rows,
      profiles: context.profile ? [await profile('a backtest, in the serving process,', work)] : [],
      metrics: {
        engine_points_per_second: engine.perSecond,
        points_per_second: alone.perSecond,
        points_per_cpu_second: 1e6 / alone.cpuUs,
        nearest_p99_ms: beside.polls.p99Ms,
        ingest_kept: beside.pointsPerSecond / calm.pointsPerSecond,
      },
      notes: [`${beside.rounds} backtests meanwhile`],
    };
  },
};

function measureEngine(smoke: boolean): { perSecond: number; cpuUs: number } {
  const definition = polygonArea('Bench', RING);
  const shape = toShape(definition.geometry);
  const count = smoke ? ENGINE_POINTS / 16 : ENGINE_POINTS;
  const columns = {
    count,
    recordedAtMs: Float64Array.from({ length: count }, (_, n) => n * 30_000),
    lats: Float64Array.from({ length: count }, (_, n) => POLYGON_CENTRE.lat + 0.1 * Math.sin(n / 30)),
    lngs: Float64Array.from({ length: count }, (_, n) => POLYGON_CENTRE.lng + 0.1 * Math.cos(n / 47)),
    lates: new Float64Array(count),
  };
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    const replay = new AreaReplay(shape, [0], 0);
    const startMs = performance.now();
    replay.begin('1');
    inOneGo(replay.take(columns, new Set()));
    replay.end();
    times.push((performance.now() - startMs) / 1_000);
    if ((replay.tallies[0]?.entries ?? 0) === 0) throw new Error('no point of the bench entered the area');
  }
  const seconds = median(times.slice(1));
  return { perSecond: count / seconds, cpuUs: (seconds * 1e6) / count };
}

async function postBacktest(
  { url }: BenchService,
  { key }: BenchWorld,
  { startMs, days }: StoredPoints,
  dwellSeconds: readonly number[],
): Promise<void> {
  const response = await fetch(`${url}/api/v3/areas/backtest`, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    body: JSON.stringify({
      area: { name: 'Bench', type: 'polygon', points: RING },
      from: new Date(startMs).toISOString(),
      to: new Date(startMs + days * DAY_MS).toISOString(),
      dwell_seconds: dwellSeconds,
    }),
  });
  const { data } = (await response.json()) as { data?: readonly { entries: number }[] };
  if (response.status !== 200 || data?.[0]?.entries === 0)
    throw new Error(`a backtest failed: ${response.status}`);
}

async function measureAlone(rounds: number, points: number, post: () => Promise<void>) {
  await post();
  const seconds: number[] = [];
  const beforeUs = cpuUs();
  for (let round = 0; round < rounds; round++) {
    const startMs = performance.now();
    await post();
    seconds.push((performance.now() - startMs) / 1_000);
  }
  return { perSecond: points / median(seconds), cpuUs: (cpuUs() - beforeUs) / rounds / points };
}

async function traffic(
  { smoke, seconds }: CaseContext,
  { url: apiUrl, ingestUrl }: BenchService,
  { key, deviceIds, areaIds }: BenchWorld & { readonly areaIds: readonly number[] },
  post: (() => Promise<void>) | null,
) {
  await using probe = openNearestProbe(apiUrl, key);
  await using sender = openWorker<TrafficQuestion, TrafficReply>('traffic');
  const source = {
    devices: deviceIds.length,
    senders: 1,
    batch: BATCH,
    startMs: Date.now() + START_DELAY_MS,
  };
  const rates = { pointsPerSecond: POINTS_PER_SECOND, areasPerSecond: 1 };
  await sender.ask({ kind: 'start', ingestUrl, apiUrl, key, source, areaIds, ...rates });
  let rounds = 0;
  const polls = await probe.during(async () => {
    const untilMs = performance.now() + (smoke ? 300 : seconds * 1_000);
    if (post === null) await sleep(untilMs - performance.now());
    else for (; rounds === 0 || performance.now() < untilMs; rounds++) await post();
  });
  const sent = await sender.ask({ kind: 'stop' });
  return { polls: polls.percentiles(), pointsPerSecond: sent.points / sent.seconds, rounds };
}
