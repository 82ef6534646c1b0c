import { setTimeout as sleep } from 'node:timers/promises';
import { simulatedImei } from '../../../src/cli/simulate/simulatedFleet.ts';
import { invariant } from '../../../src/lib/errors.ts';
import { seededRandom } from '../../../test/support/seededRandom.ts';
import type { BenchCase, CaseContext, CaseOutcome } from '../../benchCase.ts';
import { Latencies, median } from '../../measure/latencies.ts';
import type { ServerUsage } from '../../measure/usage.ts';
import { seedAccount, seedKey } from '../../neighbours/seeds.ts';
import { openBenchSql } from '../../setup/cluster.ts';
import { openPod, type PodWorker } from '../../setup/pods.ts';
import { postPoints } from '../../setup/points.ts';
import { createWorld, WORLD_EMAIL } from '../../setup/world.ts';
import { openWorker, type Worker } from '../../worker.ts';
import type { SocketFloorQuestion } from '../../workers/socketFloor.ts';
import type { Counted, CountersQuestion } from '../../workers/streamCounters.ts';
import type { ReadersQuestion, ReadersReply } from '../../workers/streamReaders.ts';

const DEVICES = 100_000;
const STREAMS = 5_000;
const SMOKE_DEVICES = 2_000;
const SMOKE_STREAMS = 50;
const PER_KEY = 10;
/** Streams of which every message is read. */
const READ = 100;
/** Half of them is a quarter of a million messages a second: how soon they come is asked at that rate. */
const POINTS_PER_SECOND = 100;
const CALM_POINTS_PER_SECOND = 50;
/** The first messages of a process take longer than those that follow. */
const WARM_UP_SECONDS = 2;
const BATCH = 10;
/** Devices of another account, behind those of the world, and how many there are. */
const FIRST_OTHER = 200_000;
const OTHERS = 1_000;
const ROUNDS = 3;
const SMOKE_SECONDS = 0.3;
const SETTLE_MS = 2_000;
const LATE_MS = 30_000;
/** The fleet is spread over squares of a degree, of which a viewer sees one. */
const SQUARES_A_SIDE = 10;
const CORNER = { lat: 40, lng: 5 };
const VIEWED = { lat: 43, lng: 8 };
/** Degrees that a vehicle is away from its place at most. */
const STEP = 0.005;
const FLEET_BATCH = 500;

const NEW_DEVICES = '/api/v3/stream?snapshot=false&include=devices';

type Counters = Worker<CountersQuestion, Counted>;

export const fanout: BenchCase = {
  about: 'streams of one account that all see the same devices, and a viewer of one device in a hundred',
  run: measureFanout,
};

async function measureFanout(context: CaseContext): Promise<CaseOutcome> {
  const { databaseUrl, smoke, say } = context;
  const [devices, streams] = smoke ? [SMOKE_DEVICES, SMOKE_STREAMS] : [DEVICES, STREAMS];
  const seconds = smoke ? SMOKE_SECONDS : context.seconds;
  await createWorld(context, devices);
  const keys = await seedKeys(databaseUrl, streams / PER_KEY);
  await using pod = openPod();
  await using counters = openWorker<CountersQuestion, Counted>('streamCounters');
  const { url, ingestUrl } = await pod.ask({ kind: 'start', databaseUrl, redisUrl: null });
  const port = Number(new URL(url).port);
  const fleet = new MovingFleet(ingestUrl, devices);
  const opened = { keys, perKey: PER_KEY, readEvery: Math.ceil(streams / READ) };
  const open = (at = port) => counters.ask({ kind: 'open', port: at, path: NEW_DEVICES, ...opened });

  say(`${streams} idle streams`);
  // What the first streams of a process cost is not what a stream costs.
  await open();
  await counters.ask({ kind: 'close' });
  await sleep(smoke ? 0 : SETTLE_MS);
  const before = await pod.ask({ kind: 'collected' });
  await open();
  await sleep(smoke ? 0 : SETTLE_MS);
  const idle = await pod.ask({ kind: 'collected' });

  // A pod that was busy lets a group rest longer, and to open so many streams keeps it busy.
  const reopen = async () => {
    await counters.ask({ kind: 'close' });
    await open();
    await sleep(smoke ? 0 : SETTLE_MS);
  };
  const told = { context, pod, counters, fleet, streams, seconds, reopen };
  await fleet.moveSteadily(smoke ? SMOKE_SECONDS : WARM_UP_SECONDS, POINTS_PER_SECOND);
  const calm = await measureTold(told, CALM_POINTS_PER_SECOND);
  const { row, written, messages, cpuUs, profile } = await measureTold(told, POINTS_PER_SECOND);
  await counters.ask({ kind: 'close' });

  say('the same bytes by plain sockets');
  const floorCpuUs = await measureFloor(counters, open, written);

  say('ingest beside streams');
  const beside = await measureBeside(context, { pod, ingestUrl, fleet, open, counters, seconds });

  say('a viewer of one device in a hundred');
  const share = await viewerShare(counters, fleet, port, keys[0] ?? '');
  return {
    kind: 'measured',
    size: `${devices} devices, ${streams} streams`,
    rows: [
      ...[calm.row, row].map((each) => ({ ...each, rssMb: idle.rssMb })),
      {
        what: `floor: socket.write of the same bytes, ${written.times} times`,
        unit: 'messages',
        cpuUs: floorCpuUs / messages,
      },
    ],
    metrics: {
      messages_per_core_second: messages / (cpuUs / 1e6),
      p99_ms: calm.row.p99Ms,
      heap_kb_per_stream: (1_024 * (idle.heapMb - before.heapMb)) / streams,
      ...beside,
      viewer_share_of_bytes: share,
      of_floor_by_cpu: floorCpuUs / cpuUs,
    },
    ...(profile && { profiles: [profile] }),
  };
}

interface Told {
  readonly context: CaseContext;
  readonly pod: PodWorker;
  readonly counters: Counters;
  readonly fleet: MovingFleet;
  readonly streams: number;
  readonly seconds: number;
  /** Opens all streams again, so that counts begin again. */
  readonly reopen: () => Promise<void>;
}

/** What it costs to tell so many points to all streams, and how soon they are told. */
async function measureTold(
  { context: { say, profile }, pod, counters, fleet, streams, seconds, reopen }: Told,
  pointsPerSecond: number,
) {
  const what = `${pointsPerSecond} points/s to ${streams} streams`;
  say(what);
  await reopen();
  if (profile) await pod.ask({ kind: 'profile', of: 'a message' });
  const usedBefore = await pod.ask({ kind: 'usage' });
  const before = await counters.ask({ kind: 'count' });
  const startMs = performance.now();
  const points = await fleet.moveSteadily(seconds, pointsPerSecond);
  const counted = await received(counters, points);
  const tookSeconds = (performance.now() - startMs) / 1_000;
  const used = await pod.ask({ kind: 'usage' });
  const messages = points * streams;
  const profiled = profile ? await pod.ask({ kind: 'profiled', calls: messages }) : null;
  const cpuUs = used.cpuUs - usedBefore.cpuUs;
  const reads = Math.max(1, Math.round((counted.reads - before.reads) / streams));
  return {
    row: {
      what,
      unit: 'messages',
      perSecond: messages / tookSeconds,
      ...new Latencies(counted.latencies).percentiles(),
      cpuUs: cpuUs / messages,
      serverBusy: cpuUs / 1e6 / tookSeconds,
      loadBusy: (counted.cpuUs - before.cpuUs) / 1e6 / tookSeconds,
    },
    written: {
      times: reads,
      bytes: Math.round((counted.bytes - before.bytes) / streams / reads),
      everyMs: (1_000 * tookSeconds) / reads,
    },
    messages,
    cpuUs,
    profile: profiled?.profile,
  };
}

/** Keys of the owner of the world. */
async function seedKeys(databaseUrl: string, count: number): Promise<string[]> {
  await using sql = openBenchSql(databaseUrl);
  const [owner] = await sql<{ id: number }[]>`select id from account where email = ${WORLD_EMAIL}`;
  invariant(owner !== undefined, 'the world has an owner');
  const keys: string[] = [];
  while (keys.length < count) keys.push(await seedKey(sql, owner.id));
  return keys;
}

/** Waits until every stream has had a message of each point. */
async function received(counters: Counters, points: number): Promise<Counted> {
  const untilMs = performance.now() + LATE_MS;
  for (;;) {
    const counted = await counters.ask({ kind: 'count' });
    const fewest = Math.min(counted.fewestMessages, ...counted.read.map(({ devices }) => devices));
    if (fewest >= points) return counted;
    if (performance.now() > untilMs) throw new Error(`a stream has had ${fewest} of ${points} messages`);
    await sleep(20);
  }
}

/** Processor time of a server that only writes so much to as many readers. */
async function measureFloor(
  counters: Counters,
  open: (port: number) => Promise<Counted>,
  written: { times: number; bytes: number; everyMs: number },
): Promise<number> {
  await using floor = openWorker<SocketFloorQuestion, ServerUsage>('socketFloor');
  const started = await floor.ask({ kind: 'start' });
  await open(started.port);
  await floor.ask({ kind: 'write', ...written, times: 1 });
  const before = await floor.ask({ kind: 'usage' });
  const after = await floor.ask({ kind: 'write', ...written });
  await counters.ask({ kind: 'close' });
  return after.cpuUs - before.cpuUs;
}

interface Beside {
  readonly pod: PodWorker;
  readonly ingestUrl: string;
  readonly fleet: MovingFleet;
  readonly open: () => Promise<Counted>;
  readonly counters: Counters;
  readonly seconds: number;
}

/**
 * Points that are taken of another account while the fleet moves and streams tell it, by those without streams: a second,
 * and a second of the server's processor time, which does not depend on what the readers and the machine do.
 */
async function measureBeside(
  { databaseUrl, smoke }: CaseContext,
  { pod, ingestUrl, fleet, open, counters, seconds }: Beside,
): Promise<{ ingest_beside: number; ingest_beside_by_cpu: number }> {
  await seedOthers(databaseUrl);
  await using senders = openWorker<ReadersQuestion, ReadersReply>('streamReaders');
  const sent = { ingest: ingestUrl, firstDevice: FIRST_OTHER, devices: OTHERS, seconds } as const;
  const take = async () => {
    const before = await pod.ask({ kind: 'usage' });
    const [{ pointsPerSecond }] = await Promise.all([
      senders.ask({ kind: 'ingest', ...sent }),
      fleet.moveSteadily(seconds, POINTS_PER_SECOND),
    ]);
    const after = await pod.ask({ kind: 'usage' });
    return { pointsPerSecond, perCpu: pointsPerSecond / (after.cpuUs - before.cpuUs) };
  };
  if (!smoke) await take();
  const ratios: number[] = [];
  const byCpu: number[] = [];
  for (let round = 0; round < (smoke ? 1 : ROUNDS); round++) {
    const without = await take();
    await open();
    const beside = await take();
    ratios.push(beside.pointsPerSecond / without.pointsPerSecond);
    byCpu.push(beside.perCpu / without.perCpu);
    await counters.ask({ kind: 'close' });
  }
  return { ingest_beside: median(ratios), ingest_beside_by_cpu: median(byCpu) };
}

async function seedOthers(databaseUrl: string): Promise<void> {
  await using sql = openBenchSql(databaseUrl);
  const { worldId } = await seedAccount(sql, 'other@example.com');
  const imeis = Array.from({ length: OTHERS }, (_, n) => simulatedImei(FIRST_OTHER + n));
  await sql`insert into device (imei, world_id) select imei, ${worldId} from unnest(${imeis}::text[]) as imei`;
}

/** Bytes of a viewer of one square, by those of a whole stream, from their beginnings until the fleet has moved twice. */
async function viewerShare(
  counters: Counters,
  fleet: MovingFleet,
  port: number,
  key: string,
): Promise<number> {
  await fleet.moveAll();
  const { lat, lng } = VIEWED;
  const paths = ['', `&bbox=${lng},${lat},${lng + 1},${lat + 1}`];
  for (const path of paths) {
    const stream = { port, keys: [key], perKey: 1, readEvery: 1 };
    await counters.ask({ kind: 'open', path: `/api/v3/stream?include=devices${path}`, ...stream });
  }
  for (let told = fleet.size; told <= 3 * fleet.size; told += fleet.size) {
    await receivedByFirst(counters, told);
    if (told < 3 * fleet.size) await fleet.moveAll();
  }
  const [whole, viewer] = (await counters.ask({ kind: 'close' })).read;
  invariant(whole !== undefined && viewer !== undefined, 'both streams are read');
  const seen = viewer.devices / whole.devices;
  invariant(seen > 0.009 && seen < 0.012, `the viewer has had ${seen} of the messages`);
  return viewer.bytes / whole.bytes;
}

async function receivedByFirst(counters: Counters, points: number): Promise<void> {
  const untilMs = performance.now() + LATE_MS;
  for (;;) {
    const devices = (await counters.ask({ kind: 'count' })).read[0]?.devices ?? 0;
    if (devices >= points) return;
    if (performance.now() > untilMs) throw new Error(`a stream has had ${devices} of ${points} messages`);
    await sleep(50);
  }
}

/** Points of all devices in turn, with the times at which they are sent. */
class MovingFleet {
  readonly #ingestUrl: string;
  readonly size: number;
  readonly #random = seededRandom(11);
  /** Of device n in 2n and 2n + 1. */
  readonly #places: Float64Array;
  #next = 0;

  constructor(ingestUrl: string, size: number) {
    this.#ingestUrl = ingestUrl;
    this.size = size;
    this.#places = Float64Array.from({ length: 2 * size }, (_, n) => {
      const square = Math.floor(n / 2) % SQUARES_A_SIDE ** 2;
      return n % 2 === 0
        ? CORNER.lat + Math.floor(square / SQUARES_A_SIDE) + this.#random()
        : CORNER.lng + (square % SQUARES_A_SIDE) + this.#random();
    });
  }

  /** Returns how many points were sent. */
  async moveSteadily(seconds: number, pointsPerSecond: number): Promise<number> {
    const batches = Math.ceil((seconds * pointsPerSecond) / BATCH);
    const startMs = performance.now();
    const posting: Promise<unknown>[] = [];
    for (let n = 0; n < batches; n++) {
      const dueMs = startMs + (n * BATCH * 1_000) / pointsPerSecond;
      if (dueMs > performance.now()) await sleep(dueMs - performance.now());
      posting.push(this.#post(BATCH));
    }
    await Promise.all(posting);
    return batches * BATCH;
  }

  /** Moves every device once. */
  async moveAll(): Promise<void> {
    for (let left = this.size; left > 0; left -= FLEET_BATCH) await this.#post(Math.min(left, FLEET_BATCH));
  }

  async #post(count: number): Promise<void> {
    const recordedAtMs = Date.now();
    const away = () => STEP * (2 * this.#random() - 1);
    const points = Array.from({ length: count }, () => {
      const n = this.#next++ % this.size;
      return {
        imei: simulatedImei(n),
        recorded_at: recordedAtMs,
        latitude: (this.#places[2 * n] as number) + away(),
        longitude: (this.#places[2 * n + 1] as number) + away(),
        speed_kmh: 50,
      };
    });
    const { late } = await postPoints(this.#ingestUrl, points);
    invariant(late === 0, 'every point is the newest of its device');
  }
}
