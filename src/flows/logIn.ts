import { randomBytes } from 'node:crypto';
import { fingerprint } from '../access/apiKey.ts';
import type { Login } from '../access/login.ts';
import { loginSubjects } from '../access/loginLimits.ts';
import { NOBODYS_PASSWORD, verifyPassword } from '../access/password.ts';
import { newSessionToken } from '../access/sessionToken.ts';
import type { Turnstile } from '../base/turnstile.ts';
import { chargeLogin, refundLogin, rememberAddress, selectLoginAccount } from '../store/logins.ts';
import { insertSession } from '../store/sessions.ts';
import type { Sql } from '../store/sql.ts';

export interface LogInPorts {
  /** The connections that a network counts its attempts by (see addressNetwork). */
  readonly logins: (network: string) => Sql;
  /** Bounds how many passwords are checked at once: each takes a fifth of a second of a core, and 32 MB. */
  readonly checks: Pick<Turnstile, 'run'>;
}

export type LogInOutcome =
  | { readonly kind: 'logged_in'; readonly token: string; readonly expiresAtMs: number }
  /** Unknown, without a password, inactive, or another password: told apart neither by the answer nor by its time. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'limited' };

/** Opens a session for whoever knows the password of an active account. `network`: see addressNetwork. */
export async function logIn(
  { logins, checks }: LogInPorts,
  { email, password }: Login,
  network: string,
): Promise<LogInOutcome> {
  const sql = logins(network);
  const subjects = loginSubjects(email, network);
  const charged = await sql.begin((tx) => chargeLogin(tx, subjects));
  if (charged === null) return { kind: 'limited' };
  const account = await selectLoginAccount(sql, email);
  const stored = account?.passwordHash ?? NOBODYS_PASSWORD;
  const fits = await checks.run(() => verifyPassword(password, stored));
  if (fits === null) {
    await sql.begin((tx) => refundLogin(tx, charged));
    return { kind: 'limited' };
  }
  if (!fits || account === undefined) return { kind: 'refused' };
  const token = newSessionToken(randomBytes);
  const expiresAtMs = await sql.begin(async (tx) => {
    const endMs = await insertSession(tx, account.id, stored, fingerprint(token));
    if (endMs === undefined) return undefined;
    await rememberAddress(tx, account.id, subjects.pair);
    await refundLogin(tx, charged);
    return endMs;
  });
  return expiresAtMs === undefined ? { kind: 'refused' } : { kind: 'logged_in', token, expiresAtMs };
}
