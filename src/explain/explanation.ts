import type { StepLog } from './stepLog.ts';

export const VERDICTS = [
  'entered',
  'left',
  'inside_pending',
  'too_short',
  'never_inside',
  'between_points',
  'no_points',
  'not_watched',
  'area_did_not_exist',
] as const;

export type Verdict = (typeof VERDICTS)[number];

export const OUTCOMES = ['entry', 'entry_and_exit', 'too_short', 'pending'] as const;

export type Outcome = (typeof OUTCOMES)[number];

export const NOTE_CODES = [
  'late_points_ignored',
  'area_changed',
  'dwell_changed',
  'gap',
  'history_trimmed',
  'stay_quota',
  'not_recorded',
] as const;

/** What the verdict does not show by itself. */
export interface Note {
  readonly code: (typeof NOTE_CODES)[number];
  /** A sentence for a person. */
  readonly message: string;
  /** The time that it is about. */
  readonly atMs?: number;
}

/** One time inside. */
export interface Visit {
  /** May be before the window. */
  readonly firstInsideMs: number;
  readonly lastInsideMs: number;
  /** Points inside, in the window. */
  readonly points: number;
  /** Metres from the boundary of the point furthest in; null when none was in the window. */
  readonly deepestM: number | null;
  readonly outcome: Outcome;
  /** The threshold at the last point. */
  readonly dwellSeconds: number;
  /** Where they are in the window. */
  readonly entryAtMs: number | null;
  readonly exitAtMs: number | null;
  /** Recorded events of the window that the caller may read. */
  readonly eventIds: readonly number[];
}

export interface Gap {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Why an area reported what it did of a device in a window, and not more. */
export interface Explanation {
  readonly verdict: Verdict;
  /** A sentence for a person. */
  readonly message: string;
  /**
   * The point of the window nearest to the boundary, or deepest inside, of those that were evaluated while the area watched
   * the device: metres, negative inside.
   */
  readonly closest: { readonly distanceM: number; readonly atMs: number } | null;
  /** By time. */
  readonly visits: readonly Visit[];
  readonly gaps: readonly Gap[];
  readonly notes: readonly Note[];
  /** Null unless they were asked for. */
  readonly steps: StepLog | null;
}

/** A recorded event of the area and the device. */
export interface RecordedEvent {
  readonly id: number;
  readonly direction: 'entry' | 'exit';
  readonly occurredAtMs: number;
  /** The first inside point of its stay. */
  readonly enteredAtMs: number;
  /** False: the caller may not read it. It happened nevertheless. */
  readonly isReadable: boolean;
}
