import { setTimeout as sleep } from 'node:timers/promises';
import type { LatLng } from '../../src/geo/wgs84.ts';
import { packColumns } from '../../src/history/codec/packedBlob.ts';
import { emptyColumns, type PointColumns, writeColumns } from '../../src/history/codec/pointColumns.ts';
import { pointBounds } from '../../src/history/packing.sql.ts';
import { DAY_MS, weekStartMs } from '../../src/lib/time.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { ensureWeeks, PACKED_POINTS } from '../../src/postgres/partitions.ts';
import { arrayLiteral, type Sql } from '../../src/postgres/sql.ts';
import { identifier } from '../../src/postgres/sqlText.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { BenchCase } from '../benchCase.ts';
import { Latencies } from '../measure/latencies.ts';
import { openBenchSql } from '../setup/cluster.ts';
import { measureFleetHistory } from '../setup/fleetHistory.ts';
import { openNearestProbe, PROBES_PER_SECOND } from '../setup/nearestProbe.ts';
import { startBenchService } from '../setup/service.ts';
import { createWorld } from '../setup/world.ts';
import { openWorker } from '../worker.ts';
import type { FileQuestion, FileRead } from '../workers/fileReader.ts';

const SIZES = { vehicles: 20_000, depots: 600, days: 30, stepSeconds: 30, calls: 60 };
const SMOKE_SIZES = { vehicles: 60, depots: 6, days: 2, stepSeconds: 600, calls: 3 };
type Sizes = typeof SIZES;
const RADIUS_M = 500;
const REACH_DEG = 0.2;

export const presence: BenchCase = {
  about:
    'which of many vehicles were at a place in 30 days of packed points, and what all of them did, beside nearest calls',
  run: async (context) => {
    const { databaseUrl, smoke, say } = context;
    const largest = { ...SIZES, vehicles: context.sizes?.at(-1) ?? SIZES.vehicles };
    const sizes = smoke ? SMOKE_SIZES : largest;
    const world = await createWorld(context, sizes.vehicles);
    await using sql = openBenchSql(databaseUrl);
    const depots = depotsOf(sizes);
    const firstMs = Math.floor(Date.now() / DAY_MS) * DAY_MS - (sizes.days + 3) * DAY_MS;
    const points = await storeDays(sql, sizes, depots, world.deviceIds, firstMs, say);
    await using service = await startBenchService(databaseUrl);
    await using probe = openNearestProbe(service.url, world.key);
    await using reader = openWorker<FileQuestion, FileRead>('fileReader');
    const headers = { 'X-API-Key': world.key };
    const random = seededRandom(3);
    const [from, to] = [firstMs, firstMs + sizes.days * DAY_MS].map((ms) => new Date(ms).toISOString());
    const ask = async (latencies: Latencies): Promise<void> => {
      for (let n = 0; n < sizes.calls; n++) {
        const depot = depots[Math.floor(random() * depots.length)]!;
        const lat = depot.lat + (random() - 0.5) * REACH_DEG;
        const lng = depot.lng + (random() - 0.5) * REACH_DEG;
        const place = `lat=${lat.toFixed(6)}&lng=${lng.toFixed(6)}&radius_m=${RADIUS_M}`;
        const url = `${service.url}/api/v3/presence?${place}&from=${from}&to=${to}`;
        latencies.add((await reader.ask({ url, headers })).seconds * 1_000);
      }
    };
    const alone = new Latencies();
    await ask(alone);
    const calm = await probe.during(() => sleep(smoke ? 300 : context.seconds * 200));
    const beside = await probe.during(() => ask(new Latencies()));
    const { vehicles, days, stepSeconds } = sizes;
    const pointsOfDay = DAY_MS / 1_000 / stepSeconds;
    const asked = { sql, url: service.url, key: world.key, vehicles, firstMs, days, pointsOfDay };
    const fleet = await measureFleetHistory(context, { ...asked, probe, reader });
    return {
      kind: 'measured',
      size: `${sizes.vehicles} vehicles with ${points} packed points of ${sizes.days} days, circles of ${RADIUS_M} m`,
      rows: [
        { what: 'presence of 30 days', ...alone.percentiles() },
        { what: `nearest alone, ${PROBES_PER_SECOND} a second`, ...calm.percentiles() },
        { what: `nearest beside presence, ${PROBES_PER_SECOND} a second`, ...beside.percentiles() },
        ...fleet.rows,
      ],
      metrics: {
        presence_p99_ms: alone.percentile(0.99),
        nearest_p99_ms: beside.percentile(0.99),
        ...fleet.metrics,
      },
    };
  },
};

function depotsOf({ depots }: Sizes): LatLng[] {
  const random = seededRandom(1);
  return Array.from({ length: depots }, () => ({ lat: 38 + random() * 8, lng: 8 + random() * 9 }));
}

/** Packed days of all vehicles; those of a depot drive together. Returns how many points. */
async function storeDays(
  sql: Sql,
  { depots: count, days, stepSeconds }: Sizes,
  depots: readonly LatLng[],
  deviceIds: readonly number[],
  firstMs: number,
  say: (line: string) => void,
): Promise<number> {
  const week = (n: number) => weekStartMs(firstMs) + n * 7 * DAY_MS;
  const weeks = Array.from({ length: Math.ceil(days / 7) + 1 }, (_, n) => week(n));
  await ensureWeeks(sql, PACKED_POINTS, weeks);
  // Twelve gigabytes: not twice.
  for (const { name } of await sql<{ name: string }[]>`
    select inhrelid::regclass::text as name from pg_inherits where inhparent = 'packed_points'::regclass`)
    await sql`alter table ${identifier(name)} set unlogged`;
  const random = seededRandom(2);
  let total = 0;
  for (const [n, depot] of depots.entries()) {
    const own = deviceIds.filter((_, index) => index % count === n);
    for (let day = 0; day < days; day++) {
      const points = drive(depot, firstMs + day * DAY_MS, stepSeconds, random);
      await storeDay(sql, own, points);
      total += points.count * own.length;
    }
    if (n % 100 === 99) say(`${total} points stored`);
  }
  await sql.unsafe('vacuum analyze packed_points');
  return total;
}

function drive(depot: LatLng, firstMs: number, stepSeconds: number, random: () => number): PointColumns {
  const count = Math.floor(86_400 / stepSeconds);
  const points = emptyColumns(count);
  const [turns, phase, reach] = [2 + random() * 6, random() * 6.28, REACH_DEG * (0.2 + 0.8 * random())];
  for (let n = 0; n < count; n++) {
    const angle = phase + (turns * 6.28 * n) / count;
    points.recordedAtMs[n] = firstMs + n * stepSeconds * 1_000;
    points.lats[n] = round(depot.lat + reach * Math.sin(angle) + (random() - 0.5) * 1e-4, 1e6);
    points.lngs[n] = round(depot.lng + reach * Math.sin(1.7 * angle) + (random() - 0.5) * 1e-4, 1e6);
    points.altitudesM[n] = Math.round(100 + 20 * Math.sin(angle / 3) + random() * 2);
    points.speedsKmh[n] = round(40 + 20 * Math.sin(angle * 5) + random() * 5, 10);
    points.headings[n] = Math.round(random() * 20 + 180 + 90 * Math.sin(angle));
    points.satellites[n] = 9 + Math.floor(random() * 4);
    points.odometersKm[n] = Number.NaN;
    points.receivedAtMs[n] = (points.recordedAtMs[n] as number) + 800 + Math.floor(random() * 900);
  }
  return points;
}

const round = (value: number, parts: number) => Math.round(value * parts) / parts;

async function storeDay(sql: Sql, deviceIds: readonly number[], points: PointColumns): Promise<void> {
  const blob = packColumns(inOneGo(writeColumns(points)));
  const { south, west, north, east } = pointBounds(points.lats, points.lngs);
  const [firstMs, lastMs] = [points.recordedAtMs[0]!, points.recordedAtMs[points.count - 1]!];
  await sql`
    insert into packed_points (device_id, first_at, last_at, south, west, north, east, count, checksum, codec, points)
    select id, ${new Date(firstMs)}, ${new Date(lastMs)}, ${south}, ${west}, ${north}, ${east}, ${points.count},
      ${blob.checksum}, ${blob.codec}, ${blob.bytes}
    from unnest(${arrayLiteral(deviceIds)}::bigint[]) as id`;
}
