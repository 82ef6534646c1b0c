/** One invalid field of a v1 body: an element of details[]. `field` and `code` are on the wire and fixed. */
export interface BodyFault {
  /** null: the body as a whole. */
  readonly field: string | null;
  readonly code: 'REQUIRED' | 'INVALID' | 'TOO_LONG' | 'LIMIT_REACHED' | 'INVALID_BODY';
  readonly message: string;
}

export const BODY_INVALID: BodyFault = {
  field: null,
  code: 'INVALID_BODY',
  message: 'the body must be a JSON object',
};

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** null acts as not sent. */
export function isMissing(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}
