import { setTimeout as sleep } from 'node:timers/promises';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { DAY_MS, weekStartMs } from '../../src/lib/time.ts';
import type { CaseContext, Part, Row } from '../benchCase.ts';
import { Latencies, median } from '../measure/latencies.ts';
import { openBenchSql } from './cluster.ts';
import { openNearestProbe } from './nearestProbe.ts';
import { packAll, storeTrack } from './packedHistory.ts';
import { postPoints } from './points.ts';
import type { BenchService } from './service.ts';
import type { BenchWorld } from './world.ts';

const VEHICLES = 60;
const STEP_SECONDS = 10;
const PER_SECOND = 100;
const BATCH = 10;
const FIRST_PACKED = 50;
const FIRST_SENDER = 1_000;
/** Windows without and with packing, one after the other: a busy moment of the machine meets both. */
const PAIRS = 12;
/** Until one has packed something. */
const SMOKE_PAIRS_MAX = 30;
const WINDOW_MS = 2_000;
const POLLS_PER_SECOND = 200;

type Felt = Readonly<Record<'sent' | 'polled', Latencies>>;

/**
 * Sends small batches of new points and polls all the time, while the same process packs the days of some vehicles with
 * the rests that housekeeping takes, and while it does not. The median of the windows counts.
 */
export async function measureIngestBeside(
  { databaseUrl, smoke }: CaseContext,
  { url, ingestUrl }: BenchService,
  { key, deviceIds }: BenchWorld,
): Promise<Part> {
  await using sql = openBenchSql(databaseUrl, 2);
  await using probe = openNearestProbe(url, key, POLLS_PER_SECOND);
  const feel = async (work: () => Promise<unknown>): Promise<Felt> => {
    const sent = new Latencies();
    const polled = await probe.during(() => sendWhile(ingestUrl, work(), smoke, sent));
    return { sent, polled };
  };
  const firstMs = weekStartMs(Date.now()) - 21 * DAY_MS;
  const count = ((smoke ? 0.1 : 4) * DAY_MS) / 1_000 / STEP_SECONDS;
  const packed = deviceIds.slice(FIRST_PACKED, FIRST_PACKED + (smoke ? 2 : VEHICLES));
  for (const [n, deviceId] of packed.entries())
    await storeTrack(sql, { deviceId, firstMs, count, stepSeconds: STEP_SECONDS, seed: n });
  const windowMs = smoke ? 200 : WINDOW_MS;
  const alone: Felt[] = [];
  const beside: Felt[] = [];
  for (let pair = 0; pair < (smoke ? SMOKE_PAIRS_MAX : PAIRS) && !(smoke && beside.length > 0); pair++) {
    alone.push(await feel(() => sleep(windowMs)));
    let points = 0;
    const endMs = performance.now() + windowMs;
    const felt = await feel(async () => {
      points = await packAll(sql, sleep, () => performance.now() > endMs);
    });
    // Looking for something to pack may take a whole window, and in the end everything is packed.
    if (points > 0) beside.push(felt);
  }
  if (beside.length === 0) throw new Error('nothing was packed');
  const of = (share: number, all: readonly Felt[], what: keyof Felt) =>
    median(all.map((felt) => felt[what].percentile(share)));
  const row = (what: string, all: readonly Felt[], felt: keyof Felt): Row => ({
    what,
    p50Ms: of(0.5, all, felt),
    p99Ms: of(0.99, all, felt),
  });
  return {
    rows: [
      row(`${BATCH} points sent, ${PER_SECOND} times a second`, alone, 'sent'),
      row('the same beside packing', beside, 'sent'),
      row(`nearest, ${POLLS_PER_SECOND} a second, and these points`, alone, 'polled'),
      row('the same beside packing, nearest', beside, 'polled'),
    ],
    metrics: {
      ingest_p99_beside_packing: of(0.99, beside, 'sent') / of(0.99, alone, 'sent'),
      nearest_p99_beside_packing: of(0.99, beside, 'polled') / of(0.99, alone, 'polled'),
    },
  };
}

async function sendWhile(
  ingestUrl: string,
  work: Promise<unknown>,
  smoke: boolean,
  latencies: Latencies,
): Promise<void> {
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  const sent: Promise<void>[] = [];
  const beginMs = performance.now();
  for (let n = 0; !isOver; n++) {
    sent.push(send(ingestUrl, n, smoke, latencies));
    await sleep(Math.max(0, beginMs + ((n + 1) * 1_000) / PER_SECOND - performance.now()));
  }
  await ended;
  await Promise.all(sent);
}

async function send(ingestUrl: string, n: number, smoke: boolean, latencies: Latencies): Promise<void> {
  const points = Array.from({ length: BATCH }, (_, at) => ({
    imei: simulatedImei((smoke ? 50 : FIRST_SENDER) + ((n * BATCH + at) % (smoke ? 40 : 2_000))),
    recorded_at: Date.now(),
    latitude: 41.9,
    longitude: 12.5,
    speed_kmh: 40,
  }));
  const started = performance.now();
  await postPoints(ingestUrl, points);
  latencies.add(performance.now() - started);
}
