import type { Sql } from '../../src/postgres/sql.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';

const ROWS_AT_A_TIME = 10_000;
const KM_PER_DEGREE = 111.2;

/** Points of one vehicle as a tracker sends them. */
export interface VehicleTrack {
  readonly deviceId: number;
  readonly firstMs: number;
  readonly count: number;
  readonly stepSeconds: number;
  readonly seed: number;
}

/**
 * Stores the points of a vehicle that drives through a town half of the time and stands with a noisy receiver otherwise:
 * six decimals, whole seconds, and a delay of the network that no two points share. The partitions exist.
 */
export async function storeTrack(sql: Sql, track: VehicleTrack): Promise<void> {
  let rows: number[][] = [];
  for (const row of pointsOf(track)) {
    rows.push(row);
    if (rows.length < ROWS_AT_A_TIME) continue;
    await insert(sql, track.deviceId, rows);
    rows = [];
  }
  if (rows.length > 0) await insert(sql, track.deviceId, rows);
}

const round = (value: number, digits: number): number => Number(value.toFixed(digits));

function* pointsOf({
  firstMs,
  count,
  stepSeconds,
  seed,
}: VehicleTrack): Generator<number[], void, undefined> {
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
    yield [
      ...[
        sentAtMs,
        round(lat + noise(2e-6), 6),
        round(lng + noise(2e-6), 6),
        Math.round(altitude),
        round(speed, 1),
      ],
      ...[
        Math.floor(heading),
        satellites,
        round(odometer, 1),
        sentAtMs + 400 + Math.floor(200 * random() ** 2),
      ],
    ];
  }
}

async function insert(sql: Sql, deviceId: number, rows: readonly number[][]): Promise<void> {
  const column = (n: number): string => `{${rows.map((row) => row[n]).join()}}`;
  await sql`
    insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites,
      odometer_km, received_at, late)
    select ${deviceId}, to_timestamp(at / 1000), lat, lng, alt, speed, heading, sat, odo, to_timestamp(received / 1000), false
    from unnest(${column(0)}::float8[], ${column(1)}::float8[], ${column(2)}::float8[], ${column(3)}::float8[],
      ${column(4)}::float8[], ${column(5)}::float8[], ${column(6)}::int[], ${column(7)}::float8[], ${column(8)}::float8[])
      as p (at, lat, lng, alt, speed, heading, sat, odo, received)`;
}
