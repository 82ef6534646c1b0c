import { migrate } from '../../src/postgres/migrate.ts';
import { hashPassword } from '../../src/tenants/credentials.ts';
import { openBenchSql } from '../setup/cluster.ts';
import { nearestPaths } from '../setup/places.ts';
import type { VictimCall } from '../workers/neighbourVictim.ts';
import { type Attack, type AttackAccount, type AttackSetup, type Scale, seedingOf } from './attack.ts';
import { ATTACKS } from './attacks.ts';
import { seedAccount, seedAreas, seedDevices, seedEvents, seedKey } from './seeds.ts';

/** The customer whose service must not suffer: what it owns and calls. */
export interface Victim {
  /** Used in turn, each from its own address, so that none reaches its limits. */
  readonly keys: readonly string[];
  readonly polls: readonly string[];
  /** They read from Postgres. */
  readonly reads: readonly string[];
  readonly firstImei: number;
  readonly devices: number;
}

const EMAIL = 'victim@example.com';
const PASSWORD = 'the password of the victim';
/** Each may make 120 calls a minute. Together they make 45 a second. */
const KEYS = 64;
const SMOKE_KEYS = 24;
/** Devices that send points: ten every 50 ms, so each once a second. */
const REPORTING = 200;
const DEVICES = 20_000;
const SMOKE_DEVICES = 500;
const EVENTS = 1_000;
const AREAS = 20;
const PATHS = 64;
const VICTIM_IMEI = 860_000_000_000_000;
const IMEIS_OF_ATTACK = 10_000_000;
const GOLDEN = 0.618_033_988_7;

/** Creates the schema and the victim's data in an empty database. */
export async function seedVictim(databaseUrl: string, scale: Scale): Promise<Victim> {
  await using sql = openBenchSql(databaseUrl);
  await migrate(sql, () => undefined);
  const owner = await seedAccount(sql, EMAIL, await hashPassword(PASSWORD));
  const keys: string[] = [];
  while (keys.length < (scale === 'smoke' ? SMOKE_KEYS : KEYS))
    keys.push(await seedKey(sql, owner.accountId));
  const count = scale === 'smoke' ? SMOKE_DEVICES : DEVICES;
  const place = { lat: `${fractionOf(GOLDEN)} * 120 - 60`, lng: `${fractionOf(GOLDEN ** 2)} * 360 - 180` };
  await seedDevices(sql, owner.worldId, { firstImei: VICTIM_IMEI, count, place });
  await seedEvents(sql, owner.worldId, VICTIM_IMEI + count - 1, EVENTS);
  const areas = { count: AREAS, vertices: 100, centre: { lat: 10, lng: 10 }, radiusDeg: 0.1 };
  await seedAreas(sql, owner, areas);
  const [area] = await sql<{ id: number }[]>`
    select id from area where account_id = ${owner.accountId} limit 1`;
  const path = `/api/v3/areas/${area?.id}`;
  const reads = ['/api/v3/events?limit=50', path, `${path}/events`];
  return { keys, polls: nearestPaths(PATHS), reads, firstImei: VICTIM_IMEI, devices: REPORTING };
}

const fractionOf = (factor: number): string => `(n * ${factor} - floor(n * ${factor}))`;

/** What the victim calls once a second while this attack runs. */
export function extraOf({ asks }: Attack): VictimCall | null {
  if (asks === 'login')
    return {
      path: '/api/v1/session',
      headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': '10.0.1.1' },
      body: JSON.stringify({ email: EMAIL, password: PASSWORD }),
    };
  if (asks === 'small import')
    return {
      path: '/api/v3/areas/import?dry_run=true',
      headers: { 'Content-Type': 'application/json' },
      body: '{"type":"Feature","properties":{"name":"Yard"},"geometry":{"type":"Point","coordinates":[12,41]}}',
    };
  return null;
}

/** Inserts the accounts of an attack and what they own. Must be called before a pod starts. */
export async function seedAttack(
  databaseUrl: string,
  attack: Attack,
  scale: Scale,
  receiverUrl: string,
): Promise<AttackSetup> {
  await using sql = openBenchSql(databaseUrl);
  const index = ATTACKS.indexOf(attack);
  const accounts: AttackAccount[] = [];
  for (let n = 0; n < (attack.accounts ?? 1); n++) {
    const email = `attacker-${index}-${n}@example.com`;
    const owner = await seedAccount(sql, email);
    const key = await seedKey(sql, owner.accountId);
    accounts.push({ email, ...owner, key, address: `10.1.${index}.${n + 1}` });
  }
  const setup = { scale, accounts, receiverUrl, firstImei: VICTIM_IMEI + (index + 1) * IMEIS_OF_ATTACK };
  await attack.seed?.(seedingOf(setup, sql));
  return setup;
}
