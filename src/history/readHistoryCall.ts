import type { KeyState, Worlds } from '../access/credentials.ts';
import { imeiError } from '../devices/deviceSchemas.ts';
import { type Answer, errorAnswer } from '../http/answer.ts';
import type { DescribedError } from '../http/openapi/operation.ts';
import { FROM, type Parameter, type Query, TO, WINDOW_MESSAGE, windowOf } from '../http/parameters.ts';
import type { Call } from '../http/route.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { DAY_MS, HOUR_MS } from '../lib/time.ts';
import type { TimeWindow } from './packedPoints.sql.ts';

/** Whose connections are used, and whose devices may be read. */
export interface HistoryReader {
  readonly accountId: number;
  readonly worldIds: Worlds;
}

/** The IMEI and the window of a call about the history of a device. */
export function readHistoryCall({
  params,
  query,
  caller,
  nowMs,
}: Call): Result<{ readonly imei: string; readonly window: HistoryWindow }, Answer> {
  const imei = params['imei'] ?? '';
  const error = imeiError(imei);
  if (error !== null) return fail(error);
  const window = historyWindowOf(query, caller, nowMs);
  if (window === 'invalid') return fail(errorAnswer('BAD_REQUEST', WINDOW_MESSAGE));
  return ok({ imei, window });
}

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

/** The latest instant that ISO 8601 can write with four digits: an open end. */
const END_OF_TIME_MS = 253_402_300_799_999;

/** A time window over the history, both ends included, cut to what the plan of the reader retains. */
interface HistoryWindow {
  readonly fromMs: number;
  readonly toMs: number;
  /** The same where the caller has named an end, else null. */
  readonly sent: { readonly fromMs: number | null; readonly toMs: number | null };
}

export function historyWindowOf(
  query: Query,
  { historyDays }: KeyState,
  nowMs: number,
): HistoryWindow | 'invalid' {
  const window = windowOf(query);
  if (window === 'invalid') return 'invalid';
  const retainedFromMs = nowMs - historyDays * DAY_MS;
  const fromMs = Math.max(window.fromMs ?? retainedFromMs, retainedFromMs);
  const sent = { fromMs: window.fromMs === null ? null : fromMs, toMs: window.toMs };
  return { fromMs, toMs: window.toMs ?? END_OF_TIME_MS, sent };
}
