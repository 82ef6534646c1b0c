import { distanceM } from '../../../src/geo/wgs84.ts';
import type { OpenPeriod, Period } from '../../../src/history/summary/calendarLedger.ts';
import type { TrackPoint } from '../../../src/history/summary/motionWalk.ts';

/** From one point to the next, and what the vehicle did. */
interface Interval {
  readonly from: TrackPoint;
  readonly to: TrackPoint;
  readonly kind: 'moving' | 'parked' | 'gap';
  readonly isInParking: boolean;
}

const isSlow = ({ speedKmh }: TrackPoint) => speedKmh < 5;
const apartM = (a: TrackPoint, b: TrackPoint) => distanceM(a.lat, a.lng, b.lat, b.lng);
const isGap = (a: TrackPoint, b: TrackPoint) => b.recordedAtMs - a.recordedAtMs > 600_000;

/** The parkings of a track as first and last index, found by looking ahead as far as need be. */
function parkingsOf(track: readonly TrackPoint[]): [first: number, last: number][] {
  const parkings: [number, number][] = [];
  let at = 0;
  while (at < track.length) {
    if (at > 0 && !isSlow(track[at] as TrackPoint)) {
      at++;
      continue;
    }
    let anchor = track[at] as TrackPoint;
    let lastSlow = at;
    let end = at + 1;
    for (; end < track.length; end++) {
      const point = track[end] as TrackPoint;
      if (isSlow(point)) {
        lastSlow = end;
        if (isGap(track[end - 1] as TrackPoint, point)) anchor = point;
      } else if (apartM(anchor, point) > 50) break;
    }
    const stands = track.slice(at, end);
    const hasLeft = end < track.length;
    const isAllSlow = at === 0 && !hasLeft && stands.every(isSlow);
    const stoodMs = (track[lastSlow] as TrackPoint).recordedAtMs - (track[at] as TrackPoint).recordedAtMs;
    if (isAllSlow || stoodMs >= 120_000) parkings.push([at, hasLeft ? lastSlow : end - 1]);
    at = end;
  }
  return parkings;
}

export function intervalsOf(track: readonly TrackPoint[]): Interval[] {
  const parkings = parkingsOf(track);
  return track.slice(1).map((to, n) => {
    const from = track[n] as TrackPoint;
    const isInParking = parkings.some(([first, last]) => n >= first && n + 1 <= last);
    const kind = isGap(from, to) ? 'gap' : isInParking ? 'parked' : 'moving';
    return { from, to, kind, isInParking };
  });
}

/** The track between two instants, the second one not included. */
export function naivePeriod(
  track: readonly TrackPoint[],
  fromMs: number,
  toMs: number,
): Omit<Period, 'fromMs' | 'toMs'> {
  const points = track.filter(({ recordedAtMs }) => recordedAtMs >= fromMs && recordedAtMs < toMs);
  const sums = { moving: 0, parked: 0, gap: 0, wayM: 0 };
  for (const { from, to, kind } of intervalsOf(track)) {
    const ms = Math.max(0, Math.min(to.recordedAtMs, toMs) - Math.max(from.recordedAtMs, fromMs));
    sums[kind] += ms;
    if (kind === 'moving') sums.wayM += (apartM(from, to) * ms) / (to.recordedAtMs - from.recordedAtMs);
  }
  return {
    points: points.length,
    distanceM: sums.wayM,
    movingMs: sums.moving,
    parkedMs: sums.parked,
    gapMs: sums.gap,
    maxSpeedKmh: points.length === 0 ? null : Math.max(...points.map(({ speedKmh }) => speedKmh)),
    first: points[0] ?? null,
    last: points.at(-1) ?? null,
  };
}

/** Trips: intervals outside of parkings that follow each other, without the gaps at their ends. */
export function naiveTrips(track: readonly TrackPoint[]): OpenPeriod[] {
  const groups: Interval[][] = [[]];
  for (const interval of intervalsOf(track)) {
    if (interval.isInParking) groups.push([]);
    else groups.at(-1)?.push(interval);
  }
  return groups.flatMap((group) => {
    const first = group.findIndex(({ kind }) => kind === 'moving');
    if (first === -1) return [];
    const trip = group.slice(first, group.findLastIndex(({ kind }) => kind === 'moving') + 1);
    const points = [(trip[0] as Interval).from, ...trip.map(({ to }) => to)];
    const sum = (kind: 'moving' | 'gap', of: (interval: Interval) => number) =>
      trip.filter((interval) => interval.kind === kind).reduce((total, interval) => total + of(interval), 0);
    const ms = ({ from, to }: Interval) => to.recordedAtMs - from.recordedAtMs;
    return {
      fromMs: (points[0] as TrackPoint).recordedAtMs,
      toMs: (points.at(-1) as TrackPoint).recordedAtMs,
      points: points.length,
      distanceM: sum('moving', ({ from, to }) => apartM(from, to)),
      movingMs: sum('moving', ms),
      parkedMs: 0,
      gapMs: sum('gap', ms),
      maxSpeedKmh: Math.max(...points.map(({ speedKmh }) => speedKmh)),
      first: points[0] as TrackPoint,
      last: points.at(-1) as TrackPoint,
    };
  });
}
