import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { arrayLiteral, type Sql } from '../../src/postgres/sql.ts';
import { adminOf } from '../../test/support/postgres/admin.ts';
import type { CaseContext } from '../benchCase.ts';
import { openBenchSql } from './cluster.ts';
import { placesOf } from './places.ts';

/** One account with a key with all scopes, and its devices, each with a position. */
export interface BenchWorld {
  readonly key: string;
  readonly deviceIds: readonly number[];
}

/** Of the account that owns the world. */
export const WORLD_EMAIL = 'bench@example.com';
const CHUNK = 20_000;
const PROGRESS_EVERY = 200_000;

/** Into an empty database. Device n has the IMEI simulatedImei(n) and place n of placesOf('towns', 1, devices). */
export async function createWorld(
  { databaseUrl, say }: Pick<CaseContext, 'databaseUrl' | 'say'>,
  devices: number,
): Promise<BenchWorld> {
  await using sql = openBenchSql(databaseUrl);
  await migrate(sql, () => undefined);
  const admin = adminOf(databaseUrl);
  await admin.account(WORLD_EMAIL);
  const { key } = await admin.key(WORLD_EMAIL);
  const places = placesOf('towns', 1, devices);
  const deviceIds: number[] = [];
  for (let at = 0; at < devices; at += CHUNK) {
    const end = Math.min(devices, at + CHUNK);
    for (const id of await insertDevices(sql, places, at, end)) deviceIds.push(id);
    if (end % PROGRESS_EVERY === 0 && end < devices) say(`${end} of ${devices} devices stored`);
  }
  await sql.unsafe('analyze device; analyze device_state');
  return { key, deviceIds };
}

/** Returns the ids in the order of the devices. */
async function insertDevices(sql: Sql, places: Float64Array, first: number, end: number): Promise<number[]> {
  const list = (of: (n: number) => string | number) =>
    arrayLiteral(Array.from({ length: end - first }, (_, n) => of(first + n)));
  const inserted = await sql<{ id: number }[]>`
    with r as (
      select * from unnest(${list(simulatedImei)}::text[], ${list((n) => places[2 * n]!)}::float8[],
        ${list((n) => places[2 * n + 1]!)}::float8[]) with ordinality as r (imei, lat, lng, n)
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

/** Keys used in turn: more than fit into the first-level cache of a processor. */
const KEYS = 256;

/** Distributes the devices of a world among new accounts. Returns one key for each of the first accounts. */
export async function splitAmong(databaseUrl: string, accounts: number): Promise<string[]> {
  await using sql = openBenchSql(databaseUrl);
  await sql.begin(async (tx) => {
    await tx`
      with made as (insert into world select from generate_series(1, ${accounts}::int) returning id)
      insert into account (email, name, world_id)
      select 'tenant' || row_number() over () || '@example.com', 'Tenant', id from made`;
    await tx`
      with owner as (
        select world_id, row_number() over (order by id) - 1 as n from account where email like 'tenant%'
      )
      update device d set world_id = owner.world_id from owner where owner.n = d.id % ${accounts}::int`;
  });
  await sql.unsafe('analyze device');
  const admin = adminOf(databaseUrl);
  const keys: string[] = [];
  for (let n = 1; n <= Math.min(KEYS, accounts); n++)
    keys.push((await admin.key(`tenant${n}@example.com`)).key);
  return keys;
}
