import type { RandomSource } from './apiKey.ts';

const PREFIX = 'fs_';
const RANDOM_BYTES = 32;

/** A new session token in clear text: `fs_` and 256 random bits in base64url. Its `fingerprint` is what is stored. */
export function newSessionToken(randomBytes: RandomSource): string {
  return `${PREFIX}${Buffer.from(randomBytes(RANDOM_BYTES)).toString('base64url')}`;
}

/**
 * The session token in the Authorization headers of a request. Null when there is none: no header, several headers
 * (readers would differ in which one counts), another scheme, an API key, or anything malformed. The form is "Bearer"
 * in any case, blanks, the token (RFC 6750 section 2.1, RFC 9110 section 11.1).
 */
export function bearerToken(authorization: readonly string[]): string | null {
  const [value] = authorization;
  if (value === undefined || authorization.length > 1 || value.length > MAX_CHARS) return null;
  return TOKEN.exec(value)?.[1] ?? null;
}

const MAX_CHARS = 256;
const TOKEN = /^[Bb][Ee][Aa][Rr][Ee][Rr] +(fs_[A-Za-z0-9_-]{43})$/;
