import type { KeyState } from '../../access/credentials.ts';
import { type Answer, errorAnswer } from '../../http/answer.ts';
import type { DescribedError } from '../../http/openapi/operation.ts';
import { FROM, type Parameter, type Query, TO, WINDOW_MESSAGE } from '../../http/parameters.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { DAY_MS, HOUR_MS } from '../../lib/time.ts';
import type { TimeWindow } from '../packedPoints.sql.ts';
import { historyWindowOf } from '../readHistoryCall.ts';

const SPAN_MAX_DAYS = 31;
/** A month of 31 days in which the clock is put back is an hour longer. */
const SPAN_MAX_MS = SPAN_MAX_DAYS * DAY_MS + HOUR_MS;
const SPAN_MESSAGE = `from and to are more than ${SPAN_MAX_DAYS} days apart; narrow them`;

/** The time of a call about the histories of many devices. */
export const FLEET_WINDOW_PARAMETERS: readonly Parameter[] = [
  { ...FROM, description: `${FROM.description} Without it 24 hours before \`to\`.` },
  { ...TO, description: `${TO.description} Without it now. At most ${SPAN_MAX_DAYS} days after \`from\`.` },
];

export const FLEET_WINDOW_ERRORS: readonly DescribedError[] = [
  ['BAD_REQUEST', WINDOW_MESSAGE],
  ['BAD_REQUEST', SPAN_MESSAGE],
];

/** Cut to what the plan of the reader retains. */
export function readFleetWindow(query: Query, caller: KeyState, nowMs: number): Result<TimeWindow, Answer> {
  const window = historyWindowOf(query, caller, nowMs);
  if (window === 'invalid') return fail(errorAnswer('BAD_REQUEST', WINDOW_MESSAGE));
  const toMs = window.sent.toMs ?? nowMs;
  const fromMs = window.sent.fromMs ?? Math.max(window.fromMs, toMs - DAY_MS);
  if (toMs - fromMs > SPAN_MAX_MS) return fail(errorAnswer('BAD_REQUEST', SPAN_MESSAGE));
  return ok({ fromMs, toMs });
}
