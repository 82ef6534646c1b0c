import { formatDuration, formatIso } from '../lib/time.ts';
import type { PointReplay } from './pointReplay.ts';
import { GAP_MS, type Gap, type ReplayFindings, type StepLog, type Visit } from './replayFindings.ts';
import type { WatchPeriod } from './watchPeriods.ts';

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

export const NOTE_CODES = [
  'late_points_ignored',
  'area_changed',
  'dwell_changed',
  'gap',
  'history_trimmed',
  'stay_quota',
  'not_recorded',
] as const;

/** A remark that the verdict does not show. */
export interface Note {
  readonly code: (typeof NOTE_CODES)[number];
  /** A sentence for a person. */
  readonly message: string;
  /** The time that it is about. */
  readonly atMs?: number;
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

/** What a replay that has ended says about its window. `trimmed`: the plan shows less than was asked for. */
export function explanationOf(
  replay: PointReplay,
  periods: readonly WatchPeriod[],
  names: Names,
  trimmed: { readonly fromMs: number; readonly historyDays: number } | null,
): Explanation {
  return {
    ...verdictOf(replay, names),
    closest: replay.findings.closest,
    visits: replay.log.visits,
    gaps: replay.findings.gaps,
    notes: notesOf(replay.findings, periods, trimmed),
    steps: replay.steps,
  };
}

/** Changes that are said one by one; a busy area may have more. */
const CHANGES_MAX = 20;

/** What is to be said of the window besides its verdict, in the order of NOTE_CODES. */
function notesOf(
  findings: ReplayFindings,
  periods: readonly WatchPeriod[],
  trimmed: { readonly fromMs: number; readonly historyDays: number } | null,
): Note[] {
  return [
    ...lateNotes(findings),
    ...changeNotes(findings, periods),
    ...gapNotes(findings),
    ...(trimmed === null ? [] : [trimmedNote(trimmed)]),
    ...quotaNotes(findings),
    ...unrecordedNotes(findings),
  ];
}

function lateNotes({ late }: ReplayFindings): Note[] {
  if (late.count === 0) return [];
  const inside = late.inside === 0 ? 'none of them inside' : `${late.inside} of them inside`;
  return [
    {
      code: 'late_points_ignored',
      message: `${counted(late.count, 'point')} came after newer ones of the device and ${late.count === 1 ? 'was' : 'were'} stored, not evaluated; ${inside}`,
      atMs: late.firstMs,
    },
  ];
}

/** Those between the points of the window, and that there were some afterwards. */
function changeNotes({ periodsUsed }: ReplayFindings, periods: readonly WatchPeriod[]): Note[] {
  if (periodsUsed === null) return [];
  const { first, last } = periodsUsed;
  const notes: Note[] = [];
  for (let n = Math.min(first, last) + 1; n <= Math.max(first, last) && notes.length < CHANGES_MAX; n++) {
    notes.push(...changeNote(periods[n - 1] as WatchPeriod, periods[n] as WatchPeriod));
  }
  const later = periods[last]?.state === 'no_area' ? [] : laterNotes(periods, last);
  return [...notes, ...later].slice(0, CHANGES_MAX);
}

/** What was changed after the last point: once for the area, and once for its minimum stay. */
function laterNotes(periods: readonly WatchPeriod[], last: number): Note[] {
  const shown = 'each point is shown against what was in force when it came';
  const notes: Note[] = [];
  const say = (code: Note['code'], what: string, atMs: number) => {
    if (notes.some((note) => note.code === code)) return;
    const message = `${what} was changed after the last of these points, first at ${formatIso(atMs)}; ${shown}`;
    notes.push({ code, message, atMs });
  };
  for (let n = last + 1; n < periods.length; n++) {
    const before = periods[n - 1] as WatchPeriod;
    const after = periods[n] as WatchPeriod;
    if (before.state !== after.state || before.shape !== after.shape) {
      say('area_changed', 'the area, or what it watches,', after.sinceMs);
    }
    if (before.dwellSeconds !== after.dwellSeconds) say('dwell_changed', 'the minimum stay', after.sinceMs);
  }
  return notes;
}

function changeNote(before: WatchPeriod, after: WatchPeriod): Note[] {
  const atMs = after.sinceMs;
  const notes: Note[] = [];
  const say = (code: Note['code'], message: string) => void notes.push({ code, message, atMs });
  if (before.state !== after.state) {
    const what = {
      watched: 'the area watches this device since then',
      not_watched: 'the area did not watch this device from then on',
      no_area: 'the area did not exist',
    };
    say('area_changed', what[after.state]);
  }
  if (before.state === 'no_area') return notes;
  if (before.shape !== after.shape) {
    say('area_changed', 'the shape was changed; points that came before are shown against the one before');
  }
  if (before.dwellSeconds !== after.dwellSeconds) {
    say(
      'dwell_changed',
      `the minimum stay was changed from ${formatDuration(before.dwellSeconds * 1_000)} to ${formatDuration(after.dwellSeconds * 1_000)}`,
    );
  }
  return notes;
}

function gapNotes({ gaps }: ReplayFindings): Note[] {
  const [first, ...more] = gaps;
  if (first === undefined) return [];
  const longest = more.reduce((a, b) => (b.toMs - b.fromMs > a.toMs - a.fromMs ? b : a), first);
  const how = gaps.length === 1 ? 'once' : `${gaps.length} times`;
  return [
    {
      code: 'gap',
      message: `the device was silent for more than ${formatDuration(GAP_MS)} ${how}, at the longest for ${formatDuration(longest.toMs - longest.fromMs)} from ${formatIso(longest.fromMs)}; what it did meanwhile is not known`,
      atMs: longest.fromMs,
    },
  ];
}

function trimmedNote({
  fromMs,
  historyDays,
}: {
  readonly fromMs: number;
  readonly historyDays: number;
}): Note {
  return {
    code: 'history_trimmed',
    message: `the plan shows ${historyDays} days of history, so the window begins at ${formatIso(fromMs)}`,
    atMs: fromMs,
  };
}

function quotaNotes({ refused }: ReplayFindings): Note[] {
  if (refused.count === 0) return [];
  return [
    {
      code: 'stay_quota',
      message: `${counted(refused.count, 'point')} inside began no stay, so no entry was reported: the account that made the area, or the device, was in as many areas as it may be at a time`,
      atMs: refused.firstMs,
    },
  ];
}

function unrecordedNotes({ unmarked, unknownArea, unexplained }: ReplayFindings): Note[] {
  const notes: Note[] = [];
  if (unmarked.count > 0) {
    notes.push({
      code: 'not_recorded',
      message: `of ${counted(unmarked.count, 'point')} it was not stored when they came and whether they were late; they are shown as if each had come at its time`,
      atMs: unmarked.firstMs,
    });
  }
  if (unknownArea.count > 0) {
    notes.push({
      code: 'not_recorded',
      message: `what the area was like when ${counted(unknownArea.count, 'point')} came is not stored; they are shown against the earliest shape that is`,
      atMs: unknownArea.firstMs,
    });
  }
  if (unexplained.count > 0) {
    notes.push({
      code: 'not_recorded',
      message: `${counted(unexplained.count, 'time')} the recorded events are not what the stored points give, and why is not known; the events are as recorded`,
      atMs: unexplained.firstMs,
    });
  }
  return notes;
}

/** How the two are called in sentences, and when there is something to say about their time. */
export interface Names {
  readonly device: string;
  readonly area: string;
  readonly areaCreatedAtMs: number;
  /** Of the window. */
  readonly toMs: number;
}

/**
 * One answer for the whole window, and a sentence with its numbers. The last visit with an event counts most, then the
 * last one that may still become an entry, then those that were too short. Without a visit the points decide.
 */
function verdictOf(replay: PointReplay, names: Names): { verdict: Verdict; message: string } {
  const { visits } = replay.log;
  const reported = visits.findLast(({ outcome }) => outcome === 'entry' || outcome === 'entry_and_exit');
  if (reported !== undefined) return ofReported(reported, names);
  const last = visits.at(-1);
  if (last?.outcome === 'pending') return ofPending(last, names);
  if (last !== undefined) return ofTooShort(visits, names);
  return ofNoVisit(replay, names);
}

function ofReported(visit: Visit, { device, area }: Names): { verdict: Verdict; message: string } {
  const { entryAtMs, exitAtMs, firstInsideMs } = visit;
  const since = formatIso(firstInsideMs);
  if (exitAtMs !== null) {
    const stayed = formatDuration(exitAtMs - firstInsideMs);
    const message = `${device} left ${area} at ${formatIso(exitAtMs)}: it had been inside since ${since}, ${stayed}`;
    return { verdict: 'left', message };
  }
  if (entryAtMs === null) {
    const message = `${device} was inside ${area} from ${since} on; the entry was reported before this time`;
    return { verdict: 'entered', message };
  }
  const waited = formatDuration(entryAtMs - firstInsideMs);
  const message = `${device} entered ${area} at ${formatIso(entryAtMs)}, the first point after ${dwellOf(visit)} inside: it was there since ${since}, ${waited}`;
  return {
    verdict: 'entered',
    message: visit.dwellSeconds === 0 ? `${device} entered ${area} at ${formatIso(entryAtMs)}` : message,
  };
}

function ofPending(visit: Visit, { device, area }: Names): { verdict: Verdict; message: string } {
  const message = `${device} was inside ${area} for ${stayOf(visit)} of ${dwellOf(visit)} up to its last point; the entry comes with its first point inside after that`;
  return { verdict: 'inside_pending', message };
}

function ofTooShort(
  visits: readonly Visit[],
  { device, area }: Names,
): { verdict: Verdict; message: string } {
  const longest = visits.reduce((a, b) => (lengthOf(b) > lengthOf(a) ? b : a));
  const often = visits.length === 1 ? '' : ` in the longest of ${visits.length} visits`;
  const message = `${device} passed through ${area}: ${stayOf(longest)} of ${dwellOf(longest)} inside${often}, so no entry was due`;
  return { verdict: 'too_short', message };
}

function ofNoVisit(replay: PointReplay, names: Names): { verdict: Verdict; message: string } {
  const { device, area, areaCreatedAtMs, toMs } = names;
  const { evaluated, late, closest, crossing, insideUnwatched } = replay.findings;
  if (evaluated.watched === 0) {
    if (evaluated.not_watched > 0) {
      return {
        verdict: 'not_watched',
        message: `${area} did not watch ${device} when its ${counted(evaluated.not_watched, 'point')} came: the two belonged to different owners then`,
      };
    }
    if (evaluated.no_area > 0 || (toMs < areaCreatedAtMs && late.count === 0)) {
      return {
        verdict: 'area_did_not_exist',
        message: `${area} was made at ${formatIso(areaCreatedAtMs)}, after this time; points that came before are not evaluated against it`,
      };
    }
    return {
      verdict: 'no_points',
      message:
        late.count === 0
          ? `no point of ${device} is stored in this time`
          : `${counted(late.count, 'point')} of ${device} came late and ${late.count === 1 ? 'was' : 'were'} not evaluated, and there is no other`,
    };
  }
  const ignored =
    late.inside === 0
      ? ''
      : `; ${counted(late.inside, 'point')} inside came late and ${late.inside === 1 ? 'was' : 'were'} not evaluated`;
  if (crossing !== null && late.inside === 0) {
    const between = `${formatIso(crossing.fromMs)} and ${formatIso(crossing.toMs)}`;
    return {
      verdict: 'between_points',
      message: `${device} crossed ${area} between two points, at ${between} (${formatDuration(crossing.toMs - crossing.fromMs)} apart): none lies inside, so nothing was due`,
    };
  }
  if (insideUnwatched > 0) {
    return {
      verdict: 'never_inside',
      message: `${device} was never inside ${area} while it was watched: ${counted(insideUnwatched, 'point')} inside came when it was not${ignored}`,
    };
  }
  return {
    verdict: 'never_inside',
    message: `${device} was never inside ${area}: of ${counted(evaluated.watched, 'point')} the closest was ${metres(closest?.distanceM ?? 0)} outside, at ${formatIso(closest?.atMs ?? 0)}${ignored}`,
  };
}

function lengthOf({ firstInsideMs, lastInsideMs }: Visit): number {
  return lastInsideMs - firstInsideMs;
}

function stayOf(visit: Visit): string {
  return formatDuration(lengthOf(visit));
}

function dwellOf({ dwellSeconds }: Visit): string {
  return formatDuration(dwellSeconds * 1_000);
}

/** "1 point", "12 points". */
function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** As precise as GPS can mean it. */
function metres(distanceM: number): string {
  if (distanceM < 10) return `${distanceM.toFixed(1)} m`;
  return distanceM < 1_000 ? `${Math.round(distanceM)} m` : `${(distanceM / 1_000).toFixed(1)} km`;
}
