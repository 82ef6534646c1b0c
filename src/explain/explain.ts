import { formatDuration } from '../lib/durations.ts';
import { formatIso } from '../lib/isoTime.ts';
import type { Explanation, Note } from './explanation.ts';
import type { PointReplay } from './pointReplay.ts';
import { GAP_MS, type ReplayFindings } from './replayFindings.ts';
import type { Situation } from './situations.ts';
import { counted, type Names, verdictOf } from './verdict.ts';

/** What a replay that has ended says about its window. `trimmed`: the plan shows less than was asked for. */
export function explanationOf(
  replay: PointReplay,
  situations: readonly Situation[],
  names: Names,
  trimmed: { readonly fromMs: number; readonly historyDays: number } | null,
): Explanation {
  return {
    ...verdictOf(replay, names),
    closest: replay.findings.closest,
    visits: replay.log.visits,
    gaps: replay.findings.gaps,
    notes: notesOf(replay.findings, situations, trimmed),
    steps: replay.steps,
  };
}

/** Changes that are said one by one; a busy area may have more. */
const CHANGES_MAX = 20;

/** What is to be said of the window besides its verdict, in the order of NOTE_CODES. */
function notesOf(
  findings: ReplayFindings,
  situations: readonly Situation[],
  trimmed: { readonly fromMs: number; readonly historyDays: number } | null,
): Note[] {
  return [
    ...lateNotes(findings),
    ...changeNotes(findings, situations),
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
function changeNotes({ situationsUsed }: ReplayFindings, situations: readonly Situation[]): Note[] {
  if (situationsUsed === null) return [];
  const { first, last } = situationsUsed;
  const notes: Note[] = [];
  for (let n = Math.min(first, last) + 1; n <= Math.max(first, last) && notes.length < CHANGES_MAX; n++) {
    notes.push(...changeNote(situations[n - 1] as Situation, situations[n] as Situation));
  }
  const later = situations[last]?.state === 'no_area' ? [] : laterNotes(situations, last);
  return [...notes, ...later].slice(0, CHANGES_MAX);
}

/** What was changed after the last point: once for the area, and once for its minimum stay. */
function laterNotes(situations: readonly Situation[], last: number): Note[] {
  const shown = 'each point is shown against what was in force when it came';
  const notes: Note[] = [];
  const say = (code: Note['code'], what: string, atMs: number) => {
    if (notes.some((note) => note.code === code)) return;
    const message = `${what} was changed after the last of these points, first at ${formatIso(atMs)}; ${shown}`;
    notes.push({ code, message, atMs });
  };
  for (let n = last + 1; n < situations.length; n++) {
    const before = situations[n - 1] as Situation;
    const after = situations[n] as Situation;
    if (before.state !== after.state || before.shape !== after.shape) {
      say('area_changed', 'the area, or what it watches,', after.sinceMs);
    }
    if (before.dwellSeconds !== after.dwellSeconds) say('dwell_changed', 'the minimum stay', after.sinceMs);
  }
  return notes;
}

function changeNote(before: Situation, after: Situation): Note[] {
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
