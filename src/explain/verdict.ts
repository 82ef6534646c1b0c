import { formatDuration } from '../lib/durations.ts';
import { formatIso } from '../lib/isoTime.ts';
import type { Verdict, Visit } from './explanation.ts';
import type { PointReplay } from './pointReplay.ts';

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
 * last one that may still become an entry, then those that were too short, then that there was no visit.
 */
export function verdictOf(replay: PointReplay, names: Names): { verdict: Verdict; message: string } {
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
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** As precise as GPS can mean it. */
function metres(distanceM: number): string {
  if (distanceM < 10) return `${distanceM.toFixed(1)} m`;
  return distanceM < 1_000 ? `${Math.round(distanceM)} m` : `${(distanceM / 1_000).toFixed(1)} km`;
}
