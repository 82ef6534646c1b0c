import { randomBytes } from 'node:crypto';
import { fingerprint } from '../access/apiKey.ts';
import { deleteSession, insertSession } from '../access/sessions.sql.ts';
import { newSessionToken } from '../access/sessionToken.ts';
import { Overloaded } from '../lib/fairSemaphore.ts';
import type { Sql } from '../postgres/sql.ts';
import type { Login } from './loginBody.ts';
import {
  chargeLogin,
  loginSubjects,
  refundLogin,
  rememberAddress,
  selectLoginAccount,
} from './logins.sql.ts';
import type { LoginTurns } from './loginTurns.ts';
import { NOBODYS_PASSWORD, verifyPassword } from './password.ts';

export interface LogInPorts {
  /** The connections that a network counts its attempts by (see addressNetwork). */
  readonly logins: (network: string) => Sql;
  readonly turns: Pick<LoginTurns, 'run'>;
}

export type LogInOutcome =
  | { readonly kind: 'logged_in'; readonly token: string; readonly expiresAtMs: number }
  /** Unknown, without a password, inactive, or another password: neither the answer nor its time shows which. */
  | { readonly kind: 'denied' }
  | { readonly kind: 'limited' };

/** Opens a session for a caller who knows the password of an active account. `network`: see addressNetwork. */
export async function logIn(
  { logins, turns }: LogInPorts,
  { email, password }: Login,
  network: string,
): Promise<LogInOutcome> {
  const sql = logins(network);
  const subjects = loginSubjects(email, network);
  const charged = await sql.begin((tx) => chargeLogin(tx, subjects)).catch(nullIfOverloaded);
  if (charged === null) return { kind: 'limited' };
  const account = await selectLoginAccount(sql, email);
  const stored = account?.passwordHash ?? NOBODYS_PASSWORD;
  const turn = { email, network, isKnown: charged.isKnownAddress };
  const fits = await turns.run(turn, () => verifyPassword(password, stored)).catch(nullIfOverloaded);
  if (fits === null) {
    await sql.begin((tx) => refundLogin(tx, charged.subjects));
    return { kind: 'limited' };
  }
  if (!fits || account === undefined) return { kind: 'denied' };
  const token = newSessionToken(randomBytes);
  const expiresAtMs = await sql.begin(async (tx) => {
    const endMs = await insertSession(tx, account.id, stored, fingerprint(token));
    if (endMs === undefined) return undefined;
    await rememberAddress(tx, account.id, subjects.pair);
    await refundLogin(tx, charged.subjects);
    return endMs;
  });
  return expiresAtMs === undefined ? { kind: 'denied' } : { kind: 'logged_in', token, expiresAtMs };
}

/** Ends a session at once, on every pod. */
export function logOut(sql: Sql, sessionId: number): Promise<void> {
  return deleteSession(sql, sessionId);
}

function nullIfOverloaded(error: unknown): null {
  if (error instanceof Overloaded) return null;
  throw error;
}
