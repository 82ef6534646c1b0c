import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { isJsonObject, isMissing, isPlainText } from '../lib/parseText.ts';
import { BODY_INVALID, type FieldError, fail, ok, type Result } from '../lib/result.ts';

export interface Login {
  /** Spelled as in accounts. */
  readonly email: string;
  readonly password: string;
}

const EMAIL_MAX_CHARS = 254;
export const PASSWORD_MAX_CHARS = 1_000;

/**
 * The body of a login. What no account could have is an error here; that says nothing about the accounts that exist.
 * Never throws, whatever the body.
 */
export function parseLogin(body: unknown): Result<Login, readonly FieldError[]> {
  if (!isJsonObject(body)) return fail([BODY_INVALID]);
  const { email: sentEmail, password } = body;
  const email = typeof sentEmail === 'string' ? readEmail(sentEmail) : null;
  const errors: FieldError[] = [];
  const add = (field: string, code: FieldError['code'], problem: string) =>
    errors.push({ field, code, message: `${field} ${problem}` });
  if (email === null && isBlank(sentEmail)) add('email', 'REQUIRED', 'is required');
  else if (email === null) add('email', 'INVALID', 'must be an e-mail address');
  if (isBlank(password)) add('password', 'REQUIRED', 'is required');
  else if (typeof password !== 'string') add('password', 'INVALID', 'must be text');
  else if (password.length > PASSWORD_MAX_CHARS) {
    add('password', 'TOO_LONG', `has more than ${PASSWORD_MAX_CHARS} characters`);
  } else if (email !== null) return ok({ email, password });
  return fail(errors);
}

const isBlank = (sent: unknown): boolean => isMissing(sent) || sent === '';

/** Trimmed and in lower case, as accounts are stored; null when the text is not an e-mail address. */
export function readEmail(text: string): string | null {
  // Bounded before all else: a body may hold a megabyte of it.
  if (text.length > 2 * EMAIL_MAX_CHARS) return null;
  const email = text.trim().toLowerCase();
  const isEmail = /^[^\s@]+@[^\s@]+$/.test(email) && isPlainText(email) && email.length <= EMAIL_MAX_CHARS;
  return isEmail ? email : null;
}

/** Cost of a hash: N = 2^15, r = 8, p = 3 (OWASP Password Storage Cheat Sheet), 32 MB for about 0.2 s. */
const COST = { N: 2 ** 15, r: 8, p: 3 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;
const MAX_MEMORY_BYTES = 64 * 1024 * 1024;

/**
 * A stored password that no password matches. A login with an unknown e-mail address is checked against it, so that it
 * takes as long as one with a known address.
 */
export const NOBODYS_PASSWORD = stored(Buffer.alloc(SALT_BYTES), Buffer.alloc(HASH_BYTES));

/** A stored password: `scrypt$N$r$p$salt$hash`, salt and hash in base64url. Runs outside the event loop. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  return stored(salt, await derive(password, salt, COST));
}

function stored(salt: Buffer, hash: Buffer): string {
  return ['scrypt', COST.N, COST.r, COST.p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/** True when `password` is the one that `stored` was made from, whatever the cost was then. */
export async function verifyPassword(password: string, stored: string): Promise<boolean> {
  const [scheme, N, r, p, salt, hash] = stored.split('$');
  if (scheme !== 'scrypt' || salt === undefined || hash === undefined) return false;
  const expected = Buffer.from(hash, 'base64url');
  if (expected.length !== HASH_BYTES) return false;
  const cost = { N: Number(N), r: Number(r), p: Number(p) };
  return timingSafeEqual(await derive(password, Buffer.from(salt, 'base64url'), cost), expected);
}

/** Passwords are compared as Unicode says they are the same (NFKC), whatever keyboard typed them. */
function derive(password: string, salt: Buffer, cost: typeof COST): Promise<Buffer> {
  return scryptLater(password.normalize('NFKC'), salt, HASH_BYTES, { ...cost, maxmem: MAX_MEMORY_BYTES });
}

const scryptLater = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);
