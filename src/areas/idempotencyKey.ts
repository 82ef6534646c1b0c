import type { FieldError } from '../lib/fieldError.ts';

/** True for a well-formed Idempotency-Key: 1 to 200 of the ASCII letters and digits and . _ : - */
export function isIdempotencyKey(text: string): boolean {
  return IDEMPOTENCY_KEY.test(text);
}

export const IDEMPOTENCY_KEY = /^[A-Za-z0-9._:-]{1,200}$/;

/** What is answered to a key that was used with another body. */
export const KEY_MISMATCH: FieldError = {
  field: 'Idempotency-Key',
  code: 'MISMATCH',
  message: 'this Idempotency-Key was used with another body',
};

/** What is answered to a new key of an account that has as many of the last 24 hours as its plan allows. */
export const TOO_MANY_KEYS: FieldError = {
  field: 'Idempotency-Key',
  code: 'LIMIT_REACHED',
  message: 'the account has used as many Idempotency-Keys within 24 hours as its plan allows',
};
