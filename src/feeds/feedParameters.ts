import { limitParameter, type Parameter } from '../http/parameters/parameter.ts';
import { clampedInt, isBlank, type Query } from '../http/parameters/query.ts';
import { UNREAD_MAX_BYTES } from './unreadAnswers.ts';
import { WAITS_PER_ACCOUNT, WAITS_PER_KEY } from './waitRoom.ts';

export const CHANGES_LIMIT = limitParameter(1000, 500);
export const EVENT_FEED_LIMIT = limitParameter(1000, 100);

const WAIT_MAX_SECONDS = 25;

export const CURSOR: Parameter = {
  name: 'cursor',
  in: 'query',
  required: false,
  description:
    'From `meta.cursor` of the page before, of any pod. It is good for at least 24 hours; it belongs to the account.',
  schema: { type: 'string', maxLength: 500 },
};

/** What is answered to a cursor that this service did not make for this account. */
export const CURSOR_MESSAGE = 'cursor is not one that this service gave to this account for this route';

export const TOO_MANY_WAITS = `${WAITS_PER_ACCOUNT} calls of this account are waiting already; wait for the answer to one of them`;
export const TOO_MUCH_UNREAD = `${UNREAD_MAX_BYTES / (1024 * 1024)} MB of answers to this account have not been read yet; read them first`;

export const PRODUCED_FROM: Parameter = {
  name: 'from',
  in: 'query',
  required: false,
  description:
    'Without a cursor: begins with the events produced since this time, in ISO 8601. Encode the + of an offset as %2B.',
  schema: { type: 'string', format: 'date-time' },
};

export const FROM_MESSAGE = 'from must be an ISO 8601 time';

export const WAIT: Parameter = {
  name: 'wait',
  in: 'query',
  required: false,
  description: `With nothing new, the answer waits so many whole seconds for something. What is outside of 0 to ${WAIT_MAX_SECONDS} is moved to the nearer end, and what is no number counts as 0. Of one key, ${WAITS_PER_KEY} calls wait at a time on a pod; further ones are answered at once. Of one account, ${WAITS_PER_ACCOUNT} do; further ones are refused.`,
  schema: { type: 'integer', minimum: 0, maximum: WAIT_MAX_SECONDS, default: 0 },
};

/** null when it is missing or blank. */
export function readCursor(query: Query): string | null {
  const sent = query['cursor'];
  return sent === undefined || isBlank(sent) ? null : sent;
}

export function readWaitMs(query: Query): number {
  return clampedInt(query['wait'], 0, WAIT_MAX_SECONDS, 0) * 1000;
}
