import { DatabaseError } from 'pg';
import { DeadlineExceeded } from '../../base/deadline.ts';

/** Postgres could not be reached, or the connection was lost. The statement may have taken effect. */
export class PostgresUnreachable extends Error {
  override name = 'PostgresUnreachable';
  /** The code of a system error, such as ECONNREFUSED, if there is one. */
  readonly code: string;

  constructor(cause: unknown) {
    const { code } = cause as { code?: unknown };
    const reason = typeof code === 'string' ? code : 'CONNECTION_LOST';
    super(`Postgres cannot be reached (${reason})`, { cause });
    this.code = reason;
  }
}

/**
 * SQLSTATEs (appendix A of Postgres' manual): the server is read-only (a replica), or a statement, a lock or an idle
 * transaction took too long.
 */
const UNAVAILABLE_STATES = new Set(['25006', '57014', '55P03', '25P03', '25P04']);
/**
 * Classes of SQLSTATEs: connection lost; rolled back because of another transaction (a deadlock); connections, memory
 * or disk exhausted; server shutting down, crashed or starting; disk error.
 */
const UNAVAILABLE_CLASSES = ['08', '40', '53', '57P', '58'];

/** True when the same statement may succeed later; false when the statement itself is wrong. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof DeadlineExceeded || error instanceof PostgresUnreachable) return true;
  const state = sqlState(error);
  if (state === null) return false;
  return UNAVAILABLE_STATES.has(state) || UNAVAILABLE_CLASSES.some((start) => state.startsWith(start));
}

/** The SQLSTATE of an error that Postgres answered with; null for any other error. */
export function sqlState(error: unknown): string | null {
  return error instanceof DatabaseError ? (error.code ?? null) : null;
}

/** True when a statement violated this unique constraint (23505). */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  return error instanceof DatabaseError && error.code === '23505' && error.constraint === constraint;
}
