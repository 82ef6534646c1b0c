import { ok, type Result } from '../base/result.ts';
import { type Account, selectAccount } from '../store/access/accounts.ts';
import type { Sql } from '../store/sql/sql.ts';
import { unknownAccount } from './unknownAccount.ts';

/** The account of an address; null without an address. */
export async function findAccount(
  sql: Sql,
  email: string | undefined,
): Promise<Result<Account | null, string>> {
  if (email === undefined) return ok(null);
  const account = await sql.begin((tx) => selectAccount(tx, email, 'share'));
  return account === undefined ? unknownAccount(email) : ok(account);
}
