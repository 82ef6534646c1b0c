export interface ApiCall {
  readonly method: string;
  /** Below the origin, with its query. */
  readonly path: string;
  readonly body?: unknown;
  /** The same for the same wish: sent twice, it is done once. */
  readonly idempotencyKey?: string;
}

/** What is wrong with a field, as the API says it, or as the page found before it asked. */
export interface FieldError {
  /** Null: the call as a whole. */
  readonly field: string | null;
  readonly message: string;
}

interface Note {
  readonly message: string;
}

export type Reply<T> =
  | {
      readonly ok: true;
      readonly data: T;
      readonly meta: {
        readonly total?: number;
        readonly points?: number;
        readonly query?: { readonly from: string; readonly to: string };
        readonly window?: { readonly from: string; readonly to: string };
        readonly notes?: readonly Note[];
        readonly warnings?: readonly Note[];
      };
    }
  | Failure;

export interface Failure {
  readonly ok: false;
  readonly status: number;
  readonly message: string;
  /** The limit that refused the call, as the service says it; null: none did. */
  readonly limit: string | null;
  readonly details: readonly FieldError[];
}
