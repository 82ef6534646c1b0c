import { MOVING_FROM_KMH } from '../../devices/device.ts';
import { distanceM } from '../../geo/wgs84.ts';
import type { Day } from './localDays.ts';
import {
  GAP_MS,
  type Ledger,
  type Motion,
  pointAt,
  type TrackColumns,
  type TrackPoint,
  type Way,
} from './motionWalk.ts';

/** What ways add to a period when their motion is known. */
interface Share {
  readonly period: OpenPeriod;
  ms: number;
  distanceM: number;
}

/** The period that contains an instant. */
type PeriodOf = (ms: number) => Pick<Day, 'fromMs' | 'toMs'>;

/**
 * Adds up a track by periods that follow each other without a space between, from that of the first point to that of the
 * last. A way over the border of two is divided by time, its distance likewise, so the sums of all periods are those of
 * the track. No period begins before the window or ends after it.
 */
export class CalendarLedger implements Ledger<Share[]> {
  readonly #periods: OpenPeriod[] = [];
  readonly #fromMs: number;
  readonly #toMs: number;
  readonly #periodOf: PeriodOf;

  constructor(fromMs: number, toMs: number, periodOf: PeriodOf) {
    this.#fromMs = fromMs;
    this.#toMs = toMs;
    this.#periodOf = periodOf;
  }

  /** The periods that were entered so far. */
  get count(): number {
    return this.#periods.length;
  }

  /** To be called when the walk has finished. The last period ends with the window. */
  result(): readonly Period[] {
    const last = this.#periods.at(-1);
    if (last !== undefined) last.toMs = Math.min(last.toMs, this.#toMs);
    return this.#periods;
  }

  addPoint(point: TrackPoint): void {
    addPoint(this.#periods.at(-1) ?? this.#enter(point.recordedAtMs, this.#fromMs), point);
  }

  /**
   * Adds points from place `n` on as long as they are of this motion, without a gap and in the period of the point before
   * them, up to `end`. Returns the place behind them. The same as `bookWay` and `addPoint` for each, without making an object
   * of it, which takes longer than all else. Place n - 1 is the last point that was added.
   */
  addRun(motion: Motion, track: TrackColumns, n: number, end: number): number {
    const period = this.#periods.at(-1);
    if (period === undefined) return n;
    const { recordedAtMs, lats, lngs, speedsKmh } = track;
    const isMoving = motion === 'moving';
    let { distanceM: wayM, maxSpeedKmh } = period;
    let fromMs = recordedAtMs[n - 1] as number;
    const firstMs = fromMs;
    let at = n;
    for (; at < end; at++) {
      const toMs = recordedAtMs[at] as number;
      const speedKmh = speedsKmh[at] as number;
      const isRun = toMs < period.toMs && toMs > fromMs && toMs - fromMs <= GAP_MS;
      if (!isRun || speedKmh >= MOVING_FROM_KMH !== isMoving) break;
      if (isMoving)
        wayM += distanceM(
          lats[at - 1] as number,
          lngs[at - 1] as number,
          lats[at] as number,
          lngs[at] as number,
        );
      if (maxSpeedKmh === null || speedKmh > maxSpeedKmh) maxSpeedKmh = speedKmh;
      fromMs = toMs;
    }
    if (at === n) return n;
    period.distanceM = wayM;
    period.maxSpeedKmh = maxSpeedKmh;
    period.points += at - n;
    period.last = pointAt(track, at - 1);
    if (isMoving) period.movingMs += fromMs - firstMs;
    else period.parkedMs += fromMs - firstMs;
    return at;
  }

  noSums(): Share[] {
    return [];
  }

  hold(shares: Share[], way: Way): void {
    if (way.isGap) {
      this.bookWay(way, 'moving');
      return;
    }
    const wayM = lengthM(way);
    this.#divide(way, (period, ms, part) => shareOf(shares, period, ms, wayM * part));
  }

  join(shares: Share[], later: readonly Share[]): void {
    for (const { period, ms, distanceM } of later) shareOf(shares, period, ms, distanceM);
  }

  book(shares: readonly Share[], motion: Motion): void {
    for (const { period, ms, distanceM } of shares) add(period, motion, ms, distanceM);
  }

  bookWay(way: Way, motion: Motion): void {
    const what = way.isGap ? 'gap' : motion;
    const wayM = what === 'moving' ? lengthM(way) : 0;
    this.#divide(way, (period, ms, part) => add(period, what, ms, wayM * part));
  }

  /** Enters every period that the way leads into. */
  #divide({ from, to }: Way, take: (period: OpenPeriod, ms: number, part: number) => void): void {
    const wholeMs = to.recordedAtMs - from.recordedAtMs;
    let period = this.#periods.at(-1) ?? this.#enter(from.recordedAtMs, this.#fromMs);
    let fromMs = from.recordedAtMs;
    while (period.toMs <= to.recordedAtMs) {
      if (period.toMs > fromMs) take(period, period.toMs - fromMs, (period.toMs - fromMs) / wholeMs);
      fromMs = period.toMs;
      period = this.#enter(fromMs, fromMs);
    }
    const ms = to.recordedAtMs - fromMs;
    if (ms > 0) take(period, ms, ms / wholeMs);
  }

  #enter(ms: number, notBeforeMs: number): OpenPeriod {
    const { fromMs, toMs } = this.#periodOf(ms);
    const period = openPeriod(Math.max(fromMs, notBeforeMs), toMs);
    this.#periods.push(period);
    return period;
  }
}

/** A parked vehicle covers no distance, even where its points wander. */
function add(period: OpenPeriod, what: Motion | 'gap', ms: number, wayM: number): void {
  if (what === 'gap') period.gapMs += ms;
  else if (what === 'parked') period.parkedMs += ms;
  else {
    period.movingMs += ms;
    period.distanceM += wayM;
  }
}

function lengthM({ from, to }: Way): number {
  return distanceM(from.lat, from.lng, to.lat, to.lng);
}

/** The newest period is the last of the list, and nearly always the one that is wanted. */
function shareOf(shares: Share[], period: OpenPeriod, ms: number, distanceM: number): void {
  const share = shares.at(-1);
  if (share?.period !== period) {
    shares.push({ period, ms, distanceM });
  } else {
    share.ms += ms;
    share.distanceM += distanceM;
  }
}

/** What a vehicle did during a period. */
export interface Period {
  /** null where neither the window nor a point says it. */
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly points: number;
  readonly distanceM: number;
  readonly movingMs: number;
  readonly parkedMs: number;
  readonly gapMs: number;
  /** Of all points; null without one. */
  readonly maxSpeedKmh: number | null;
  readonly first: TrackPoint | null;
  readonly last: TrackPoint | null;
}

/** A period that is being added up. */
export type OpenPeriod = { -readonly [Field in Exclude<keyof Period, 'fromMs' | 'toMs'>]: Period[Field] } & {
  fromMs: number;
  toMs: number;
};

export function openPeriod<Ms extends number | null>(fromMs: Ms, toMs: Ms) {
  const sums = { points: 0, distanceM: 0, movingMs: 0, parkedMs: 0, gapMs: 0 };
  return { fromMs, toMs, ...sums, maxSpeedKmh: null, first: null, last: null };
}

export function addPoint(period: OpenPeriod, point: TrackPoint): void {
  period.points++;
  period.first ??= point;
  period.last = point;
  if (period.maxSpeedKmh === null || point.speedKmh > period.maxSpeedKmh) period.maxSpeedKmh = point.speedKmh;
}
