import { formatIso } from '../../lib/isoTime.ts';

/** What the result of a backtest does not show by itself. */
export interface BacktestNote {
  readonly code: BacktestNoteCode;
  readonly message: string;
  /** The time that it is about. */
  readonly at?: string;
}

export const BACKTEST_NOTE_CODES = [
  'history_trimmed',
  'not_recorded',
  'area_did_not_exist',
  'area_changed',
] as const;

export type BacktestNoteCode = (typeof BACKTEST_NOTE_CODES)[number];

export const NOT_RECORDED: BacktestNote = {
  code: 'not_recorded',
  message:
    'it is not stored of all points whether they came late; those count here, while the engine may have left them out',
};

/** The plan keeps fewer days than were asked for. */
export function historyTrimmed(fromMs: number, historyDays: number): BacktestNote {
  const at = formatIso(fromMs);
  return {
    code: 'history_trimmed',
    message: `the plan shows ${historyDays} days of history, so the window begins at ${at}`,
    at,
  };
}

/** The window begins before the area was made. */
export function areaDidNotExist(createdAtMs: number): BacktestNote {
  const at = formatIso(createdAtMs);
  return {
    code: 'area_did_not_exist',
    message: `the area was made at ${at}; nothing that came before is recorded for it`,
    at,
  };
}

/** The area was written after it was made, so some events may be of another shape or minimum stay. */
export function areaChanged(edits: number): BacktestNote {
  return {
    code: 'area_changed',
    message: `the area was changed ${edits === 1 ? 'once' : `${edits} times`} since it was made; the replay uses its present form throughout`,
  };
}
