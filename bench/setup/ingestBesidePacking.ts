import { setTimeout as sleep } from 'node:timers/promises';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { ensureWeeks, POSITIONS, weekStartMs } from '../../src/postgres/partitions.ts';
import { openSql } from '../../src/postgres/sql.ts';
import type { Service } from '../../src/wiring.ts';
import type { CaseContext, Row } from '../benchCase.ts';
import { Latencies, median } from '../measure/latencies.ts';
import { type NearestProbe, openNearestProbe, sendPoints } from './nearestProbe.ts';
import { packAll, storeTrack } from './packedHistory.ts';
import type { BenchWorld } from './world.ts';

const DAY_MS = 86_400_000;
const VEHICLES = 60;
const STEP_SECONDS = 10;
const PER_SECOND = 100;
const BATCH = 10;
/** Of the vehicles that are packed. */
const FIRST_PACKED = 50;
/** Of the vehicles that send. */
const FIRST_SENDER = 1_000;
/** Windows without and with packing, one after the other: a busy moment of the machine meets both. */
const PAIRS = 12;
/** Until one has packed something. */
const SMOKE_PAIRS_MAX = 30;
const WINDOW_MS = 2_000;
const POLLS_PER_SECOND = 200;

interface Felt {
  readonly sent: Latencies;
  readonly polled: Latencies;
}

/**
 * Sends small batches of new points and polls all the time, while the same process packs the days of some vehicles with
 * the rests that housekeeping takes, and while it does not. The median of the windows counts.
 */
export async function measureIngestBeside(
  { databaseUrl, smoke }: CaseContext,
  service: Service,
  { key, deviceIds }: BenchWorld,
): Promise<{ rows: Row[]; metrics: Record<string, number> }> {
  const sql = openSql(databaseUrl, { maxConnections: 2, name: 'bench packing' });
  const probe = openNearestProbe(service, key, POLLS_PER_SECOND);
  try {
    const firstMs = weekStartMs(Date.now()) - 21 * DAY_MS;
    await ensureWeeks(sql, POSITIONS, [firstMs]);
    const count = ((smoke ? 0.1 : 4) * DAY_MS) / 1_000 / STEP_SECONDS;
    for (const [n, deviceId] of deviceIds
      .slice(FIRST_PACKED, FIRST_PACKED + (smoke ? 2 : VEHICLES))
      .entries())
      await storeTrack(sql, { deviceId, firstMs, count, stepSeconds: STEP_SECONDS, seed: n });
    const alone: Felt[] = [];
    const beside: Felt[] = [];
    const pairs = smoke ? SMOKE_PAIRS_MAX : PAIRS;
    for (let pair = 0; pair < pairs && !(smoke && beside.length > 0); pair++) {
      const endsIn = (ms: number) => {
        const endMs = performance.now() + ms;
        return () => performance.now() > endMs;
      };
      const windowMs = smoke ? 200 : WINDOW_MS;
      alone.push(await feel(service, probe, () => sleep(windowMs), smoke));
      let points = 0;
      const pack = async () => {
        points = await packAll(sql, sleep, endsIn(windowMs));
      };
      const felt = await feel(service, probe, pack, smoke);
      // Looking for something to pack may take a whole window, and in the end everything is packed.
      if (points > 0) beside.push(felt);
    }
    if (beside.length === 0) throw new Error('nothing was packed');
    const p99 = (all: readonly Felt[], of: keyof Felt) =>
      median(all.map((felt) => felt[of].percentile(0.99)));
    const row = (what: string, all: readonly Felt[], of: keyof Felt): Row => ({
      what,
      p50Ms: median(all.map((felt) => felt[of].percentile(0.5))),
      p99Ms: p99(all, of),
    });
    return {
      rows: [
        row(`${BATCH} points sent, ${PER_SECOND} times a second`, alone, 'sent'),
        row('the same beside packing', beside, 'sent'),
        row(`nearest, ${POLLS_PER_SECOND} a second, and these points`, alone, 'polled'),
        row('the same beside packing, nearest', beside, 'polled'),
      ],
      metrics: {
        ingest_p99_beside_packing: p99(beside, 'sent') / p99(alone, 'sent'),
        nearest_p99_beside_packing: p99(beside, 'polled') / p99(alone, 'polled'),
      },
    };
  } finally {
    await probe.close();
    await sql.end();
  }
}

/** What a customer feels while `work` goes on. */
async function feel(
  service: Service,
  probe: NearestProbe,
  work: () => Promise<unknown>,
  smoke: boolean,
): Promise<Felt> {
  const sent = new Latencies();
  const polled = await probe.during(() => sendWhile(service, work(), smoke, sent));
  return { sent, polled };
}

async function sendWhile(
  service: Service,
  work: Promise<unknown>,
  smoke: boolean,
  latencies: Latencies,
): Promise<void> {
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  const sent: Promise<number>[] = [];
  const beginMs = performance.now();
  for (let n = 0; !isOver; n++) {
    sent.push(send(service, n, smoke));
    await sleep(Math.max(0, beginMs + ((n + 1) * 1_000) / PER_SECOND - performance.now()));
  }
  await ended;
  for (const ms of await Promise.all(sent)) latencies.add(ms);
}

/** Returns the milliseconds until the answer. */
async function send(service: Service, n: number, smoke: boolean): Promise<number> {
  const points = Array.from({ length: BATCH }, (_, at) => ({
    imei: simulatedImei((smoke ? 50 : FIRST_SENDER) + ((n * BATCH + at) % (smoke ? 40 : 2_000))),
    recorded_at: Date.now(),
    latitude: 41.9,
    longitude: 12.5,
    speed_kmh: 40,
  }));
  const started = performance.now();
  await sendPoints(service, points);
  return performance.now() - started;
}
