import { writeWorlds } from '../../changelog/writeWorlds.ts';
import { IMPORT_CHUNK, importChunk } from '../../devices/importDevices.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { insertAccount, lockForNewTenants, selectAccount } from '../../tenants/accounts.sql.ts';
import { unknownAccount } from '../command.ts';
import type { Session } from '../session.ts';

/** Makes the account, unless it is there, and those of the first `count` made-up devices that are missing. */
export async function registerSimulation(
  session: Session,
  email: string,
  count: number,
): Promise<Result<readonly string[], string>> {
  const imeis = Array.from({ length: count }, (_, index) => simulatedImei(index));
  await ensureAccount(session, email);
  for (let at = 0; at < imeis.length; at += IMPORT_CHUNK) {
    const lines = imeis
      .slice(at, at + IMPORT_CHUNK)
      .map((imei, index) => ({ line: at + index + 1, patch: { imei } }));
    const outcome = await importChunk(session, email, lines);
    if (!outcome.ok) return unknownAccount(email);
    const [rejected] = outcome.value.rejected;
    if (rejected !== undefined) return fail(`${rejected.message}; use the --email of the earlier simulation`);
  }
  return ok(imeis);
}

async function ensureAccount(session: Session, email: string): Promise<void> {
  await writeWorlds(session, async ({ tx, changed }) => {
    await lockForNewTenants(tx);
    if ((await selectAccount(tx, email, 'share')) !== undefined) return;
    const draft = { email, name: 'Simulation', organizationId: null, plan: 'pro', passwordHash: null };
    const { id, worldId } = await insertAccount(tx, draft);
    changed({ kind: 'account', worldId, entityIds: [id] });
  });
}

/** Type allocation code of made-up devices: eight digits in front of each IMEI, no maker's. */
const TYPE_CODE = '35999999';
const SERIAL_DIGITS = 6;

/** The number of serial numbers of one type. */
export const SIMULATED_MAX = 10 ** SERIAL_DIGITS;

/** The IMEI of the made-up device of this index (0 to SIMULATED_MAX - 1), with a true check digit. */
export function simulatedImei(index: number): string {
  const body = TYPE_CODE + String(index).padStart(SERIAL_DIGITS, '0');
  return body + luhnDigit(body);
}

/** The digit that makes the Luhn sum of `body` and itself a multiple of ten (ISO/IEC 7812-1 annex B). */
function luhnDigit(body: string): number {
  let sum = 0;
  for (const [place, digit] of [...body].reverse().entries()) {
    const weighted = Number(digit) * (place % 2 === 0 ? 2 : 1);
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return (10 - (sum % 10)) % 10;
}
