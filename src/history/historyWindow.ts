import type { KeyState } from '../access/keyState.ts';
import { type Query, windowOf } from '../http/query.ts';
import { DAY_MS } from '../lib/durations.ts';

/** The latest instant that ISO 8601 can write with four digits: an open end. */
const END_OF_TIME_MS = 253_402_300_799_999;

/** A time window over the history, both ends included, cut to what the plan of the reader retains. */
export interface HistoryWindow {
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
