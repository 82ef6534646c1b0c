import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';

/** Cost of a hash: N = 2^15, r = 8, p = 3 (OWASP Password Storage Cheat Sheet), 32 MB for about 0.2 s. */
const COST = { N: 2 ** 15, r: 8, p: 3 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;
const MAX_MEMORY_BYTES = 64 * 1024 * 1024;

/**
 * A stored password that no password matches. A login with an unknown e-mail address is checked against it, so that it
 * takes as long as one with a known address.
 */
export const NOBODYS_PASSWORD = [
  'scrypt',
  COST.N,
  COST.r,
  COST.p,
  Buffer.alloc(SALT_BYTES).toString('base64url'),
  Buffer.alloc(HASH_BYTES).toString('base64url'),
].join('$');

/** A stored password: `scrypt$N$r$p$salt$hash`, salt and hash in base64url. Runs outside the event loop. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, salt, COST);
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
  return new Promise((resolve, reject) => {
    scrypt(
      password.normalize('NFKC'),
      salt,
      HASH_BYTES,
      { ...cost, maxmem: MAX_MEMORY_BYTES },
      (error, key) => {
        if (error) reject(error);
        else resolve(key);
      },
    );
  });
}
