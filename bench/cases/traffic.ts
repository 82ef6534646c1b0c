import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchCase, CaseContext, CaseOutcome, Row } from '../benchCase.ts';
import { Latencies, median } from '../measure/latencies.ts';
import type { OpenResult } from '../measure/openLoop.ts';
import { type Profile, profile } from '../measure/profile.ts';
import { cpuUs } from '../measure/usage.ts';
import { smallAreas, storeAreas } from '../setup/areas.ts';
import { containsPaths, nearestPaths } from '../setup/places.ts';
import { startBenchService } from '../setup/service.ts';
import { createWorld } from '../setup/world.ts';
import { openWorker } from '../worker.ts';
import type { ProbeQuestion } from '../workers/latencyProbe.ts';
import type { TrafficQuestion, TrafficReply } from '../workers/traffic.ts';

const SMOKE_SECONDS = 0.5;
/** Ten minutes with the usual `--seconds`. */
const SOAK_TIMES = 600 / 9;

export const mixed: BenchCase = {
  about: 'polls of all kinds while points arrive and areas change',
  run: (context) => runTraffic(context, context.smoke ? SMOKE_SECONDS : 2 * context.seconds),
};

export const soak: BenchCase = {
  about: 'mixed for ten minutes: growth of memory, delay of the event loop',
  run: (context) => {
    const seconds = context.smoke ? SMOKE_SECONDS : Math.round(SOAK_TIMES * context.seconds);
    return runTraffic({ ...context, profile: false }, seconds); // `mixed` has the profile of this load
  },
};

const DEVICES = 100_000;
const AREAS = 10_000;
const SMOKE_SHARE = 0.01;
const POLLS_PER_SECOND = 2_000;
const POINTS_PER_SECOND = 2_000;
const BATCH = 100;
/** They drive in one town and report every ten seconds. The others do not move, and the polls find them. */
const REPORTING_DEVICES = 20_000;
const AREAS_PER_SECOND = 5;
/** They move into the town of the points. There are few, so that the load stays the same for ten minutes. */
const CHANGED_AREAS = 50;
/** Points must be newer than the positions that the world starts with. */
const START_DELAY_MS = 1_000;
const MIX = { nearest: 16, contains: 3, list: 1 };
const ROUNDS_OF_MIX = 64;
const MEMORY_EVERY_MS = 100;
const SAY_EVERY = 600;
const LOOP_RESOLUTION_MS = 1;
const PROFILED_S = 5;

/** At rates far below the capacity, so that the percentiles of the polls show the effect of everything else. */
async function runTraffic(context: CaseContext, seconds: number): Promise<CaseOutcome> {
  const { databaseUrl, smoke, say } = context;
  const devices = context.sizes?.at(-1) ?? (smoke ? DEVICES * SMOKE_SHARE : DEVICES);
  const areas = smoke ? AREAS * SMOKE_SHARE : AREAS;
  const { key } = await createWorld(context, devices);
  const areaIds = await storeAreas(databaseUrl, smallAreas(areas), say);
  await using service = await startBenchService(databaseUrl);
  await using traffic = openWorker<TrafficQuestion, TrafficReply>('traffic');
  await using probe = openWorker<ProbeQuestion, OpenResult>('latencyProbe');
  const reporting = Math.min(devices, REPORTING_DEVICES);
  await traffic.ask({
    kind: 'start',
    ingestUrl: service.ingestUrl,
    apiUrl: service.url,
    key,
    source: { devices: reporting, senders: 1, batch: BATCH, startMs: Date.now() + START_DELAY_MS },
    pointsPerSecond: POINTS_PER_SECOND,
    areaIds: areaIds.slice(1, 1 + CHANGED_AREAS),
    areasPerSecond: AREAS_PER_SECOND,
  });
  const asked = { urls: [service.url], headers: { 'X-API-Key': key }, perSecond: POLLS_PER_SECOND };
  const paths = mixedPaths(areaIds[0] as number, devices);
  const poll = () => probe.ask({ kind: 'start', ...asked, paths });
  await poll();
  const watched = await watch(seconds, say);
  const polled = await probe.ask({ kind: 'stop' });
  const profiles: Profile[] = [];
  if (context.profile) {
    await poll();
    profiles.push(await profile('a second of this load', () => sleep(PROFILED_S * 1_000, PROFILED_S)));
    await probe.ask({ kind: 'stop' });
  }
  const done = await traffic.ask({ kind: 'stop' });
  const size = `${devices} devices, ${areas} areas, ${seconds} s`;
  return { kind: 'measured', size, ...summarize(seconds, watched, polled, done), profiles };
}

function mixedPaths(areaId: number, devices: number): string[] {
  const nearest = nearestPaths(MIX.nearest * ROUNDS_OF_MIX);
  const contains = containsPaths(areaId, MIX.contains * ROUNDS_OF_MIX);
  return Array.from({ length: ROUNDS_OF_MIX }, (_, round) => [
    ...nearest.slice(round * MIX.nearest, (round + 1) * MIX.nearest),
    ...contains.slice(round * MIX.contains, (round + 1) * MIX.contains),
    `/api/v3/devices?limit=50&offset=${(round * 997) % Math.max(1, devices - 50)}`,
  ]).flat();
}

/** Samples this process, which serves. */
async function watch(seconds: number, say: (line: string) => void) {
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  const beforeUs = cpuUs();
  const startMs = performance.now();
  const rssMb: number[] = [];
  const heapMb: number[] = [];
  while (performance.now() - startMs < seconds * 1_000) {
    const leftMs = seconds * 1_000 - (performance.now() - startMs);
    await sleep(Math.min(MEMORY_EVERY_MS, Math.max(1, leftMs)));
    const { rss, heapUsed, external } = process.memoryUsage();
    rssMb.push(rss / 2 ** 20);
    heapMb.push((heapUsed + external) / 2 ** 20);
    if (rssMb.length % SAY_EVERY === 0)
      say(`${Math.round((performance.now() - startMs) / 1_000)} of ${seconds} s`);
  }
  loop.disable();
  return {
    loopP99Ms: loop.percentile(99) / 1e6 - LOOP_RESOLUTION_MS,
    loopMaxMs: loop.max / 1e6 - LOOP_RESOLUTION_MS,
    cpuShare: (cpuUs() - beforeUs) / 1e3 / (performance.now() - startMs),
    rssMb,
    heapMb,
  };
}

function summarize(
  seconds: number,
  watched: Awaited<ReturnType<typeof watch>>,
  polled: OpenResult,
  done: TrafficReply,
) {
  const latencies = new Latencies(polled.latencies);
  const { rssMb, heapMb } = watched;
  const rows: Row[] = [
    {
      what: 'polls: 80 % nearest, 15 % contains, 5 % lists of 50',
      perSecond: polled.completed / seconds,
      ...latencies.percentiles(),
      rssMb: Math.max(...rssMb),
      serverBusy: watched.cpuShare,
    },
    { what: 'points meanwhile', unit: 'points', perSecond: done.points / done.seconds },
    { what: 'areas changed meanwhile', unit: 'areas', perSecond: done.areas / done.seconds },
  ];
  const fifth = Math.max(1, Math.floor(heapMb.length / 5));
  // Caches still fill in the first fifth. Garbage makes single values jump, so medians are compared.
  const growth = (of: readonly number[]) => median(of.slice(-fifth)) / median(of.slice(fifth - 1, 2 * fifth));
  const metrics = {
    p99_ms: latencies.percentile(0.99),
    longest_ms: latencies.percentile(1),
    loop_p99_ms: watched.loopP99Ms,
    loop_max_ms: watched.loopMaxMs,
    heap_growth: growth(heapMb),
    rss_growth: growth(rssMb),
  };
  return { rows, metrics };
}
