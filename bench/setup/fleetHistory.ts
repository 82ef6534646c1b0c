import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import type { CaseContext, Part } from '../benchCase.ts';
import { postgresCpuUs } from '../measure/postgresCpu.ts';
import { cpuUs, rssMb } from '../measure/usage.ts';
import type { Worker } from '../worker.ts';
import type { FileQuestion, FileRead } from '../workers/fileReader.ts';
import type { NearestProbe } from './nearestProbe.ts';

/** Vehicles that are read in one call: the last ones. */
const VEHICLES = 5_000;
/**
 * Days in the file, for each of so many seconds that a measurement may take: of 5 000 vehicles, 43 million points in
 * three days.
 */
const SECONDS_PER_DAY = 3;
/** Of a reader that is slower than the service. */
const SLOW_BYTES_PER_SECOND = 20e6;
const SAMPLE_MS = 100;

/** A fleet whose points are packed. */
interface PackedFleet {
  readonly sql: Sql;
  readonly url: string;
  readonly key: string;
  readonly vehicles: number;
  /** The first day, and how many there are. */
  readonly firstMs: number;
  readonly days: number;
  readonly pointsOfDay: number;
  readonly probe: NearestProbe;
  readonly reader: Worker<FileQuestion, FileRead>;
}

/** A month of many vehicles in one call, beside nearest calls, and what a file costs in memory while it is read slowly. */
export async function measureFleetHistory(
  { smoke, seconds: secondsEach }: CaseContext,
  fleet: PackedFleet,
): Promise<Part> {
  const { sql, url, key, firstMs, days, probe } = fleet;
  const vehicles = Math.min(VEHICLES, fleet.vehicles - 1);
  const after = simulatedImei(fleet.vehicles - 1 - vehicles);
  const read = (path: string, forDays: number, slow = {}) => {
    const [from, to] = [firstMs, firstMs + forDays * DAY_MS - 1].map((ms) => new Date(ms).toISOString());
    const whole = `${url}/api/v3/history/${path}&after=${after}&from=${from}&to=${to}`;
    return fleet.reader.ask({ url: whole, headers: { 'X-API-Key': key }, ...slow });
  };
  const usedUs = async () => cpuUs() + ((await postgresCpuUs(sql)) ?? 0);
  const points = vehicles * days * fleet.pointsOfDay;
  await read('summary?by=total', 1);
  const beforeUs = await usedUs();
  let seconds = 0;
  const beside = await probe.during(async () => {
    ({ seconds } = await read('summary?by=total', days));
  });
  const summaryUs = ((await usedUs()) - beforeUs) / points;
  const exportDays = Math.max(1, Math.min(days, smoke ? 1 : Math.round(secondsEach / SECONDS_PER_DAY)));
  const memory = watchMemory();
  const csv = await read(
    'export?format=csv',
    exportDays,
    smoke ? {} : { bytesPerSecond: SLOW_BYTES_PER_SECOND },
  );
  const grownMb = memory.end();
  const what = `${vehicles} vehicles and ${days} days`;
  const exported = vehicles * exportDays * fleet.pointsOfDay;
  return {
    rows: [
      {
        what: `summary of ${what}, with Postgres and nearest`,
        ...{ unit: 'points', perSecond: points / seconds, seconds, cpuUs: summaryUs },
      },
      { what: 'nearest beside the summary', ...beside.percentiles() },
      {
        what: `${exported} points of them as CSV, to a reader of ${SLOW_BYTES_PER_SECOND / 1e6} MB/s: grown by`,
        ...{ unit: 'points', perSecond: exported / csv.seconds, seconds: csv.seconds, rssMb: grownMb },
      },
    ],
    metrics: {
      fleet_summary_seconds: seconds,
      nearest_beside_summary_p99_ms: beside.percentile(0.99),
      slow_export_grown_mb: grownMb,
    },
  };
}

/** `end`: by how many MB this process was larger than at the beginning. */
function watchMemory(): { end(): number } {
  const before = rssMb();
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, rssMb());
  }, SAMPLE_MS);
  return {
    end: () => {
      clearInterval(timer);
      return most - before;
    },
  };
}
