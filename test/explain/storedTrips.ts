import { weekStartMs } from '../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../src/postgres/partitions.ts';
import type { Sql } from '../../src/postgres/sql.ts';

/** Where the stored points lie: now inside the area of the tests, now outside. */
export const TRIP_AREA = { name: 'Trips', type: 'circle', center: { lat: 41.9, lng: 12.5 }, radius_m: 1_000 };

const WEEK_MS = 7 * 86_400_000;

/** Stores `count` points, one a second from `startMs`, for each of some devices: in for 60 to 119 s, out as long. */
export async function storeTrips(
  sql: Sql,
  imeis: readonly string[],
  count: number,
  startMs: number,
): Promise<void> {
  const mondays: number[] = [];
  for (let at = weekStartMs(startMs); at <= startMs + count * 1_000; at += WEEK_MS) mondays.push(at);
  await ensureWeeks(sql, POSITIONS, mondays);
  await sql`
    insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites)
    select d.id, to_timestamp(${startMs}::float8 / 1000 + n),
      case when (n / (60 + d.id % 60)) % 2 = 0 then 41.9 else 42.9 end, 12.5, 0, 0, 0, 0
    from device d cross join generate_series(0, ${count}::int - 1) n where d.imei = any(${[...imeis]}::text[])`;
  await sql.unsafe('analyze position');
}
