import { distanceM } from '../../geo/wgs84.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { addPoint, CalendarLedger, type OpenPeriod, openPeriod, type Period } from './calendarLedger.ts';
import type { LocalDays } from './localDays.ts';
import {
  type Ledger,
  type Motion,
  MotionWalk,
  pointAt,
  type TrackColumns,
  type TrackPoint,
  type Way,
} from './motionWalk.ts';

export const SUMMARY_PERIODS = ['total', 'day', 'trip'] as const;
export type SummaryPeriods = (typeof SUMMARY_PERIODS)[number];

export interface SummaryRequest {
  readonly by: SummaryPeriods;
  readonly days: LocalDays;
  /** The window, both ends included; null: open. */
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

/** Points between two looks at the clock: a fraction of a millisecond. */
const POINTS_PER_STEP = 256;

/** A summary of a track that comes in parts. Takes memory for its periods only. */
export class Summary {
  readonly #request: SummaryRequest;
  readonly #ledger: CalendarLedger | TripLedger;
  readonly #walk: MotionWalk<unknown>;
  #points = 0;

  constructor(request: SummaryRequest) {
    this.#request = request;
    const { by, days, fromMs, toMs } = request;
    const [firstMs, lastMs] = [fromMs ?? Number.NEGATIVE_INFINITY, toMs ?? Number.POSITIVE_INFINITY];
    const periodOf = by === 'day' ? (ms: number) => days.dayOf(ms) : () => ALWAYS;
    this.#ledger = by === 'trip' ? new TripLedger() : new CalendarLedger(firstMs, lastMs, periodOf);
    this.#walk = new MotionWalk<unknown>(this.#ledger);
  }

  /** How many points it has taken. */
  get points(): number {
    return this.#points;
  }

  /** The periods that have ended, at least. */
  get periods(): number {
    return this.#ledger.count;
  }

  *take(track: TrackColumns): Steps<void> {
    for (let n = 0; n < track.count; ) {
      const end = Math.min(n + POINTS_PER_STEP, track.count);
      while (n < end) n = this.#takeRun(track, n, end);
      if (n < track.count) yield;
    }
    this.#points += track.count;
  }

  /** Takes a point, or a run of those that change nothing: nearly all are in one. Returns the place behind it. */
  #takeRun(track: TrackColumns, n: number, end: number): number {
    const motion = this.#walk.steadyMotion;
    if (n > 0 && motion !== null && this.#ledger instanceof CalendarLedger) {
      const next = this.#ledger.addRun(motion, track, n, end);
      if (next > n) {
        this.#walk.goOnFrom(pointAt(track, next - 1));
        return next;
      }
    }
    this.#walk.step(pointAt(track, n));
    return n + 1;
  }

  /** To be called once, after the last part. Of a total there is one period, whatever the track. */
  finish(): readonly Period[] {
    this.#walk.finish();
    const periods = this.#ledger.result();
    return this.#request.by === 'total' ? [this.#total(periods[0])] : periods;
  }

  /** What the window leaves open is from the first point, or to the last. */
  #total(period: Period | undefined): Period {
    const { fromMs, toMs } = this.#request;
    if (period === undefined) return openPeriod(fromMs, toMs);
    return {
      ...period,
      fromMs: fromMs ?? period.first?.recordedAtMs ?? null,
      toMs: toMs ?? period.last?.recordedAtMs ?? null,
    };
  }
}

const ALWAYS = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };

/** Gaps that follow each other, and the points at which they end. */
interface Gaps {
  ms: number;
  points: number;
  maxSpeedKmh: number;
}

/** Ways that follow each other. The drive lasts from the first way that is not a gap to the last one. */
interface TripSums {
  before: Gaps;
  drive: OpenPeriod | null;
  /** Belong to the drive if the vehicle moves on. */
  behind: Gaps;
}

/**
 * Adds up a track by trips: from parking to parking. A trip begins with the last point of a parking and ends with the
 * first one of the next; at the ends of the track, with its first and last point. Gaps at the ends of a trip do not
 * belong to it, and gaps alone make none.
 */
class TripLedger implements Ledger<TripSums> {
  readonly #trips: OpenPeriod[] = [];
  #current: TripSums = noSums();

  /** The trips that have ended. */
  get count(): number {
    return this.#trips.length;
  }

  /** To be called when the walk has finished. */
  result(): readonly Period[] {
    this.#endTrip();
    return this.#trips;
  }

  /** The points of a trip are those of its ways. */
  addPoint(): void {}

  noSums(): TripSums {
    return noSums();
  }

  hold(sums: TripSums, { from, to, isGap }: Way): void {
    const ms = to.recordedAtMs - from.recordedAtMs;
    if (isGap) {
      const gap = { ms, points: 1, maxSpeedKmh: to.speedKmh };
      addGaps(sums.drive === null ? sums.before : sums.behind, gap);
      return;
    }
    sums.drive ??= driveFrom(from);
    const { drive } = sums;
    takeIn(drive, sums.behind);
    sums.behind = noGaps();
    drive.movingMs += ms;
    drive.distanceM += distanceM(from.lat, from.lng, to.lat, to.lng);
    drive.toMs = to.recordedAtMs;
    addPoint(drive, to);
  }

  join(sums: TripSums, later: TripSums): void {
    addGaps(sums.drive === null ? sums.before : sums.behind, later.before);
    if (later.drive === null) return;
    if (sums.drive === null) {
      sums.drive = later.drive;
    } else {
      takeIn(sums.drive, sums.behind);
      append(sums.drive, later.drive);
    }
    sums.behind = later.behind;
  }

  book(sums: TripSums, motion: Motion): void {
    if (motion === 'parked') this.#endTrip();
    else this.join(this.#current, sums);
  }

  bookWay(way: Way, motion: Motion): void {
    if (motion === 'parked') this.#endTrip();
    else this.hold(this.#current, way);
  }

  #endTrip(): void {
    const { drive } = this.#current;
    if (drive !== null) this.#trips.push(drive);
    this.#current = noSums();
  }
}

const noGaps = (): Gaps => ({ ms: 0, points: 0, maxSpeedKmh: 0 });
const noSums = (): TripSums => ({ before: noGaps(), drive: null, behind: noGaps() });

function driveFrom(point: TrackPoint): OpenPeriod {
  const drive = openPeriod(point.recordedAtMs, point.recordedAtMs);
  addPoint(drive, point);
  return drive;
}

function addGaps(gaps: Gaps, { ms, points, maxSpeedKmh }: Gaps): void {
  gaps.ms += ms;
  gaps.points += points;
  gaps.maxSpeedKmh = Math.max(gaps.maxSpeedKmh, maxSpeedKmh);
}

function takeIn(drive: OpenPeriod, { ms, points, maxSpeedKmh }: Gaps): void {
  if (points === 0) return;
  drive.gapMs += ms;
  drive.points += points;
  drive.maxSpeedKmh = Math.max(drive.maxSpeedKmh ?? 0, maxSpeedKmh);
}

/** `later` begins with the point at which `drive`, or the gap behind it, has ended. */
function append(drive: OpenPeriod, later: OpenPeriod): void {
  drive.toMs = later.toMs;
  drive.points += later.points - 1;
  drive.distanceM += later.distanceM;
  drive.movingMs += later.movingMs;
  drive.gapMs += later.gapMs;
  drive.maxSpeedKmh = Math.max(drive.maxSpeedKmh ?? 0, later.maxSpeedKmh ?? 0);
  drive.last = later.last;
}
