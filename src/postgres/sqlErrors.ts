import { DatabaseError } from 'pg';
import { DeadlineExceeded } from '../lib/time.ts';

/**
 * What pg says, without a code, when a statement has no answer in time, when no connection has become free, and when a new one
 * has no answer: a client alone, and of a pool.
 */
const SILENCES: ReadonlySet<unknown> = new Set([
  'Query read timeout',
  'timeout exceeded when trying to connect',
  'timeout expired',
  'Connection terminated due to connection timeout',
]);

/** Postgres could not be reached, or the connection was lost. The statement may have taken effect. */
export class PostgresUnreachable extends Error {
  override name = 'PostgresUnreachable';
  /** The code of a system error, such as ECONNREFUSED, if there is one. */
  readonly code: string;

  constructor(cause: unknown) {
    const { code, message } = cause as { code?: unknown; message?: unknown };
    const reason = typeof code === 'string' ? code : SILENCES.has(message) ? 'NO_ANSWER' : 'CONNECTION_LOST';
    super(`Postgres cannot be reached (${reason})`, { cause });
    this.code = reason;
  }
}

/** What Postgres answered with, else that it could not be asked: any other error means that the connection was lost. */
export function ofPostgres(error: unknown): DatabaseError | PostgresUnreachable {
  const isKnown = error instanceof DatabaseError || error instanceof PostgresUnreachable;
  return isKnown ? error : new PostgresUnreachable(error);
}

/** Why Postgres does not do now what it may do later. */
export type Unavailability =
  | 'unreachable'
  | 'no_answer'
  | 'replica'
  | 'other_server'
  | 'not_replicated'
  | 'read_only'
  | 'disk_full'
  | 'too_many_connections'
  | 'out_of_memory'
  | 'canceled'
  | 'time_limit'
  | 'conflict'
  | 'starting_or_stopping'
  | 'disk_error';

/**
 * SQLSTATEs and their classes (appendix A of Postgres' manual), the longer ones first. 25006: a replica, or set to
 * read-only. 57014: the limit of a statement. 55P03: the limit of a lock. 25P03, 25P04: limits of a transaction. 40: rolled
 * back because of another transaction. 53400: a limit of the configuration, such as that of temporary files. 58: an
 * error of the operating system.
 */
const BY_STATE: readonly (readonly [start: string, reason: Unavailability])[] = [
  ['25006', 'read_only'],
  ['57014', 'canceled'],
  ['55P03', 'time_limit'],
  ['25P03', 'time_limit'],
  ['25P04', 'time_limit'],
  ['53100', 'disk_full'],
  ['53200', 'out_of_memory'],
  ['53300', 'too_many_connections'],
  ['53', 'disk_full'],
  ['08', 'unreachable'],
  ['40', 'conflict'],
  ['57P', 'starting_or_stopping'],
  ['58', 'disk_error'],
];
/** Codes that this service gives to PostgresUnreachable itself. */
const BY_CODE: Readonly<Record<string, Unavailability>> = {
  REPLICA: 'replica',
  READ_ONLY: 'read_only',
  OTHER_SERVER: 'other_server',
  NOT_REPLICATED: 'not_replicated',
  NO_ANSWER: 'no_answer',
};

/** Why the same statement may succeed later; null when the statement itself is wrong. */
export function unavailability(error: unknown): Unavailability | null {
  if (error instanceof DeadlineExceeded) return 'no_answer';
  if (error instanceof PostgresUnreachable) return BY_CODE[error.code] ?? 'unreachable';
  const state = sqlState(error);
  if (state === null) return null;
  return BY_STATE.find(([start]) => state.startsWith(start))?.[1] ?? null;
}

/** True when the same statement may succeed later; false when the statement itself is wrong. */
export function isUnavailable(error: unknown): boolean {
  return unavailability(error) !== null;
}

/** The log fields of an error: only the reason when Postgres was unavailable, otherwise the error in full. */
export function errorFields(error: unknown): { reason: Unavailability; code?: unknown } | { err: unknown } {
  const reason = unavailability(error);
  return reason === null ? { err: error } : { reason, code: (error as { code?: unknown }).code };
}

/** The SQLSTATE of an error that Postgres answered with; null for any other error. */
export function sqlState(error: unknown): string | null {
  return error instanceof DatabaseError ? (error.code ?? null) : null;
}

/** True when a statement violated this unique constraint (23505). */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  return error instanceof DatabaseError && error.code === '23505' && error.constraint === constraint;
}
