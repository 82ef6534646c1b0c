/** True for a well-formed Idempotency-Key: 1 to 200 of the ASCII letters and digits and . _ : - */
export function isIdempotencyKey(text: string): boolean {
  return IDEMPOTENCY_KEY.test(text);
}

const IDEMPOTENCY_KEY = /^[A-Za-z0-9._:-]{1,200}$/;
