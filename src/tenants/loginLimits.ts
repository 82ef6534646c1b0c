import { hash } from 'node:crypto';

/** Who an attempt to log in is counted against: SHA-256, hex. */
export interface LoginSubjects {
  readonly address: string;
  /** This account from this address. */
  readonly pair: string;
  readonly account: string;
}

/**
 * Attempts per window; a successful one is given back. There are three counters, because guessing must be stopped and
 * an owner must not be locked out by somebody who guesses (OWASP Authentication Cheat Sheet, "Account Lockout"; its
 * "device cookies" are the model):
 *
 * - address: one machine cannot try many accounts.
 * - pair: one machine cannot use up the attempts that an account allows to all others.
 * - account: many machines cannot guess at one account together.
 *
 * Addresses from which the account has logged in before are not limited by the last counter. So its owner can still log
 * in from the usual places, and from others in the next window.
 */
export const LOGIN_LIMITS = { windowMinutes: 15, perAddress: 20, perPair: 10, perAccount: 20 } as const;

/**
 * What an attempt from `network` (see addressNetwork) is counted by. `email` may belong to nobody: an unknown one is
 * counted like any other.
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
