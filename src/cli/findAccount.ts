import { ok, type Result } from '../lib/result.ts';
import type { Sql } from '../postgres/sql.ts';
import { type Account, selectAccount } from '../tenants/accounts.sql.ts';
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
