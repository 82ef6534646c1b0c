import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SelfSignedCertificate, selfSignedCertificate } from '../../src/cli/commands/webhook.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { hashPassword } from '../../src/tenants/credentials.ts';
import { nearestPaths } from '../setup/places.ts';
import type { VictimCall } from '../workers/neighbourVictim.ts';
import type { Attack, AttackAccount, AttackSetup, Scale } from './attack.ts';
import { ATTACKS } from './attacks.ts';
import { seedAccount, seedAreas, seedDevices, seedEvents, seedKey } from './seeds.ts';

/** The customer whose service must not suffer: what it owns and calls. */
export interface Victim {
  readonly keys: readonly string[];
  readonly polls: readonly string[];
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
  const sql = openSql(databaseUrl, { maxConnections: 1, name: 'bench neighbours' });
  try {
    await migrate(sql, () => undefined);
    const owner = await seedAccount(sql, EMAIL, await hashPassword(PASSWORD));
    const keys: string[] = [];
    while (keys.length < (scale === 'smoke' ? SMOKE_KEYS : KEYS))
      keys.push(await seedKey(sql, owner.accountId));
    const count = scale === 'smoke' ? SMOKE_DEVICES : DEVICES;
    const place = { lat: `${fractionOf(GOLDEN)} * 120 - 60`, lng: `${fractionOf(GOLDEN ** 2)} * 360 - 180` };
    await seedDevices(sql, owner.worldId, { firstImei: VICTIM_IMEI, count, place });
    await seedEvents(sql, owner.worldId, VICTIM_IMEI + count - 1, EVENTS);
    await seedAreas(sql, owner, {
      count: AREAS,
      vertices: 100,
      centre: { lat: 10, lng: 10 },
      radiusDeg: 0.1,
    });
    const [area] = await sql<
      { id: number }[]
    >`select id from area where account_id = ${owner.accountId} limit 1`;
    const reads = [
      '/api/v3/events?limit=50',
      `/api/v3/areas/${area?.id}`,
      `/api/v3/areas/${area?.id}/events`,
    ];
    return { keys, polls: nearestPaths(PATHS), reads, firstImei: VICTIM_IMEI, devices: REPORTING };
  } finally {
    await sql.end();
  }
}

const fractionOf = (factor: number): string => `(n * ${factor} - floor(n * ${factor}))`;

/** What the victim calls once a second while this attack runs. */
export function extraOf({ asks }: Attack): VictimCall | null {
  const json = { 'Content-Type': 'application/json' };
  if (asks === undefined) return null;
  switch (asks) {
    case 'login':
      return {
        method: 'POST',
        path: '/api/v1/session',
        headers: { ...json, 'X-Forwarded-For': '10.0.1.1' },
        body: JSON.stringify({ email: EMAIL, password: PASSWORD }),
      };
    case 'small import':
      return {
        method: 'POST',
        path: '/api/v3/areas/import?dry_run=true',
        headers: json,
        body: '{"type":"Feature","properties":{"name":"Yard"},"geometry":{"type":"Point","coordinates":[12,41]}}',
      };
  }
}

/** Inserts the accounts of an attack and what they own. Must be called before a pod starts. */
export async function seedAttack(
  databaseUrl: string,
  attack: Attack,
  scale: Scale,
  receiverUrl: string,
): Promise<AttackSetup> {
  const sql = openSql(databaseUrl, { maxConnections: 1, name: 'bench neighbours' });
  try {
    const index = ATTACKS.indexOf(attack);
    const accounts = await seedAccounts(sql, index, attack.accounts);
    const setup = { scale, accounts, receiverUrl, firstImei: VICTIM_IMEI + (index + 1) * IMEIS_OF_ATTACK };
    await attack.seed?.({ ...setup, sql });
    return setup;
  } finally {
    await sql.end();
  }
}

async function seedAccounts(sql: Sql, attack: number, count: number): Promise<AttackAccount[]> {
  const accounts: AttackAccount[] = [];
  for (let n = 0; n < count; n++) {
    const email = `attacker-${attack}-${n}@example.com`;
    const owner = await seedAccount(sql, email);
    const key = await seedKey(sql, owner.accountId);
    accounts.push({ email, ...owner, key, address: `10.1.${attack}.${n + 1}` });
  }
  return accounts;
}

/** Makes a certificate for receivers that every pod started before `forget` trusts. `forget` removes its file. */
export async function trustReceivers(): Promise<{
  certificate: SelfSignedCertificate;
  forget: () => Promise<void>;
}> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-neighbours-'));
  const certificate = await selfSignedCertificate(['127.0.0.1'], Date.now() - DAY_MS, Date.now() + DAY_MS);
  const file = join(folder, 'receivers.pem');
  await writeFile(file, certificate.certificatePem);
  // Node reads it when a process starts. The pods inherit it.
  process.env['NODE_EXTRA_CA_CERTS'] = file;
  const forget = async (): Promise<void> => {
    delete process.env['NODE_EXTRA_CA_CERTS'];
    await rm(folder, { recursive: true });
  };
  return { certificate, forget };
}
