import { hash } from 'node:crypto';

/** Who an attempt to log in is counted against: SHA-256, hex. */
export interface LoginSubjects {
  readonly address: string;
  /** This account from this address. */
  readonly pair: string;
  readonly account: string;
}

/**
 * Attempts per window; a successful one is given back. Three counters, because two goals pull apart (OWASP
 * Authentication Cheat Sheet, "Account Lockout"; its "device cookies" are the model): guessing must end soon, and nobody
 * may shut an owner out by guessing.
 * - address: one machine cannot try many accounts.
 * - pair: one machine cannot use up what an account allows to all others.
 * - account: many machines cannot guess at one account together. Addresses from which it has logged in before are left
 *   out of this one, so whoever fills it keeps its owner out of no usual place; elsewhere for a window at most at a time.
 */
export const LOGIN_LIMITS = { windowMinutes: 15, perAddress: 20, perPair: 10, perAccount: 20 } as const;

/**
 * The subjects of an attempt from `network` (see addressNetwork). `email` may be anybody's or nobody's: an unknown one
 * is counted like any other.
 */
export function loginSubjects(email: string, network: string): LoginSubjects {
  return {
    address: subject('address', network),
    pair: subject('pair', network, email),
    account: subject('account', email),
  };
}

/** JSON keeps the parts apart, whatever characters are in them. */
function subject(...parts: readonly string[]): string {
  return hash('sha256', JSON.stringify(parts), 'hex');
}
