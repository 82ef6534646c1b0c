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

type Verdict = (typeof VERDICTS)[number];

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
  readonly atMs: number;
}

/** Why an area reported what it did of a device in a window, and not more. */
export interface Explanation {
  readonly verdict: Verdict;
  /** A sentence for a person. */
  readonly message: string;
  /** The point nearest to the boundary, or deepest inside, while the area watched the device. Negative inside. */
  readonly closest: { readonly distanceM: number; readonly atMs: number } | null;
  readonly visits: readonly Visit[];
  readonly gaps: readonly Gap[];
  readonly notes: readonly Note[];
  /** Null unless they were asked for. */
  readonly steps: StepLog | null;
}

/** How the two are called in sentences, and when there is something to say about their time. */
export interface Names {
  readonly device: string;
  readonly area: string;
  readonly areaCreatedAtMs: number;
  /** Of the window. */
  readonly toMs: number;
}

/** The plan shows less than was asked for. */
interface Trimmed {
  readonly fromMs: number;
  readonly historyDays: number;
}

/** What a replay that has ended says about its window. */
export function explanationOf(
  replay: PointReplay,
  periods: readonly WatchPeriod[],
  names: Names,
  trimmed: Trimmed | null,
): Explanation {
  const { log, findings, steps } = replay;
  const [verdict, message] = verdictOf(log.visits, findings, names);
  const notes = notesOf(findings, periods, trimmed);
  return {
    verdict,
    message,
    closest: findings.closest,
    visits: log.visits,
    gaps: findings.gaps,
    notes,
    steps,
  };
}

/** Changes that are said one by one; a busy area may have more. */
const CHANGES_MAX = 20;

/** What is to be said of the window besides its verdict, in the order of NOTE_CODES. */
function notesOf(findings: ReplayFindings, periods: readonly WatchPeriod[], trimmed: Trimmed | null): Note[] {
  const { late, gaps, refused, unmarked, unknownArea, unexplained } = findings;
  const notes: Note[] = [];
  const say = (code: Note['code'], message: string, atMs: number) => void notes.push({ code, message, atMs });
  if (late.count > 0) {
    const came = `${counted(late.count, 'point')} came after newer ones of the device and ${was(late.count)} stored`;
    say(
      'late_points_ignored',
      `${came}, not evaluated; ${late.inside || 'none'} of them inside`,
      late.firstMs,
    );
  }
  notes.push(...[...changeNotes(findings, periods)].slice(0, CHANGES_MAX));
  if (gaps.length > 0) {
    const { fromMs, toMs } = gaps.reduce((a, b) => (b.toMs - b.fromMs > a.toMs - a.fromMs ? b : a));
    const often = gaps.length === 1 ? 'once' : `${gaps.length} times`;
    const longest = `at the longest for ${formatDuration(toMs - fromMs)} from ${formatIso(fromMs)}`;
    const silent = `the device was silent for more than ${formatDuration(GAP_MS)} ${often}, ${longest}`;
    say('gap', `${silent}; what it did meanwhile is not known`, fromMs);
  }
  if (trimmed !== null) {
    const { historyDays, fromMs } = trimmed;
    const begins = `so the window begins at ${formatIso(fromMs)}`;
    say('history_trimmed', `the plan shows ${historyDays} days of history, ${begins}`, fromMs);
  }
  if (refused.count > 0) {
    const none = `${counted(refused.count, 'point')} inside began no stay, so no entry was reported`;
    const why = 'the account that made the area, or the device, was in as many areas as it may be at a time';
    say('stay_quota', `${none}: ${why}`, refused.firstMs);
  }
  if (unmarked.count > 0) {
    const what = `of ${counted(unmarked.count, 'point')} it was not stored when they came and whether they were late`;
    say('not_recorded', `${what}; they are shown as if each had come at its time`, unmarked.firstMs);
  }
  if (unknownArea.count > 0) {
    const what = `what the area was like when ${counted(unknownArea.count, 'point')} came is not stored`;
    say('not_recorded', `${what}; they are shown against the earliest shape that is`, unknownArea.firstMs);
  }
  if (unexplained.count > 0) {
    const what = `${counted(unexplained.count, 'time')} the recorded events are not what the stored points give`;
    say('not_recorded', `${what}, and why is not known; the events are as recorded`, unexplained.firstMs);
  }
  return notes;
}

const NEW_STATE = {
  watched: 'the area watches this device since then',
  not_watched: 'the area did not watch this device from then on',
  no_area: 'the area did not exist',
};

/** Changes between the points of the window, and the first of each kind after them. */
function* changeNotes(
  { periodsUsed }: ReplayFindings,
  periods: readonly WatchPeriod[],
): Generator<Note, void, undefined> {
  if (periodsUsed === null) return;
  const { first, last } = periodsUsed;
  for (let n = Math.min(first, last) + 1; n <= Math.max(first, last); n++) {
    const [before, after] = periods.slice(n - 1, n + 1) as [WatchPeriod, WatchPeriod];
    const atMs = after.sinceMs;
    if (before.state !== after.state) yield { code: 'area_changed', message: NEW_STATE[after.state], atMs };
    if (before.state === 'no_area') continue;
    if (before.shape !== after.shape) {
      const message = 'the shape was changed; points that came before are shown against the one before';
      yield { code: 'area_changed', message, atMs };
    }
    if (before.dwellSeconds !== after.dwellSeconds) {
      const message = `the minimum stay was changed from ${dwellOf(before)} to ${dwellOf(after)}`;
      yield { code: 'dwell_changed', message, atMs };
    }
  }
  if (periods[last]?.state === 'no_area') return;
  const said = new Set<Note['code']>();
  for (let n = last + 1; n < periods.length; n++) {
    const [before, after] = periods.slice(n - 1, n + 1) as [WatchPeriod, WatchPeriod];
    const changes = [
      [
        before.state !== after.state || before.shape !== after.shape,
        'area_changed',
        'the area, or what it watches,',
      ],
      [before.dwellSeconds !== after.dwellSeconds, 'dwell_changed', 'the minimum stay'],
    ] as const;
    for (const [isChanged, code, what] of changes) {
      if (!isChanged || said.has(code)) continue;
      said.add(code);
      const when = `first at ${formatIso(after.sinceMs)}`;
      const message = `${what} was changed after the last of these points, ${when}; each point is shown against what was in force when it came`;
      yield { code, message, atMs: after.sinceMs };
    }
  }
}

type Said = readonly [verdict: Verdict, message: string];

/**
 * One answer for the whole window, and a sentence with its numbers. The last visit with an event counts most, then the
 * last one that may still become an entry, then those that were too short. Without a visit the points decide.
 */
function verdictOf(visits: readonly Visit[], findings: ReplayFindings, names: Names): Said {
  const { device, area } = names;
  const last = visits.at(-1);
  if (last === undefined) return ofNoVisit(findings, names);
  const reported = visits.findLast(({ outcome }) => outcome === 'entry' || outcome === 'entry_and_exit');
  if (reported !== undefined) {
    const { entryAtMs, exitAtMs, firstInsideMs, dwellSeconds } = reported;
    const since = formatIso(firstInsideMs);
    if (exitAtMs !== null) {
      const stayed = formatDuration(exitAtMs - firstInsideMs);
      const message = `${device} left ${area} at ${formatIso(exitAtMs)}: it had been inside since ${since}, ${stayed}`;
      return ['left', message];
    }
    if (entryAtMs === null) {
      const message = `${device} was inside ${area} from ${since} on; the entry was reported before this time`;
      return ['entered', message];
    }
    const entered = `${device} entered ${area} at ${formatIso(entryAtMs)}`;
    if (dwellSeconds === 0) return ['entered', entered];
    const waited = `it was there since ${since}, ${formatDuration(entryAtMs - firstInsideMs)}`;
    return ['entered', `${entered}, the first point after ${dwellOf(reported)} inside: ${waited}`];
  }
  if (last.outcome === 'pending') {
    const stayed = `${device} was inside ${area} for ${stayOf(last)} of ${dwellOf(last)} up to its last point`;
    return ['inside_pending', `${stayed}; the entry comes with its first point inside after that`];
  }
  const longest = visits.reduce((a, b) => (lengthOf(b) > lengthOf(a) ? b : a));
  const often = visits.length === 1 ? '' : ` in the longest of ${visits.length} visits`;
  const passed = `${device} passed through ${area}: ${stayOf(longest)} of ${dwellOf(longest)} inside${often}`;
  return ['too_short', `${passed}, so no entry was due`];
}

function ofNoVisit(findings: ReplayFindings, { device, area, areaCreatedAtMs, toMs }: Names): Said {
  const { evaluated, late, closest, crossing, insideUnwatched } = findings;
  if (evaluated.watched === 0) {
    if (evaluated.not_watched > 0) {
      const unwatched = `${area} did not watch ${device} when its ${counted(evaluated.not_watched, 'point')} came`;
      return ['not_watched', `${unwatched}: the two belonged to different owners then`];
    }
    if (evaluated.no_area > 0 || (toMs < areaCreatedAtMs && late.count === 0)) {
      const made = `${area} was made at ${formatIso(areaCreatedAtMs)}, after this time`;
      return ['area_did_not_exist', `${made}; points that came before are not evaluated against it`];
    }
    if (late.count === 0) return ['no_points', `no point of ${device} is stored in this time`];
    const came = `${counted(late.count, 'point')} of ${device} came late`;
    return ['no_points', `${came} and ${was(late.count)} not evaluated, and there is no other`];
  }
  if (crossing !== null && late.inside === 0) {
    const { fromMs, toMs: untilMs } = crossing;
    const between = `${formatIso(fromMs)} and ${formatIso(untilMs)} (${formatDuration(untilMs - fromMs)} apart)`;
    const crossed = `${device} crossed ${area} between two points, at ${between}`;
    return ['between_points', `${crossed}: none lies inside, so nothing was due`];
  }
  const ignored =
    late.inside === 0
      ? ''
      : `; ${counted(late.inside, 'point')} inside came late and ${was(late.inside)} not evaluated`;
  const never = `${device} was never inside ${area}`;
  if (insideUnwatched > 0) {
    const inside = `${counted(insideUnwatched, 'point')} inside came when it was not`;
    return ['never_inside', `${never} while it was watched: ${inside}${ignored}`];
  }
  const nearest = `${metres(closest?.distanceM ?? 0)} outside, at ${formatIso(closest?.atMs ?? 0)}`;
  const of = `of ${counted(evaluated.watched, 'point')} the closest was ${nearest}`;
  return ['never_inside', `${never}: ${of}${ignored}`];
}

const lengthOf = ({ firstInsideMs, lastInsideMs }: Visit): number => lastInsideMs - firstInsideMs;
const stayOf = (visit: Visit): string => formatDuration(lengthOf(visit));
const dwellOf = ({ dwellSeconds }: { readonly dwellSeconds: number }): string =>
  formatDuration(dwellSeconds * 1_000);
const was = (count: number): string => (count === 1 ? 'was' : 'were');

/** "1 point", "12 points". */
const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** As precise as GPS can mean it. */
function metres(distanceM: number): string {
  if (distanceM < 10) return `${distanceM.toFixed(1)} m`;
  return distanceM < 1_000 ? `${Math.round(distanceM)} m` : `${(distanceM / 1_000).toFixed(1)} km`;
}
