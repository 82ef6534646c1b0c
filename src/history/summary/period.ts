import type { TrackPoint } from './motionWalk.ts';

/** What a vehicle did in a time. */
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

export function openPeriod(fromMs: number, toMs: number): OpenPeriod {
  return { fromMs, toMs, ...NOTHING };
}

/** A time without points. */
export function emptyPeriod(fromMs: number | null, toMs: number | null): Period {
  return { fromMs, toMs, ...NOTHING };
}

const NOTHING = {
  ...{ points: 0, distanceM: 0, movingMs: 0, parkedMs: 0, gapMs: 0 },
  ...{ maxSpeedKmh: null, first: null, last: null },
};

export function addPoint(period: OpenPeriod, point: TrackPoint): void {
  period.points++;
  period.first ??= point;
  period.last = point;
  if (period.maxSpeedKmh === null || point.speedKmh > period.maxSpeedKmh) period.maxSpeedKmh = point.speedKmh;
}
