import type { IncomingMessage } from 'node:http';
import { type Damage, DamagedPoints } from '../lib/errors.ts';
import { Overloaded } from '../lib/fairSemaphore.ts';
import { OutOfTime } from '../lib/time.ts';
import { TooMuchWork } from '../lib/workTurns.ts';
import { errorFields, type Unavailability, unavailability } from '../postgres/sqlErrors.ts';
import { type Answer, ERRORS, errorAnswer, NotBegun } from './answer.ts';

export interface ErrorLog {
  error(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Where errors are reported that an answer does not explain. */
export interface ErrorPorts {
  readonly log: ErrorLog;
  /** Stored points that cannot be read. */
  readonly onDamaged: (damage: Damage) => void;
}

/**
 * The documented error for an exception on the way to an answer. Only a bug of this service and damaged stored points are
 * a 500. `unreadable` is the code for a request that cannot be read.
 */
export function unexpectedErrorAnswer(
  error: unknown,
  request: IncomingMessage,
  { log, onDamaged }: ErrorPorts,
  unreadable: 'BAD_REQUEST' | 'INVALID_BODY' = 'BAD_REQUEST',
): Answer {
  if (error instanceof NotBegun) return error.answer;
  // Each account waits for itself only, so this is nothing for the log of the service.
  if (error instanceof Overloaded) return errorAnswer('SERVICE_UNAVAILABLE', OVERLOADED);
  if (error instanceof OutOfTime) return errorAnswer('SERVICE_UNAVAILABLE', OUT_OF_TIME);
  if (error instanceof TooMuchWork) return errorAnswer('TOO_COMPLEX');
  const reason = unavailability(error);
  if (reason !== null) {
    // A statement that asks for too much is the caller's affair.
    if (reason !== 'canceled')
      log.warn({ ...errorFields(error), method: request.method }, 'Postgres could not be asked');
    return errorAnswer('SERVICE_UNAVAILABLE', UNAVAILABLE[reason]);
  }
  if (error instanceof DamagedPoints) {
    onDamaged(error.damage);
    return errorAnswer('INTERNAL_ERROR', `${error.message}; leave them out with from and to`);
  }
  const status = error instanceof URIError ? 400 : statusOf(error);
  if (status === 413) return errorAnswer('PAYLOAD_TOO_LARGE');
  // What express and its body readers throw for bad escapes, encodings and aborted bodies.
  if (status !== null && status >= 400 && status < 500)
    return errorAnswer(unreadable, 'the request cannot be read');
  log.error({ err: error, method: request.method }, 'a request failed because of an error of this service');
  return errorAnswer('INTERNAL_ERROR');
}

const OVERLOADED = 'too many calls of this account wait already; try again when they are answered';

const OUT_OF_TIME =
  'this took longer than a call may, beside everything else; ask for less, or try again later';

/** What a caller is told: the reason, and nothing of the statement. */
const UNAVAILABLE: Readonly<Record<Unavailability, string>> = {
  unreachable: ERRORS.SERVICE_UNAVAILABLE[1],
  no_answer: 'the database did not answer in time; try again shortly',
  replica: 'the database is a replica that takes no writes yet; try again shortly',
  other_server: 'the database has moved to another server, which is being read; try again shortly',
  not_replicated: 'the database no longer waits for its replica, and may have stored this; try again shortly',
  read_only: 'the database is read-only at present; try again later',
  disk_full: 'the database has no disk space left; try again later',
  too_many_connections: 'the database takes no more connections at present; try again shortly',
  out_of_memory: 'the database has no memory left; try again later',
  canceled: 'the database took too long to answer this; ask for less, or try again later',
  time_limit: 'the database waited too long for other work; try again shortly',
  conflict: 'the database undid this because of another transaction; try again',
  starting_or_stopping: 'the database is starting or shutting down; try again shortly',
  disk_error: 'the database has trouble with its disk; try again later',
};

function statusOf(error: unknown): number | null {
  if (typeof error !== 'object' || error === null) return null;
  const { status } = error as { status?: unknown };
  return typeof status === 'number' ? status : null;
}
