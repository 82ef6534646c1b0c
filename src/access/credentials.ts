import { hash } from 'node:crypto';
import type { CidrSet } from './ipAddress.ts';
import type { ScopeMask } from './scopes.ts';

/** Gives this many unpredictable bytes (node:crypto's randomBytes); passed in, so that tests can set them. */
export type RandomSource = (count: number) => Uint8Array;

const PREFIX = 'fk_';
const RANDOM_CHARS = 43;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const STORED_CHARS = 6;

/**
 * A new key in clear text: `fk_` and 43 characters of A–Z a–z 0–9, 256 bits in all. Bytes from 248 on are thrown
 * away: with them, `% 62` would make the first eight letters likelier than the others.
 */
export function newKey(randomBytes: RandomSource): string {
  const unbiasedBelow = 256 - (256 % ALPHABET.length);
  let key = PREFIX;
  while (key.length < PREFIX.length + RANDOM_CHARS) {
    for (const byte of randomBytes(PREFIX.length + RANDOM_CHARS - key.length)) {
      if (byte < unbiasedBelow) key += ALPHABET[byte % ALPHABET.length];
    }
  }
  return key;
}

/**
 * SHA-256 of the key's text, 64 lower-case hex digits: what is stored instead of the key, and what it is looked up
 * by. Unsalted and fast on purpose: a key is 256 random bits, there is nothing to guess.
 */
export function fingerprint(key: string): string {
  return hash('sha256', key, 'hex');
}

/** The first six characters, the only clear text that is kept. */
export function prefix(key: string): string {
  return key.slice(0, STORED_CHARS);
}

/** What a call shows as its key. What could not be one is denied without a query. */
export type ShownKey =
  | { readonly kind: 'none' | 'malformed' }
  | { readonly kind: 'key'; readonly fingerprint: string };

export function readKey(text: string | undefined): ShownKey {
  if (text === undefined || text === '') return { kind: 'none' };
  return KEY_SHAPE.test(text) ? { kind: 'key', fingerprint: fingerprint(text) } : { kind: 'malformed' };
}

const KEY_SHAPE = new RegExp(`^${PREFIX}[A-Za-z0-9]{${RANDOM_CHARS}}$`);

const SESSION_PREFIX = 'fs_';
const SESSION_RANDOM_BYTES = 32;

/** A new session token in clear text: `fs_` and 256 random bits in base64url. Its `fingerprint` is what is stored. */
export function newSessionToken(randomBytes: RandomSource): string {
  return `${SESSION_PREFIX}${Buffer.from(randomBytes(SESSION_RANDOM_BYTES)).toString('base64url')}`;
}

/**
 * The session token in the Authorization headers of a request. Null when there is none: no header, several headers
 * (readers would differ in which one counts), another scheme, an API key, or anything malformed. The form is "Bearer"
 * in any case, blanks, the token (RFC 6750 section 2.1, RFC 9110 section 11.1).
 */
export function bearerToken(authorization: readonly string[]): string | null {
  const [value] = authorization;
  if (value === undefined || authorization.length > 1 || value.length > BEARER_MAX_CHARS) return null;
  return TOKEN.exec(value)?.[1] ?? null;
}

const BEARER_MAX_CHARS = 256;
const TOKEN = /^[Bb][Ee][Aa][Rr][Ee][Rr] +(fs_[A-Za-z0-9_-]{43})$/;

/**
 * The worlds that a caller sees: its account's first, then its organization's, if any. Code that reads devices takes these
 * instead of plain ids, so that it cannot lose the limit of the caller.
 */
export interface Worlds extends ReadonlyArray<number> {
  /** Set where it sees only devices of some groups, as if there were no others. */
  readonly groups?: SeenGroups;
}

export interface SeenGroups {
  readonly names: ReadonlySet<string>;
  /** The same text for the same names. */
  readonly key: string;
}

/** These worlds, and of their devices only those of one of the groups; with no groups, all of them. */
export function limitedWorlds(worldIds: readonly number[], groups: readonly string[]): Worlds {
  if (groups.length === 0) return worldIds;
  const names = new Set(groups);
  return Object.assign([...worldIds], { groups: { names, key: JSON.stringify([...names].sort()) } });
}

/** Whether these worlds are limited to groups of which a device has none. */
export function isUnseen({ groups }: Worlds, ofDevice: readonly string[]): boolean {
  return groups !== undefined && !ofDevice.some((name) => groups.names.has(name));
}

/** The same text for callers who see the same. */
export function worldsKey(worlds: Worlds): string {
  return worlds.join() + (worlds.groups?.key ?? '');
}

/** All that memory has of an API key: enough to decide on a call without a query. */
export interface KeyState {
  /** For a session, its negated id, so that it never equals the id of a key. */
  readonly id: number;
  readonly accountId: number;
  readonly worldIds: Worlds;
  readonly scopes: ScopeMask;
  /** The addresses that it may be used from; null: all. */
  readonly allowlist: CidrSet | null;
  readonly revoked: boolean;
  /** When it expires, in epoch milliseconds. Every session does; not set for a key that does not. */
  readonly endsAtMs?: number;
  readonly ownerActive: boolean;
  /** How far back the owner's plan lets history be read. */
  readonly historyDays: number;
}
