import {
  choice,
  integer,
  LATITUDE,
  LONGITUDE,
  nullable,
  number,
  type Schema,
  SPEED_KMH,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import { formatIso } from '../lib/isoTime.ts';
import type { historyView } from './history.routes.ts';
import type { Period } from './summary/calendarLedger.ts';
import type { TrackPoint } from './summary/motionWalk.ts';
import { SUMMARY_PERIODS, type SummaryPeriods } from './summary/summary.ts';

type PeriodView = ReturnType<typeof periodView>;
type SummaryQuery = ReturnType<typeof summaryMeta>['query'];

const PASSAGE: Schema = shapeOf<NonNullable<PeriodView['first']>>({
  latitude: LATITUDE,
  longitude: LONGITUDE,
  recorded_at: time('The GPS time of the point.'),
});

const seconds = (description: string) => number(description, { minimum: 0 });

export const HISTORY_SCHEMAS = {
  HistoryPoint: shapeOf<ReturnType<typeof historyView>>({
    latitude: LATITUDE,
    longitude: LONGITUDE,
    speed_kmh: SPEED_KMH,
    heading: number('Degrees, clockwise from north.', { minimum: 0, maximum: 360 }),
    satellites: integer('In use.', { minimum: 0 }),
    recorded_at: time('The GPS time of the point.'),
  }),
  HistoryPeriod: shapeOf<PeriodView>({
    from: {
      ...nullable(time()),
      description:
        'Where the period begins, but not before `from` of the call. Of a total: `from` of the call, else the first point, else null.',
    },
    to: {
      ...nullable(time()),
      description:
        'Where the next period begins, or a trip ends, but not after `to` of the call. Of a total: `to` of the call, else the last point, else null.',
    },
    points: integer(undefined, { minimum: 0 }),
    distance_km: number('The way while the vehicle was moving, from point to point.', { minimum: 0 }),
    moving_seconds: seconds('Neither parked nor a gap. Includes stops under 120 seconds.'),
    parked_seconds: seconds('In parkings of 120 seconds or more, without their gaps.'),
    gap_seconds: seconds('In gaps: more than 10 minutes without a point.'),
    max_speed_kmh: nullable(number('The highest speed of a point.', { minimum: 0 })),
    average_speed_kmh: nullable(number('`distance_km` over `moving_seconds`.', { minimum: 0 })),
    first: { ...nullable(PASSAGE), description: 'The first point; null when there is none.' },
    last: { ...nullable(PASSAGE), description: 'The last point; null when there is none.' },
  }),
} as const satisfies Readonly<Record<string, Schema>>;

export const SUMMARY_META: Schema = shapeOf<{ query: SummaryQuery }>({
  query: shapeOf<SummaryQuery>(
    {
      from: nullable(time('Not earlier than the plan retains; null when it was left out.')),
      to: nullable(time('null when it was left out.')),
      by: choice(SUMMARY_PERIODS),
      tz: text(),
    },
    { description: 'The parameters as they were used.' },
  ),
});

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
