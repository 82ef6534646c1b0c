import { EXAMPLE_VAN } from '../../devices/deviceSchemas.ts';
import {
  choice,
  integer,
  LATITUDE,
  LONGITUDE,
  nullable,
  number,
  type Schema,
  shapeOf,
  text,
  time,
} from '../../http/openapi/schema.ts';
import { isBlank, type Parameter, type Query } from '../../http/parameters.ts';
import { formatIso } from '../../lib/time.ts';
import { openPeriod, type Period } from './calendarLedger.ts';
import { LocalDays } from './localDays.ts';
import type { TrackPoint } from './motionWalk.ts';
import { SUMMARY_PERIODS, type SummaryPeriods } from './summary.ts';

const UTC = 'UTC';

export const TIME_ZONE = {
  name: 'tz',
  in: 'query',
  required: false,
  description:
    'Whose days they are: a name of the IANA time zone database. A day on which the clock changes has 23 or 25 hours.',
  schema: { type: 'string', default: UTC },
  example: 'Europe/Rome',
  errorMessage: 'tz must be a name of the IANA time zone database, such as Europe/Rome',
} as const satisfies Parameter & { errorMessage: string };

/** The time zone named by a query, and its calendar days. Null for an unknown time zone. */
export function readTimeZone(query: Query): { readonly tz: string; readonly days: LocalDays } | null {
  const sent = query[TIME_ZONE.name] ?? '';
  const tz = isBlank(sent) ? UTC : sent;
  const days = LocalDays.of(tz);
  return days === null ? null : { tz, days };
}

export type PeriodView = ReturnType<typeof periodView>;
type SummaryQuery = ReturnType<typeof summaryMeta>['query'];

/** One period of a summary; `days`: it is one of these days, else null. */
export function periodView(period: Period, days: LocalDays | null) {
  const { fromMs, movingMs, distanceM } = period;
  return {
    from: isoOrNull(fromMs),
    to: isoOrNull(period.toMs),
    ...(days === null || fromMs === null ? {} : { date: days.dayOf(fromMs).date }),
    points: period.points,
    distance_km: distanceM / 1_000,
    moving_seconds: movingMs / 1_000,
    parked_seconds: period.parkedMs / 1_000,
    gap_seconds: period.gapMs / 1_000,
    max_speed_kmh: period.maxSpeedKmh,
    average_speed_kmh: movingMs === 0 ? null : (distanceM / movingMs) * KMH_PER_M_MS,
    first: trackPointView(period.first),
    last: trackPointView(period.last),
  };
}

const isoOrNull = (ms: number | null) => (ms === null ? null : formatIso(ms));
const KMH_PER_M_MS = 3_600;

function trackPointView(point: TrackPoint | null) {
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

const TRACK_POINT: Schema = shapeOf<NonNullable<PeriodView['first']>>({
  latitude: LATITUDE,
  longitude: LONGITUDE,
  recorded_at: time('The GPS time of the point.'),
});

const seconds = (description: string) => number(description, { minimum: 0 });

export const PERIOD_FIELDS: Readonly<Record<keyof PeriodView, Schema>> = {
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
  date: text('With `by=day`: the day of `tz`, as YYYY-MM-DD.', { format: 'date' }),
  points: integer(undefined, { minimum: 0 }),
  distance_km: number('The way while the vehicle was moving, from point to point.', { minimum: 0 }),
  moving_seconds: seconds('Neither parked nor a gap. Includes stops under 120 seconds.'),
  parked_seconds: seconds('In parkings of 120 seconds or more, without their gaps.'),
  gap_seconds: seconds('In gaps: more than 10 minutes without a point.'),
  max_speed_kmh: nullable(number('The highest speed of a point.', { minimum: 0 })),
  average_speed_kmh: nullable(number('`distance_km` over `moving_seconds`.', { minimum: 0 })),
  first: { ...nullable(TRACK_POINT), description: 'The first point; null when there is none.' },
  last: { ...nullable(TRACK_POINT), description: 'The last point; null when there is none.' },
};

export const SUMMARY_SCHEMAS = {
  HistoryPeriod: shapeOf<PeriodView>(PERIOD_FIELDS, { optional: ['date'] }),
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

/** A day in Rome. */
const FROM_MS = Date.UTC(2026, 1, 28, 23);
const TO_MS = Date.UTC(2026, 2, 1, 23);
export const EXAMPLE_SUMMARY_QUERY = { fromMs: FROM_MS, toMs: TO_MS, by: 'day', tz: 'Europe/Rome' } as const;
const { lat, lng, speedKmh } = EXAMPLE_VAN.position;
export const EXAMPLE_PERIOD: Period = {
  fromMs: FROM_MS,
  toMs: TO_MS,
  points: 4_371,
  distanceM: 187_230,
  movingMs: 13_260_000,
  parkedMs: 29_940_000,
  gapMs: 43_180_000,
  maxSpeedKmh: 118.4,
  first: { recordedAtMs: Date.UTC(2026, 2, 1, 6, 12, 4), lat, lng, speedKmh },
  last: { recordedAtMs: Date.UTC(2026, 2, 1, 22, 59, 44), lat, lng, speedKmh: 0 },
};
export const EXAMPLE_DAYS = LocalDays.of(EXAMPLE_SUMMARY_QUERY.tz);
export const EXAMPLE_EMPTY_PERIOD = openPeriod(FROM_MS, TO_MS);
