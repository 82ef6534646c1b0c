import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { adminOf } from '../../test/support/postgres/admin.ts';
import { placeSource, type Spread } from './places.ts';

/** One account with a key with all scopes, and its devices, each with a position. */
export interface BenchWorld {
  readonly key: string;
  readonly deviceIds: readonly number[];
}

export interface WorldOptions {
  readonly databaseUrl: string;
  readonly devices: number;
  readonly spread: Spread;
  readonly seed: number;
  say(line: string): void;
}

/** Of the account that owns the world. */
export const WORLD_EMAIL = 'bench@example.com';
const CHUNK = 20_000;
const PROGRESS_EVERY = 200_000;

/** Creates the schema and a seeded world in an empty database. Device n has the IMEI simulatedImei(n). */
export async function createWorld(options: WorldOptions): Promise<BenchWorld> {
  const sql = openSql(options.databaseUrl, { maxConnections: 1, name: 'bench world' });
  try {
    await migrate(sql, () => undefined);
    const admin = adminOf(options.databaseUrl);
    await admin.account(WORLD_EMAIL);
    const { key } = await admin.key(WORLD_EMAIL);
    const deviceIds = await insertWorld(sql, options);
    await sql.unsafe('analyze device; analyze device_state');
    return { key, deviceIds };
  } finally {
    await sql.end();
  }
}

async function insertWorld(sql: Sql, { devices, spread, seed, say }: WorldOptions): Promise<number[]> {
  const place = placeSource(spread, seed);
  const out = new Float64Array(2);
  const ids: number[] = [];
  for (let at = 0; at < devices; at += CHUNK) {
    const chunk = Array.from({ length: Math.min(CHUNK, devices - at) }, (_, n) => {
      place(out);
      return { imei: simulatedImei(at + n), lat: out[0] as number, lng: out[1] as number };
    });
    for (const id of await insertChunk(sql, chunk)) ids.push(id);
    const done = at + chunk.length;
    if (done % PROGRESS_EVERY === 0 && done < devices) say(`${done} of ${devices} devices stored`);
  }
  return ids;
}

/** Returns the ids in the order of the rows. */
async function insertChunk(
  sql: Sql,
  rows: readonly { imei: string; lat: number; lng: number }[],
): Promise<number[]> {
  const inserted = await sql<{ id: number }[]>`
    with r as (
      select * from unnest(${literal(rows.map((row) => row.imei))}::text[], ${literal(rows.map((row) => row.lat))}::float8[],
        ${literal(rows.map((row) => row.lng))}::float8[]) with ordinality as r (imei, lat, lng, n)
    ), created as (
      insert into device (imei, world_id, name, plate, device_model, groups)
      select imei, (select world_id from account where email = ${WORLD_EMAIL}), 'Vehicle ' || n, 'RM ' || right(imei, 6),
        'Panel van', '{deliveries}' from r order by n
      returning id, imei
    ), state as (
      insert into device_state (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading,
        satellites, odometer_km, ignition, moved_at)
      select c.id, now(), r.lat, r.lng, 40, 36.5, 90, 12, 48210.4, true, now() from created c join r using (imei)
    )
    select c.id from created c join r using (imei) order by r.n`;
  return inserted.map((row) => row.id);
}

/** A Postgres array literal of plain values. */
function literal(values: readonly (string | number)[]): string {
  return `{${values.join(',')}}`;
}
