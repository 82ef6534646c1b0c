import { HistoryPacker } from '../../src/history/packHistory.ts';
import { pointPages } from '../../src/history/points.sql.ts';
import { DAY_MS, weekStartMs } from '../../src/lib/time.ts';
import { WorkTurns } from '../../src/lib/workTurns.ts';
import { ensureWeeks, POSITIONS, truncateWeek } from '../../src/postgres/partitions.ts';
import { arrayLiteral, type Sql } from '../../src/postgres/sql.ts';
import { recordedReports, type Track } from '../../test/support/ingest/readTraces.ts';
import { DATA_FOLDER } from '../../test/support/ingest/recordings.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { CaseContext, Part, Row } from '../benchCase.ts';
import { median } from '../measure/latencies.ts';
import { postgresCpuUs } from '../measure/postgresCpu.ts';
import { cpuUs } from '../measure/usage.ts';
import { openBenchSql } from './cluster.ts';

const STEPS_SECONDS = [5, 10, 30];
const VEHICLES = 6;
const DAYS = 4;
const ROUNDS = 15;

/** Packs everything that may be packed until it is over, without rests unless they are given. Returns how many points. */
export async function packAll(
  sql: Sql,
  rest: (ms: number) => Promise<unknown> = async () => undefined,
  isOver = () => false,
): Promise<number> {
  let points = 0;
  const packer = new HistoryPacker({
    sql,
    turns: new WorkTurns<string>(0.5), // as in a pod
    rest,
    lateWaitMs: 0,
    onUnpackedDays: () => undefined,
    onPacked: (count) => {
      points += count;
    },
    onDamaged: ({ reason }) => {
      throw new Error(reason);
    },
  });
  for (let isDone = false; !isDone && !isOver(); ) {
    await sql`update packing set pass_due_at = '-infinity', leased_until = '-infinity'`;
    isDone = (await packer.round(isOver)) === 'done';
  }
  return points;
}

/** What a point of a few vehicles takes on disk, and how fast it is packed and read, at each sampling. */
export async function measurePacking(
  { databaseUrl, smoke }: CaseContext,
  deviceIds: readonly number[],
  worldIds: readonly number[],
): Promise<Part> {
  await using sql = openBenchSql(databaseUrl, 2);
  const rows: Row[] = [];
  const metrics: Record<string, number> = {};
  // The week before the last: none of it is needed by anybody else, so its space is given back at once.
  const firstMs = weekStartMs(Date.now()) - 14 * DAY_MS;
  for (const [s, stepSeconds] of STEPS_SECONDS.entries()) {
    const own = deviceIds.slice(s * VEHICLES, s * VEHICLES + (smoke ? 1 : VEHICLES));
    const count = ((smoke ? 1 : DAYS) * DAY_MS) / 1_000 / stepSeconds;
    for (const [n, deviceId] of own.entries())
      await storeTrack(sql, { deviceId, firstMs, count, stepSeconds, seed: 100 * s + n });
    await sql.unsafe('vacuum analyze position');
    const readDay = () => secondsOfDay(sql, worldIds, own[0] as number, firstMs, smoke);
    const bytesBefore = await packedBytes(sql);
    const asRows = await readDay();
    const postgresBeforeUs = (await postgresCpuUs(sql)) ?? 0;
    const beforeUs = cpuUs();
    const started = performance.now();
    const points = await packAll(sql);
    const seconds = (performance.now() - started) / 1_000;
    const usedUs = cpuUs() - beforeUs + ((await postgresCpuUs(sql)) ?? 0) - postgresBeforeUs;
    await truncateWeek(sql, POSITIONS, firstMs);
    const bytes = ((await packedBytes(sql)) - bytesBefore) / points;
    const packed = await readDay();
    const every = `every ${stepSeconds} s`;
    const perSecond = points / seconds;
    rows.push({ what: `packing, ${every}: ${bytes.toFixed(2)} bytes a point`, unit: 'points', perSecond });
    rows.push({ what: `a day of rows, ${every}`, seconds: asRows });
    rows.push({ what: `a packed day, ${every}`, seconds: packed });
    metrics[`bytes_a_point_${stepSeconds}s`] = bytes;
    metrics[`packed_points_per_cpu_second_${stepSeconds}s`] = (points * 1e6) / usedUs;
    metrics[`packed_day_speedup_${stepSeconds}s`] = asRows / packed;
  }
  return { rows, metrics };
}

async function packedBytes(sql: Sql): Promise<number> {
  const [row] = await sql<{ bytes: number }[]>`
    select coalesce(sum(pg_total_relation_size(inhrelid)), 0)::float8 as bytes
    from pg_inherits where inhparent = 'packed_points'::regclass`;
  return row?.bytes ?? 0;
}

async function secondsOfDay(
  sql: Sql,
  worldIds: readonly number[],
  deviceId: number,
  dayMs: number,
  isShort: boolean,
): Promise<number> {
  const seconds: number[] = [];
  for (let round = 0; round < (isShort ? 2 : ROUNDS); round++) {
    const started = performance.now();
    const window = { fromMs: dayMs, toMs: dayMs + DAY_MS - 1 };
    let points = 0;
    for await (const page of pointPages(sql, worldIds, deviceId, window)) points += page.count;
    if (points === 0) throw new Error('the day has no points');
    seconds.push((performance.now() - started) / 1_000);
  }
  return median(seconds);
}

const ROWS_AT_A_TIME = 10_000;
const KM_PER_DEGREE = 111.2;

/** What the tracks are. */
export const TRACKS =
  DATA_FOLDER === undefined
    ? 'simulated tracks, which stand half of the time, with a delay of 0.4 to 0.6 s'
    : 'recorded tracks (FLEET_TEST_DATA), always on the way, with a delay of 0.3 to 3 s';

/** Stores the points of a vehicle. Returns how many. Recorded ones are `count` or fewer. */
export async function storeTrack(
  sql: Sql,
  { deviceId, ...track }: Track & { readonly deviceId: number },
): Promise<number> {
  const days = Math.ceil((track.count * track.stepSeconds) / 86_400);
  const mondays = Array.from({ length: days + 1 }, (_, day) => weekStartMs(track.firstMs + day * DAY_MS));
  await ensureWeeks(sql, POSITIONS, [...new Set(mondays)]);
  let rows: (readonly (number | null)[])[] = [];
  let stored = 0;
  for await (const row of DATA_FOLDER === undefined ? pointsOf(track) : recordedReports(track)) {
    if (rows.push(row) < ROWS_AT_A_TIME) continue;
    await insert(sql, deviceId, rows);
    stored += rows.length;
    rows = [];
  }
  if (rows.length > 0) await insert(sql, deviceId, rows);
  return stored + rows.length;
}

const round = (value: number, digits: number): number => Number(value.toFixed(digits));

/**
 * Drives through a town half of the time and stands with a noisy receiver otherwise: six decimals, whole seconds, and a
 * delay of the network that no two points share.
 */
function* pointsOf({ firstMs, count, stepSeconds, seed }: Track): Generator<number[]> {
  const random = seededRandom(seed);
  const noise = (size: number): number => (random() + random() + random() - 1.5) * size;
  let [lat, lng, heading, speed, altitude, satellites, odometer] = [41.9, 12.5, 90, 0, 50, 11, 48_211];
  for (let n = 0; n < count; n++) {
    const drives = Math.floor((n * stepSeconds) / 1_800) % 2 === 0;
    if (drives) {
      speed = Math.max(0, Math.min(90, speed + noise(stepSeconds) + (random() < 0.02 ? -speed : 0)));
      heading = (heading + noise(random() < 0.1 ? 90 : 5) + 360) % 360;
      const km = (speed * stepSeconds) / 3_600;
      odometer += km;
      lat += (km / KM_PER_DEGREE) * Math.cos((heading * Math.PI) / 180);
      lng += (km / KM_PER_DEGREE / 0.75) * Math.sin((heading * Math.PI) / 180);
      altitude += noise(1.5);
    } else speed = 0;
    if (random() < 0.1) satellites = Math.max(5, Math.min(16, satellites + (random() < 0.5 ? -1 : 1)));
    const sentAtMs = firstMs + n * stepSeconds * 1_000;
    const place = [round(lat + noise(2e-6), 6), round(lng + noise(2e-6), 6), Math.round(altitude)];
    const motion = [round(speed, 1), Math.floor(heading), satellites, round(odometer, 1)];
    yield [sentAtMs, ...place, ...motion, sentAtMs + 400 + Math.floor(200 * random() ** 2)];
  }
}

async function insert(
  sql: Sql,
  deviceId: number,
  rows: readonly (readonly (number | null)[])[],
): Promise<void> {
  const column = (n: number) => arrayLiteral(rows.map((row) => row[n] ?? null));
  await sql`
    insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites,
      odometer_km, received_at, late)
    select ${deviceId}, to_timestamp(at / 1000), lat, lng, alt, speed, heading, sat, odo, to_timestamp(received / 1000), false
    from unnest(${column(0)}::float8[], ${column(1)}::float8[], ${column(2)}::float8[], ${column(3)}::float8[],
      ${column(4)}::float8[], ${column(5)}::float8[], ${column(6)}::int[], ${column(7)}::float8[], ${column(8)}::float8[])
      as p (at, lat, lng, alt, speed, heading, sat, odo, received)`;
}
