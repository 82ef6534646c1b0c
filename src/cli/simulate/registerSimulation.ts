import { writeWorlds } from '../../changelog/writeWorlds.ts';
import { IMPORT_CHUNK, importChunk } from '../../devices/importChunk.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { insertAccount, lockForNewTenants, selectAccount } from '../../tenants/accounts.sql.ts';
import type { Session } from '../session.ts';
import { unknownAccount } from '../unknownAccount.ts';
import { simulatedImei } from './simulatedImei.ts';

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
