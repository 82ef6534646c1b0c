import { randomBytes } from 'node:crypto';
import { fingerprint, newKey, prefix } from '../../access/credentials.ts';
import { insertKey } from '../../access/keys.sql.ts';
import { SCOPES } from '../../access/scopes.ts';
import { writeWorlds } from '../../changelog/writeWorlds.ts';
import type { Config } from '../../config.ts';
import { importChunk } from '../../devices/importDevices.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { selectAccount, updateAccount } from '../../tenants/accounts.sql.ts';
import { hashPassword } from '../../tenants/credentials.ts';
import { unknownAccount } from '../command.ts';
import { type Session, withSession } from '../session.ts';
import { ensureAccount } from '../simulate/simulate.ts';
import { simulatedImei } from '../simulate/simulatedFleet.ts';

export const DEMO_EMAIL = 'demo@example.com';
/** Twelve characters to type. */
const PASSWORD_BYTES = 9;
const KINDS = [
  { name: 'Van', model: 'Panel van', group: 'deliveries' },
  { name: 'Truck', model: 'Box truck', group: 'deliveries' },
  { name: 'Car', model: 'Estate car', group: 'service' },
] as const;

/** Who owns the vehicles of the demo. */
export interface DemoTenant {
  readonly imeis: readonly string[];
  /** New in each run: the clear text of an earlier one is not kept anywhere. Earlier ones stay valid. */
  readonly key: string;
  /** Logs in to the console; new in each run, too. */
  readonly password: string;
}

/** Makes what is missing beside the running service of `config`: account, vehicles, and always a key for everything. */
export async function registerDemo(
  config: Config,
  vehicles: number,
  say: (line: string) => void,
): Promise<Result<DemoTenant, string>> {
  return withSession(config, say, async (session) => {
    await ensureAccount(session, DEMO_EMAIL);
    const imeis = Array.from({ length: vehicles }, (_, index) => simulatedImei(index));
    const lines = imeis.map((imei, index) => ({
      line: index + 1,
      patch: { imei, ...describeVehicle(index) },
    }));
    const devices = await importChunk(session, DEMO_EMAIL, lines);
    if (!devices.ok) return unknownAccount(DEMO_EMAIL);
    const [rejected] = devices.value.rejected;
    if (rejected !== undefined) return fail(rejected.message);
    const password = randomBytes(PASSWORD_BYTES).toString('base64url');
    const key = await createKey(session, await hashPassword(password));
    return key.ok ? ok({ imeis, key: key.value, password }) : key;
  });
}

function describeVehicle(index: number) {
  const kind = KINDS[index % KINDS.length] ?? KINDS[0];
  return {
    name: `${kind.name} ${index + 1}`,
    plate: `RM ${String(index + 100).padStart(3, '0')} FT`,
    model: kind.model,
    groups: [kind.group],
  };
}

/** A key for everything, and the account's password in the same write. */
function createKey(session: Session, passwordHash: string): Promise<Result<string, string>> {
  return writeWorlds(session, async ({ tx, changed }) => {
    const account = await selectAccount(tx, DEMO_EMAIL, 'share');
    if (account === undefined) return unknownAccount(DEMO_EMAIL);
    const key = newKey(randomBytes);
    const draft = { name: 'demo', fingerprint: fingerprint(key), prefix: prefix(key), scopes: SCOPES };
    const id = await insertKey(tx, account.id, { ...draft, allowlist: [] });
    await updateAccount(tx, account.id, { passwordHash });
    changed({ kind: 'key', worldId: account.worldId, entityIds: [id] });
    changed({ kind: 'account', worldId: account.worldId, entityIds: [account.id] });
    return ok(key);
  });
}

/** Places of the demo, of three kinds. Named by external ids, so that every run finds those of the one before. */
const AREAS = [
  {
    externalId: 'demo-colosseum',
    body: { name: 'Colosseum', type: 'circle', center: { lat: 41.8902, lng: 12.4922 }, radius_m: 400 },
  },
  {
    externalId: 'demo-old-town',
    body: {
      name: 'Old town',
      type: 'polygon',
      color: '#d97706',
      dwell_seconds: 30,
      points: [
        { lat: 41.9109, lng: 12.4763 },
        { lat: 41.9029, lng: 12.4843 },
        { lat: 41.8955, lng: 12.4824 },
        { lat: 41.8898, lng: 12.4766 },
        { lat: 41.8968, lng: 12.4687 },
        { lat: 41.9017, lng: 12.4665 },
      ],
    },
  },
  {
    externalId: 'demo-corso',
    body: {
      name: 'Via del Corso',
      type: 'polyline',
      color: '#16a34a',
      buffer_m: 40,
      points: [
        { lat: 41.9107, lng: 12.4764 },
        { lat: 41.9005, lng: 12.4802 },
        { lat: 41.8966, lng: 12.4822 },
      ],
    },
  },
];

/** Puts the areas there and returns the id of the first, which the Colosseum is in. */
export async function saveDemoAreas(api: string, key: string): Promise<Result<number, string>> {
  const ids: number[] = [];
  for (const { externalId, body } of AREAS) {
    const response = await fetch(`${api}/api/v3/areas/by-external-id/${externalId}`, {
      method: 'PUT',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) return fail(`the area ${body.name} cannot be saved: ${response.status} ${text}`);
    ids.push((JSON.parse(text) as { data: { id: number } }).data.id);
  }
  return ok(ids[0] as number);
}

/** When a vehicle has reported last, in epoch milliseconds; 0 when it never has. */
export async function lastReportMs(api: string, key: string, imei: string): Promise<Result<number, string>> {
  const response = await fetch(`${api}/api/v3/devices/${imei}/location`, { headers: { 'X-API-Key': key } });
  const text = await response.text();
  if (response.status === 404) return ok(0);
  if (!response.ok) return fail(`the last point of ${imei} cannot be read: ${response.status} ${text}`);
  return ok(Date.parse((JSON.parse(text) as { data: { recorded_at: string } }).data.recorded_at));
}
