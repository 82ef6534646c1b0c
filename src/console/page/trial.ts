import type { AreaDraft } from './areaDraft.ts';
import type { ApiCall } from './curl.ts';
import type { Backtest } from './types.ts';

const WEEK_MS = 7 * 86_400_000;

/** Replays the points of the last seven days against a draft. */
export function trialCall({ body }: Pick<AreaDraft, 'body'>, nowMs: number): ApiCall {
  return backtest({ area: { ...body, name: body.name || 'draft' } }, nowMs);
}

/** The same against the area as it is saved. */
export function savedTrialCall(id: number, nowMs: number): ApiCall {
  return backtest({ area_id: id }, nowMs);
}

function backtest(subject: object, nowMs: number): ApiCall {
  const window = { from: new Date(nowMs - WEEK_MS).toISOString(), to: new Date(nowMs).toISOString() };
  return { method: 'POST', path: '/api/v1/areas/backtest', body: { ...subject, ...window } };
}

/** Events of the draft that the saved area has, too, and those that only one of them has; null: not all are listed. */
export function compareTrials(
  draft: Backtest,
  saved: Backtest,
): { readonly same: number; readonly new: number; readonly gone: number } | null {
  if (!isComplete(draft) || !isComplete(saved)) return null;
  const known = new Set(saved.events.map(eventKey));
  const same = draft.events.filter((event) => known.has(eventKey(event))).length;
  return { same, new: draft.events.length - same, gone: saved.events.length - same };
}

function isComplete({ entries, exits, events }: Backtest): boolean {
  return events.length === entries + exits;
}

function eventKey({ device, event, timestamp }: Backtest['events'][number]): string {
  return `${device} ${event} ${timestamp}`;
}
