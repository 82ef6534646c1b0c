/** An expected outcome as a value: what was parsed, or why not. */
export type Result<T, E> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: E };

export const ok = <T>(value: T): Result<T, never> => ({ ok: true, value });
export const fail = <E>(error: E): Result<never, E> => ({ ok: false, error });

/** One invalid field of a body: an element of `details`. `field` and `code` are on the wire and fixed. */
export interface FieldError {
  /** null: the body as a whole. */
  readonly field: string | null;
  readonly code: FieldCode;
  readonly message: string;
}

/** Every code of `details`. The API document allows new ones; the meaning of these never changes. */
export type FieldCode =
  | 'REQUIRED'
  | 'TOO_LONG'
  | 'INVALID'
  | 'INVALID_COORDINATES'
  | 'MISMATCH'
  | 'TAKEN'
  | 'OUT_OF_RANGE'
  | 'TOO_FEW_POINTS'
  | 'TOO_MANY_POINTS'
  | 'SELF_INTERSECTION'
  | 'INVALID_GEOJSON'
  | 'INVALID_BODY'
  | 'LIMIT_REACHED';

export const BODY_INVALID = {
  field: null,
  code: 'INVALID_BODY',
  message: 'the body must be a JSON object',
} as const satisfies FieldError;
