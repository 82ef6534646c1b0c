import { selectHistory } from '../../src/history/newestPoints.sql.ts';
import { HistoryPacker } from '../../src/history/packHistory.ts';
import { pointPages } from '../../src/history/points.sql.ts';
import { WorkTurns } from '../../src/lib/workTurns.ts';
import { ensureWeeks, POSITIONS, truncateWeek, weekStartMs } from '../../src/postgres/partitions.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import type { CaseContext, Row } from '../benchCase.ts';
import { median } from '../measure/median.ts';
import { postgresCpuUs } from '../measure/postgresCpu.ts';
import { storeTrack } from './vehicleTracks.ts';

const DAY_MS = 86_400_000;
const STEPS_SECONDS = [5, 10, 30];
const VEHICLES = 6;
const DAYS = 4;
const ROUNDS = 15;
const PAGE_POINTS = 500;

export interface MeasuredPacking {
  readonly rows: Row[];
  readonly metrics: Record<string, number>;
}

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
    log: { info: () => undefined },
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

/**
 * Stores the closed days of a few vehicles at each sampling, reads them, packs them, and reads them again: what a point
 * takes on disk and how fast it is packed and read.
 */
export async function measurePacking(
  { databaseUrl, smoke }: CaseContext,
  deviceIds: readonly number[],
  worldIds: readonly number[],
): Promise<MeasuredPacking> {
  const sql = openSql(databaseUrl, { maxConnections: 2, name: 'bench packing' });
  const rows: Row[] = [];
  const metrics: Record<string, number> = {};
  try {
    // The week before the last: none of it is needed by anybody else, so its space is given back at once.
    const firstMs = weekStartMs(Date.now()) - 14 * DAY_MS;
    await ensureWeeks(sql, POSITIONS, [firstMs]);
    for (const [s, stepSeconds] of STEPS_SECONDS.entries()) {
      const own = deviceIds.slice(s * VEHICLES, s * VEHICLES + (smoke ? 1 : VEHICLES));
      const count = ((smoke ? 1 : DAYS) * DAY_MS) / 1_000 / stepSeconds;
      for (const [n, deviceId] of own.entries())
        await storeTrack(sql, { deviceId, firstMs, count, stepSeconds, seed: 100 * s + n });
      await sql.unsafe('vacuum analyze position');
      const measured = await measureSampling(sql, worldIds, own, { firstMs, stepSeconds, isShort: smoke });
      rows.push(...measured.rows);
      Object.assign(metrics, measured.metrics);
    }
    return { rows, metrics };
  } finally {
    await sql.end();
  }
}

async function measureSampling(
  sql: Sql,
  worldIds: readonly number[],
  deviceIds: readonly number[],
  { firstMs, stepSeconds, isShort }: { firstMs: number; stepSeconds: number; isShort: boolean },
): Promise<MeasuredPacking> {
  const deviceId = deviceIds[0] as number;
  const readDay = () => secondsOfDay(sql, worldIds, deviceId, firstMs, isShort);
  const before = await bytesOf(sql);
  const asRows = await readDay();
  const cpu = process.cpuUsage();
  const postgresBefore = await postgresCpuUs(sql);
  const started = performance.now();
  const points = await packAll(sql);
  const seconds = (performance.now() - started) / 1_000;
  const postgresAfter = await postgresCpuUs(sql);
  const { user, system } = process.cpuUsage(cpu);
  const postgresUs = postgresBefore === null || postgresAfter === null ? 0 : postgresAfter - postgresBefore;
  const cpuSeconds = (user + system + postgresUs) / 1e6;
  await truncateWeek(sql, POSITIONS, firstMs);
  const bytes = ((await bytesOf(sql)).packed - before.packed) / points;
  const packed = await readDay();
  const every = `every ${stepSeconds} s`;
  return {
    rows: [
      {
        what: `packing, ${every}: ${bytes.toFixed(2)} bytes a point`,
        ...{ unit: 'points', perSecond: points / seconds },
      },
      { what: `a day of rows, ${every}`, seconds: asRows },
      { what: `a packed day, ${every}`, seconds: packed },
    ],
    metrics: {
      [`bytes_a_point_${stepSeconds}s`]: bytes,
      [`packed_points_per_cpu_second_${stepSeconds}s`]: points / cpuSeconds,
      [`packed_day_speedup_${stepSeconds}s`]: asRows / packed,
    },
  };
}

/** Tables, indexes and what is stored beside them. */
async function bytesOf(sql: Sql): Promise<{ packed: number }> {
  const [row] = await sql<{ packed: number }[]>`
    select coalesce(sum(pg_total_relation_size(inhrelid)), 0)::float8 as packed
    from pg_inherits where inhparent = 'packed_points'::regclass`;
  return { packed: row?.packed ?? 0 };
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

/** Reads the newest page of a device again and again: of today, and of a day that is packed. */
export async function measurePages(
  { databaseUrl, smoke }: CaseContext,
  imei: string,
  worldIds: readonly number[],
): Promise<MeasuredPacking> {
  const sql = openSql(databaseUrl, { maxConnections: 1, name: 'bench pages' });
  try {
    const nowMs = Date.now();
    const timed = async (toMs: number): Promise<number> => {
      const seconds: number[] = [];
      for (let round = 0; round < (smoke ? 2 : 20 * ROUNDS); round++) {
        const started = performance.now();
        await selectHistory(sql, worldIds, imei, { fromMs: nowMs - 180 * DAY_MS, toMs }, PAGE_POINTS, nowMs);
        seconds.push((performance.now() - started) / 1_000);
      }
      return median(seconds);
    };
    const today = await timed(nowMs + DAY_MS);
    const packed = await timed(nowMs - 10 * DAY_MS);
    return {
      rows: [
        { what: `a page of ${PAGE_POINTS} of today`, seconds: today },
        { what: `a page of ${PAGE_POINTS}, packed`, seconds: packed },
      ],
      metrics: { packed_page_of_today: packed / today },
    };
  } finally {
    await sql.end();
  }
}
