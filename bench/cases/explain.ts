import { setTimeout as sleep } from 'node:timers/promises';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import type { BenchCase, Row } from '../benchCase.ts';
import { Latencies } from '../measure/latencies.ts';
import { profile } from '../measure/profile.ts';
import { jaggedRing, polygonArea, storeAreas } from '../setup/areas.ts';
import { openNearestProbe, PROBES_PER_SECOND } from '../setup/nearestProbe.ts';
import { POLYGON_CENTRE } from '../setup/places.ts';
import { postPoints } from '../setup/points.ts';
import { startBenchService } from '../setup/service.ts';
import { createWorld } from '../setup/world.ts';
import { openWorker } from '../worker.ts';
import type { FileQuestion, FileRead } from '../workers/fileReader.ts';

const DEVICES = 10_000;
const SMOKE_DEVICES = 100;
const VERTICES = 100;
const AREA_RADIUS_DEG = 0.05;
const STEP_MS = 10_000;
const DAY_POINTS = 8_640;
/** Three weeks: nearly as many as a call may look at. */
const DAYS = 21;
const BATCH = 2_000;
const SMOKE_SECONDS = 0.3;
/** The vehicle goes round through the area every half hour, and stands for ten hours of a day. */
const ROUND_MS = 1_800_000;
const STANDS_FROM_MS = 14 * 3_600_000;

export const explain: BenchCase = {
  about:
    'why an area of 100 vertices reported what it did of a vehicle in a day, with and without its points',
  run: async (context) => {
    const { databaseUrl, smoke, say, seconds } = context;
    const devices = smoke ? SMOKE_DEVICES : DEVICES;
    const world = await createWorld(context, devices);
    const ring = jaggedRing(VERTICES, POLYGON_CENTRE, AREA_RADIUS_DEG, 1);
    const [areaId] = await storeAreas(databaseUrl, [polygonArea('Bench', ring)]);
    await using service = await startBenchService(databaseUrl);
    await using probe = openNearestProbe(service.url, world.key);
    await using reader = openWorker<FileQuestion, FileRead>('fileReader');
    const days = smoke ? 1 : DAYS;
    const startMs = Math.floor(Date.now() / DAY_MS - days - 1) * DAY_MS;
    await drive(service.ingestUrl, startMs, days * DAY_POINTS);
    say(`${days * DAY_POINTS} points sent`);
    const headers = { 'X-API-Key': world.key };
    const explain = async (forDays: number, steps: boolean): Promise<number> => {
      const [from, to] = [startMs, startMs + forDays * DAY_MS - 1].map((ms) => new Date(ms).toISOString());
      const query = `device=${simulatedImei(0)}&steps=${steps}&from=${from}&to=${to}`;
      const file = await reader.ask({
        url: `${service.url}/api/v3/areas/${areaId}/explain?${query}`,
        headers,
      });
      return file.seconds * 1_000;
    };
    const rounds = smoke ? 2 : Math.max(20, Math.floor(seconds * 20));
    const day = await times(rounds, () => explain(1, false));
    const stepped = await times(rounds, () => explain(1, true));
    const weeks = await times(smoke ? 1 : 5, () => explain(days, false));
    const alone = await probe.during(() => sleep(smoke ? SMOKE_SECONDS * 1_000 : seconds * 200));
    const beside = await probe.during(() => times(smoke ? 2 : 20, () => explain(days, true)));
    const work = () => times(rounds, () => explain(1, false)).then(() => rounds);
    const rows: Row[] = [
      { what: `a day of ${DAY_POINTS} points`, ...day.percentiles() },
      { what: 'the same with its points', ...stepped.percentiles() },
      { what: `${days} days`, ...weeks.percentiles() },
      { what: `nearest alone, ${PROBES_PER_SECOND} a second`, ...alone.percentiles() },
      { what: `nearest beside ${days} days with their points`, ...beside.percentiles() },
    ];
    return {
      kind: 'measured',
      size: `${days * DAY_POINTS} points of one of ${devices} devices, ${VERTICES} vertices`,
      rows,
      profiles: context.profile ? [await profile('an explanation of a day', work)] : [],
      metrics: { day_ms: day.percentile(0.5), nearest_p99_ms: beside.percentile(0.99) },
    };
  },
};

async function times(rounds: number, measure: () => Promise<number>): Promise<Latencies> {
  const latencies = new Latencies();
  for (let round = 0; round < rounds; round++) latencies.add(await measure());
  return latencies;
}

/** Through ingest, so that what is explained has happened. */
async function drive(ingestUrl: string, startMs: number, count: number): Promise<void> {
  for (let first = 0; first < count; first += BATCH) {
    const points = Array.from({ length: Math.min(BATCH, count - first) }, (_, n) => {
      const atMs = startMs + (first + n) * STEP_MS;
      const ofDayMs = Math.min(atMs % DAY_MS, STANDS_FROM_MS);
      const angle = (2 * Math.PI * ofDayMs) / ROUND_MS;
      return {
        imei: simulatedImei(0),
        recorded_at: atMs,
        latitude: POLYGON_CENTRE.lat + 0.2 * Math.sin(angle),
        longitude: POLYGON_CENTRE.lng + 0.02 * Math.cos(angle),
      };
    });
    await postPoints(ingestUrl, points);
  }
}
