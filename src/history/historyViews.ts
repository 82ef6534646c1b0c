import { formatIso } from '../lib/isoTime.ts';
import type { TrackPoint } from './summary/motionWalk.ts';
import type { Period } from './summary/period.ts';
import type { SummaryPeriods } from './summary/summary.ts';

/** One period of a summary. */
export function periodView(period: Period) {
  const { movingMs, distanceM } = period;
  return {
    from: isoOrNull(period.fromMs),
    to: isoOrNull(period.toMs),
    points: period.points,
    distance_km: distanceM / 1_000,
    moving_seconds: movingMs / 1_000,
    parked_seconds: period.parkedMs / 1_000,
    gap_seconds: period.gapMs / 1_000,
    max_speed_kmh: period.maxSpeedKmh,
    average_speed_kmh: movingMs === 0 ? null : (distanceM / movingMs) * KMH_PER_M_MS,
    first: passageView(period.first),
    last: passageView(period.last),
  };
}

const isoOrNull = (ms: number | null) => (ms === null ? null : formatIso(ms));
const KMH_PER_M_MS = 3_600;

function passageView(point: TrackPoint | null) {
  return point === null
    ? null
    : { latitude: point.lat, longitude: point.lng, recorded_at: formatIso(point.recordedAtMs) };
}

/** `meta` of a summary: what was asked for, as it was used. */
export function summaryMeta(query: {
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly by: SummaryPeriods;
  readonly tz: string;
}) {
  const { fromMs, toMs, by, tz } = query;
  return { query: { from: isoOrNull(fromMs), to: isoOrNull(toMs), by, tz } };
}
