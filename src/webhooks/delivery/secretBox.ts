import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto';

/** What a signing secret begins with (Standard Webhooks); the rest is base64. */
export const SECRET_PREFIX = 'whsec_';

const SECRET_BYTES = 32;
const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** A new signing secret: `whsec_` and the standard, padded base64 of 32 random bytes. */
export function newSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/**
 * `secret` encrypted with `key` (32 bytes, SECRETS_KEY): iv (12) | tag (16) | ciphertext, AES-256-GCM. `key` is a key
 * object, because Node takes five times as long with a Buffer.
 */
export function seal(key: KeyObject, secret: string): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), ciphertext]);
}

/** The secret that was sealed, or null when it was sealed with another key or changed since. */
export function open(key: KeyObject, sealed: Uint8Array): string | null {
  if (sealed.length < IV_BYTES + TAG_BYTES) return null;
  const iv = sealed.subarray(0, IV_BYTES);
  const decipher = createDecipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  const text = decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    return null; // final throws only when the tag does not match
  }
}
