import { createSecretKey, randomBytes } from 'node:crypto';
import { fingerprint, newKey, prefix } from '../../src/access/credentials.ts';
import { insertKey } from '../../src/access/keys.sql.ts';
import { SCOPES } from '../../src/access/scopes.ts';
import { type AreaDefinition, areaMeasures } from '../../src/areas/area.ts';
import { insertAreas } from '../../src/areas/areas.sql.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';
import { deliveryWeeks } from '../../src/housekeeping.ts';
import { HOUR_MS } from '../../src/lib/time.ts';
import { DELIVERIES, ensureWeeks } from '../../src/postgres/partitions.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import { RawSql } from '../../src/postgres/sqlText.ts';
import { newSecret, seal } from '../../src/webhooks/delivery.ts';
import { jaggedRing, polygonArea } from '../setup/areas.ts';
import { SECRETS_KEY } from '../setup/service.ts';

interface Owner {
  readonly accountId: number;
  readonly worldId: number;
}

export async function seedAccount(
  sql: Sql,
  email: string,
  passwordHash: string | null = null,
): Promise<Owner> {
  const [row] = await sql<Owner[]>`
    with home as (insert into world default values returning id)
    insert into account (email, name, world_id, password_hash) select ${email}, ${email}, id, ${passwordHash} from home
    returning id as "accountId", world_id as "worldId"`;
  if (row === undefined) throw new Error('an insert returns its row');
  return row;
}

export async function seedKey(sql: Sql, accountId: number): Promise<string> {
  const key = newKey(randomBytes);
  const secrets = { fingerprint: fingerprint(key), prefix: prefix(key) };
  await sql.begin((tx) =>
    insertKey(tx, accountId, { name: null, ...secrets, scopes: SCOPES, allowlist: [] }),
  );
  return key;
}

/** The position of device `n` (from 0), as SQL expressions. */
export interface PlaceSql {
  readonly lat: string;
  readonly lng: string;
}

/** Inserts devices with positions in one statement. The IMEI of device n is `firstImei + n`. */
export async function seedDevices(
  sql: Sql,
  worldId: number,
  { firstImei, count, place }: { firstImei: number; count: number; place: PlaceSql },
): Promise<void> {
  await sql`
    with created as (
      insert into device (imei, world_id, name)
      select (${firstImei}::bigint + n)::text, ${worldId}, 'Vehicle ' || n from generate_series(0, ${count - 1}::int) as n
      returning id, imei
    )
    insert into device_state (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites, moved_at)
    select id, now() - interval '1 minute', ${new RawSql(place.lat)}, ${new RawSql(place.lng)}, 40, 30, 90, 12, now()
    from created, lateral (select imei::bigint - ${firstImei}::bigint as n) as r`;
  await sql.unsafe('analyze device; analyze device_state');
}

export async function seedAreas(
  sql: Sql,
  owner: Owner,
  areas: { count: number; vertices: number; centre: LatLng; radiusDeg: number },
): Promise<void> {
  const ring = jaggedRing(areas.vertices, areas.centre, areas.radiusDeg, 1);
  await seedCopies(sql, owner, polygonArea('Area', ring), areas.count);
}

export async function seedCopies(
  sql: Sql,
  owner: Owner,
  definition: AreaDefinition,
  count: number,
): Promise<void> {
  const ids = await sql.begin((tx) =>
    insertAreas(tx, owner, [{ definition, measures: areaMeasures(definition.geometry) }]),
  );
  await sql`
    insert into area (world_id, account_id, name, color, type, center_lat, center_lng, buffer_m, points, dwell_seconds,
      area_m2, perimeter_m, length_m, south, west, north, east)
    select world_id, account_id, name || ' ' || n, color, type, center_lat, center_lng, buffer_m, points, dwell_seconds,
      area_m2, perimeter_m, length_m, south, west, north, east
    from area, generate_series(2, ${count}::int) as n where id = ${ids?.[0] ?? 0}`;
}

/** Inserts ignition events of one device, a second apart, the newest now. */
export async function seedEvents(sql: Sql, worldId: number, imei: number, count: number): Promise<void> {
  await inChunks(
    count,
    (first, last) => sql`
      insert into fleet_event (world_id, device_id, device_imei, type, message, data, occurred_at)
      select world_id, id, imei, 'ignition_on', 'ignition on', '{"ignition":true,"position":{"lat":0,"lng":0}}',
        now() - make_interval(secs => n)
      from device, generate_series(${first}::int, ${last}::int) as n
      where imei = ${imei}::text and world_id = ${worldId}`,
  );
  await sql.unsafe('analyze fleet_event');
}

/** Inserts endpoints that subscribe to all events. Returns their ids. */
export async function seedWebhooks(sql: Sql, accountId: number, urls: readonly string[]): Promise<number[]> {
  const secret = seal(createSecretKey(SECRETS_KEY), newSecret());
  const rows = await sql<{ id: number }[]>`
    insert into webhook (account_id, url, events, retry_policy, max_retries, active, secret)
    select ${accountId}, url, '{*}', 'exponential', 5, true, ${secret} from unnest(${[...urls]}::text[]) as url
    returning id`;
  return rows.map((row) => row.id);
}

/**
 * Inserts deliveries of an endpoint, a millisecond apart, the newest now: delivered ones, or such as have failed and wait
 * for their retry in an hour.
 */
export async function seedDeliveries(
  sql: Sql,
  accountId: number,
  webhookId: number,
  count: number,
  status: 'delivered' | 'failed' = 'delivered',
): Promise<void> {
  const isDone = status === 'delivered';
  await ensureWeeks(sql, DELIVERIES, deliveryWeeks(Date.now() - HOUR_MS));
  await inChunks(
    count,
    (first, last) => sql`
      insert into webhook_delivery (id, webhook_id, account_id, event_id, event_type, body, status, attempts, spent,
        next_attempt_at, last_status_code, created_at, delivered_at)
      select 'dlv_' || md5('a' || ${webhookId}::bigint || '-' || n), ${webhookId}, ${accountId}, 'evt_' || md5(n::text),
        'ignition_on', '{}', ${status}, 1, 1, case when not ${isDone} then now() + interval '1 hour' end,
        ${isDone ? 200 : 503}, now() - make_interval(secs => n * 0.001), case when ${isDone} then now() end
      from generate_series(${first}::int, ${last}::int) as n`,
  );
  await sql.unsafe('analyze webhook_delivery');
}

const CHUNK = 50_000;

/** Inserts rows 1 to `count` in chunks, since the statement timeout applies. */
async function inChunks(count: number, insert: (first: number, last: number) => PromiseLike<unknown>) {
  for (let first = 1; first <= count; first += CHUNK) await insert(first, Math.min(count, first + CHUNK - 1));
}
