import { hash } from 'node:crypto';
import type { Query, Sql, Tx } from '../postgres/sql.ts';

/** How long an address is remembered after a login from there, and how many of one account. */
const ADDRESS_DAYS = 90;
const ADDRESSES_PER_ACCOUNT = 50;

export interface LoginAccount {
  readonly id: number;
  readonly passwordHash: string;
}

/** Undefined also when the account has no password. insertSession checks if it is active. */
export async function selectLoginAccount(sql: Sql, email: string): Promise<LoginAccount | undefined> {
  const [row] = await sql<{ id: number; password_hash: string }[]>`
    select id, password_hash from account where email = ${email} and password_hash is not null`;
  return row && { id: row.id, passwordHash: row.password_hash };
}

/** An attempt that was counted. */
export interface ChargedLogin {
  /** What it was counted against. */
  readonly subjects: readonly string[];
  /** The account has logged in from there before. */
  readonly isKnownAddress: boolean;
}

/**
 * Counts an attempt against its subjects. If one of them has used up its window, it counts against none and returns
 * null. Called before the password is checked, so parallel guesses count like sequential ones. The subjects have one
 * order everywhere, so two attempts cannot deadlock.
 */
export async function chargeLogin(tx: Tx, subjects: LoginSubjects): Promise<ChargedLogin | null> {
  const isKnownAddress =
    (await tx`select 1 from login_address where pair = decode(${subjects.pair}, 'hex')`).length > 0;
  const limits: readonly (readonly [subject: string, limit: number])[] = [
    [subjects.address, LOGIN_LIMITS.perAddress],
    [subjects.pair, LOGIN_LIMITS.perPair],
    ...(isKnownAddress ? [] : [[subjects.account, LOGIN_LIMITS.perAccount] as const]),
  ];
  const charged: string[] = [];
  for (const [subject, limit] of limits) {
    if (!(await charge(tx, subject, limit))) {
      await refundLogin(tx, charged);
      return null;
    }
    charged.push(subject);
  }
  return { subjects: charged, isKnownAddress };
}

/** Uncounts an attempt that was not a guess, for the subjects that it was counted against. */
export async function refundLogin(tx: Tx, charged: readonly string[]): Promise<void> {
  for (const subject of charged) {
    await tx`
      update login_window set attempts = attempts - 1 where subject = decode(${subject}, 'hex') and attempts > 0`;
  }
}

/** Stores the address that an account has logged in from. The caller has locked the account. */
export async function rememberAddress(tx: Tx, accountId: number, pair: string): Promise<void> {
  await tx`
    insert into login_address (pair, account_id) values (decode(${pair}, 'hex'), ${accountId})
    on conflict (pair) do update set seen_at = clock_timestamp()`;
  await tx`
    delete from login_address where pair in (
      select pair from login_address where account_id = ${accountId}
      order by seen_at desc offset ${ADDRESSES_PER_ACCOUNT})`;
}

/** Deletes windows that are over, and addresses without a login for a long time. */
export async function pruneLogins(sql: Sql): Promise<void> {
  await sql`delete from login_window where ${isOver(sql)}`;
  await sql`
    delete from login_address where seen_at < clock_timestamp() - make_interval(days => ${ADDRESS_DAYS})`;
}

async function charge(tx: Tx, subject: string, limit: number): Promise<boolean> {
  const counted = await tx`
    insert into login_window (subject, attempts, started_at)
    values (decode(${subject}, 'hex'), 1, clock_timestamp())
    on conflict (subject) do update set
      attempts = case when ${isOver(tx)} then 1 else login_window.attempts + 1 end,
      started_at = case when ${isOver(tx)} then clock_timestamp() else login_window.started_at end
    where ${isOver(tx)} or login_window.attempts < ${limit}
    returning 1`;
  return counted.length > 0;
}

const isOver = (sql: Query) => sql`
  (login_window.started_at < clock_timestamp() - make_interval(mins => ${LOGIN_LIMITS.windowMinutes}))`;

/** Who an attempt to log in is counted against: SHA-256, hex. */
interface LoginSubjects {
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
 * What an attempt from `network` (see addressNetwork) is counted by. An unknown `email` is
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
