import { setTimeout as sleep } from 'node:timers/promises';
import { simulatedImei } from '../../src/cli/simulate/simulatedImei.ts';
import { ensureWeeks, POSITIONS, weekStartMs } from '../../src/store/sql/partitions.ts';
import { openSql } from '../../src/store/sql/sql.ts';
import type { CaseContext, Row } from '../benchCase.ts';
import { Latencies } from '../measure/latencies.ts';
import { packAll } from './packedHistory.ts';
import { INGEST_TOKEN } from './service.ts';
import { storeTrack } from './vehicleTracks.ts';

const DAY_MS = 86_400_000;
const VEHICLES = 10;
const STEP_SECONDS = 10;
const PER_SECOND = 100;
const BATCH = 10;
/** Of the vehicles that send. */
const FIRST_SENDER = 1_000;

/**
 * Sends small batches of new points all the time: alone, and while the same process packs the week of some vehicles with
 * the rests that housekeeping takes.
 */
export async function measureIngestBeside(
  { databaseUrl, smoke, seconds }: CaseContext,
  ingestPort: number,
  deviceIds: readonly number[],
): Promise<{ rows: Row[]; metrics: Record<string, number> }> {
  const sql = openSql(databaseUrl, { maxConnections: 2, name: 'bench packing' });
  try {
    const firstMs = weekStartMs(Date.now()) - 21 * DAY_MS;
    await ensureWeeks(sql, POSITIONS, [firstMs]);
    const count = ((smoke ? 0.1 : 4) * DAY_MS) / 1_000 / STEP_SECONDS;
    for (const [n, deviceId] of deviceIds.slice(-VEHICLES).entries())
      await storeTrack(sql, { deviceId, firstMs, count, stepSeconds: STEP_SECONDS, seed: n });
    const alone = await sendWhile(ingestPort, sleep(smoke ? 300 : seconds * 1_000), smoke);
    const beside = await sendWhile(ingestPort, packAll(sql, sleep), smoke);
    const ratio = beside.percentile(0.99) / alone.percentile(0.99);
    return {
      rows: [
        { what: `${BATCH} points sent, ${PER_SECOND} times a second`, ...alone.percentiles() },
        { what: 'the same beside packing', ...beside.percentiles() },
      ],
      metrics: { ingest_p99_beside_packing: ratio },
    };
  } finally {
    await sql.end();
  }
}

async function sendWhile(port: number, work: Promise<unknown>, smoke: boolean): Promise<Latencies> {
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  const sent: Promise<number>[] = [];
  const beginMs = performance.now();
  for (let n = 0; !isOver; n++) {
    sent.push(send(port, n, smoke));
    await sleep(Math.max(0, beginMs + ((n + 1) * 1_000) / PER_SECOND - performance.now()));
  }
  await ended;
  const latencies = new Latencies();
  for (const ms of await Promise.all(sent)) latencies.add(ms);
  return latencies;
}

/** Returns the milliseconds until the answer. */
async function send(port: number, n: number, smoke: boolean): Promise<number> {
  const points = Array.from({ length: BATCH }, (_, at) => ({
    imei: simulatedImei((smoke ? 50 : FIRST_SENDER) + ((n * BATCH + at) % (smoke ? 40 : 2_000))),
    recorded_at: Date.now(),
    latitude: 41.9,
    longitude: 12.5,
    speed_kmh: 40,
  }));
  const started = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}/positions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-ingest-token': INGEST_TOKEN },
    body: JSON.stringify(points),
  });
  await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`/positions answered ${response.status}`);
  return performance.now() - started;
}
