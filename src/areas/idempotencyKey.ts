import type { FieldError } from './fieldError.ts';

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
