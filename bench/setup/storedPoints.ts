import type { LatLng } from '../../src/geo/wgs84.ts';
import { DAY_MS, weekStartMs } from '../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../src/postgres/partitions.ts';
import type { Sql } from '../../src/postgres/sql.ts';

export interface StoredPoints {
  readonly devices: number;
  readonly days: number;
  readonly everySeconds: number;
  readonly startMs: number;
  /** The devices go round about here, each on a circle of its own, up to this far away. */
  readonly centre: LatLng;
  readonly radiusDeg: number;
}

const WEEK_MS = 7 * DAY_MS;

/** Ordered by time, then by device, as they would have come. Each device stands for ten hours of a day. */
export async function storePoints(
  sql: Sql,
  deviceIds: readonly number[],
  { devices, days, everySeconds, startMs, centre, radiusDeg }: StoredPoints,
  say: (line: string) => void = () => undefined,
): Promise<number> {
  // Housekeeping would begin to pack them in the middle of a measurement.
  await sql`update packing set pass_due_at = 'infinity'`;
  const ids = deviceIds.slice(0, devices);
  const mondays: number[] = [];
  for (let at = weekStartMs(startMs); at <= startMs + days * DAY_MS; at += WEEK_MS) mondays.push(at);
  await ensureWeeks(sql, POSITIONS, mondays);
  let stored = 0;
  for (let day = 0; day < days; day++) {
    const dayMs = startMs + day * DAY_MS;
    const { count } = await sql`
      insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites)
      select id, to_timestamp(${dayMs}::float8 / 1000 + s),
        ${centre.lat}::float8 + ${radiusDeg}::float8 * ((id % 17) / 17.0) * sin(least(s, 50400) / 900.0 + id),
        ${centre.lng}::float8 + ${radiusDeg}::float8 * ((id % 17) / 17.0) * cos(least(s, 50400) / 900.0 + id),
        40, 36, 90, 12
      from generate_series(0, 86399, ${everySeconds}::int) s
      cross join unnest(${`{${ids.join(',')}}`}::bigint[]) id order by s, id`;
    stored += count;
    if ((day + 1) % 10 === 0) say(`${stored} points stored`);
  }
  await sql.unsafe('vacuum (analyze) position');
  return stored;
}
