import { randomBytes } from 'node:crypto';
import { fingerprint, newSessionToken } from '../access/credentials.ts';
import type { ScopeMask } from '../access/scopes.ts';
import { deleteSession, insertSession } from '../access/sessions.sql.ts';
import { FairSemaphore, Overloaded } from '../lib/fairSemaphore.ts';
import type { Sql } from '../postgres/sql.ts';
import { type Login, NOBODYS_PASSWORD, verifyPassword } from './credentials.ts';
import {
  chargeLogin,
  loginSubjects,
  refundLogin,
  rememberAddress,
  selectLoginAccount,
} from './logins.sql.ts';

export interface LogInPorts {
  /** The connections that a network counts its attempts by (see addressNetwork). */
  readonly logins: (network: string) => Sql;
  readonly turns: Pick<LoginTurns, 'run'>;
}

export type LogInOutcome =
  | {
      readonly kind: 'logged_in';
      readonly token: string;
      readonly endsAtMs: number;
      readonly scopes: ScopeMask;
    }
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
  const session = await sql.begin(async (tx) => {
    const opened = await insertSession(tx, account.id, stored, fingerprint(token));
    if (opened === undefined) return undefined;
    await rememberAddress(tx, account.id, subjects.pair);
    await refundLogin(tx, charged.subjects);
    return opened;
  });
  return session === undefined ? { kind: 'denied' } : { kind: 'logged_in', token, ...session };
}

/** Ends a session at once, on every pod. */
export function logOut(sql: Sql, sessionId: number): Promise<void> {
  return deleteSession(sql, sessionId);
}

function nullIfOverloaded(error: unknown): null {
  if (error instanceof Overloaded) return null;
  throw error;
}

/** The number of logins that are checked in ten seconds: each takes a thread for a fifth of a second, and 32 MB. */
const WAITING = 50;
const WAITING_PER_KEY = 20;
/** Who has waited for longer, on a slower or busier machine, is about to get the error that it takes too long. */
const WAIT_LIMIT_MS = 10_000;

/** Whose password is checked. */
export interface LoginTurn {
  readonly email: string;
  /** Where the attempt comes from (see addressNetwork). */
  readonly network: string;
  /** This account has logged in from there before. */
  readonly isKnown: boolean;
}

/**
 * Decides whose password is checked next, since somebody may send more than can be checked. There are two queues with
 * one check at a time, so that guesses use one core at most. One is for accounts at addresses from which they have
 * logged in before, fair by account. The other is for everybody else, fair by network. So somebody who guesses never
 * delays an owner at a usual address; elsewhere an owner waits for one check of each network that guesses.
 */
export class LoginTurns {
  readonly #nowMs: () => number;
  readonly #known = queue();
  readonly #new = queue();

  /** @param nowMs a clock that is never set */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /**
   * The result of `check`, once it is its turn. Rejects with Overloaded, without a check, when too many wait or the
   * turn comes too late.
   */
  run<T>({ email, network, isKnown }: LoginTurn, check: () => Promise<T>): Promise<T> {
    const askedAtMs = this.#nowMs();
    const checkInTime = async (): Promise<T> => {
      if (this.#nowMs() - askedAtMs > WAIT_LIMIT_MS) throw new Overloaded('the turn came too late');
      return check();
    };
    return isKnown ? this.#known.run(email, checkInTime) : this.#new.run(network, checkInTime);
  }
}

function queue(): FairSemaphore<string> {
  return new FairSemaphore({
    running: 1,
    runningPerKey: 1,
    waiting: WAITING,
    waitingPerKey: WAITING_PER_KEY,
  });
}
