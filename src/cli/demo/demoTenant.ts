import { randomBytes } from 'node:crypto';
import { fingerprint, newKey, prefix } from '../../access/apiKey.ts';
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
import { registerSimulation, simulatedImei } from '../simulate/registerSimulation.ts';

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
    const account = await registerSimulation(session, DEMO_EMAIL, 0);
    if (!account.ok) return account;
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
