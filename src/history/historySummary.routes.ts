import { scopeMask } from '../access/scopes.ts';
import { EXAMPLE_VAN, ONE_DEVICE } from '../devices/deviceSchemas.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { type Answer, dataAnswer, errorAnswer } from '../http/answer.ts';
import { answered, dataBody, type Operation } from '../http/openapi/operation.ts';
import {
  choice,
  envelope,
  integer,
  LATITUDE,
  LONGITUDE,
  list,
  nullable,
  number,
  ref,
  type Schema,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import {
  choiceParameter,
  FROM,
  isBlank,
  type Parameter,
  parameterError,
  readChoice,
  TO,
  WINDOW_MESSAGE,
} from '../http/parameters.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import { formatIso, OutOfTime } from '../lib/time.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import type { Sql } from '../postgres/sql.ts';
import type { TimeWindow } from './packedPoints.sql.ts';
import { DeviceGone, MOTION, pointPages } from './points.sql.ts';
import { type HistoryReader, readHistoryCall } from './readHistoryCall.ts';
import { openPeriod, type Period } from './summary/calendarLedger.ts';
import { LocalDays } from './summary/localDays.ts';
import type { TrackPoint } from './summary/motionWalk.ts';
import { SUMMARY_PERIODS, Summary, type SummaryPeriods, type SummaryRequest } from './summary/summary.ts';

const SUMMARY_BY = choiceParameter(
  'by',
  SUMMARY_PERIODS,
  'The periods to add up: the whole time, days, or trips from parking to parking.',
  'total',
);

const UTC = 'UTC';

const TIME_ZONE = {
  name: 'tz',
  in: 'query',
  required: false,
  description:
    'Whose days they are: a name of the IANA time zone database. A day on which the clock changes has 23 or 25 hours.',
  schema: { type: 'string', default: UTC },
  example: 'Europe/Rome',
  errorMessage: 'tz must be a name of the IANA time zone database, such as Europe/Rome',
} as const satisfies Parameter & { errorMessage: string };

/** Two months of a point every second, or a year and a half of one every ten seconds. */
const SUMMARY_POINTS_MAX = 5_000_000;
/** Twenty trips a day for a year: an answer of some megabytes. */
const SUMMARY_TRIPS_MAX = 8_000;
const TOO_MANY_POINTS = `the time has more than ${SUMMARY_POINTS_MAX} points; narrow from and to`;
const TOO_MANY_TRIPS = `the time has more than ${SUMMARY_TRIPS_MAX} trips; narrow from and to`;
/** Includes the wait for earlier ones of the same account. */
const SUMMARY_LIMIT_MS = 25_000;
/** Those of one account wait for each other. */
const RUNNING = { running: 64, runningPerKey: 2, waiting: 2_000, waitingPerKey: 50 };

/** For the pages that are on their way when the summary gives up. */
const GRACE_MS = 5_000;

interface HistorySummaryPorts {
  readonly fleet: Fleet;
  readonly reads: (accountId: number) => Sql;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
}

/** What a device did in a time: as a whole, by day or by trip. */
export function historySummaryRoute(ports: HistorySummaryPorts): Route {
  const running = new FairSemaphore<number>(RUNNING);
  return {
    method: 'GET',
    path: '/devices/:imei/history/summary',
    scopes: scopeMask('read_history_summary'),
    versions: BOTH_VERSIONS,
    deadlineMs: SUMMARY_LIMIT_MS + GRACE_MS,
    describe: GET_HISTORY_SUMMARY,
    handle: (call) => summary(ports, running, call),
  };
}

async function summary(
  ports: HistorySummaryPorts,
  running: FairSemaphore<number>,
  call: Call,
): Promise<Answer> {
  const { caller, query } = call;
  const asked = readHistoryCall(call);
  if (!asked.ok) return asked.error;
  const { imei, window } = asked.value;
  const by = readChoice(query, SUMMARY_BY) ?? 'total';
  if (by === 'invalid') return parameterError(SUMMARY_BY);
  const zone = query[TIME_ZONE.name] ?? '';
  const tz = isBlank(zone) ? UTC : zone;
  const days = tz === UTC ? LocalDays.UTC : LocalDays.of(tz);
  if (days === null) return parameterError(TIME_ZONE);
  const device = ports.fleet.device(caller.worldIds, imei);
  if (device === undefined) return errorAnswer('DEVICE_NOT_FOUND');
  const request = { by, days, ...window.sent };
  const untilMs = performance.now() + SUMMARY_LIMIT_MS;
  const periods = await running.run(caller.accountId, () =>
    summarize(ports, caller, device.fields.id, request, window, untilMs),
  );
  if (periods === 'gone') return errorAnswer('DEVICE_NOT_FOUND');
  if (periods === 'too_many_points') return errorAnswer('BAD_REQUEST', TOO_MANY_POINTS);
  if (periods === 'too_many_trips') return errorAnswer('BAD_REQUEST', TOO_MANY_TRIPS);
  return dataAnswer(periods.map(periodView), summaryMeta({ ...request, tz }));
}

/** The periods of a device in a window of its history, page by page in work turns. Rejects with OutOfTime. */
async function summarize(
  { reads, turns }: HistorySummaryPorts,
  { accountId, worldIds }: HistoryReader,
  deviceId: number,
  request: SummaryRequest,
  window: TimeWindow,
  untilMs: number,
): Promise<readonly Period[] | 'gone' | 'too_many_points' | 'too_many_trips'> {
  const summary = new Summary(request);
  try {
    for await (const page of pointPages(reads(accountId), worldIds, deviceId, window, MOTION)) {
      await turns.run(accountId, summary.take(page));
      if (summary.points > SUMMARY_POINTS_MAX) return 'too_many_points';
      if (request.by === 'trip' && summary.periods > SUMMARY_TRIPS_MAX) return 'too_many_trips';
      if (performance.now() > untilMs) throw new OutOfTime('the summary takes too long');
    }
  } catch (error) {
    if (error instanceof DeviceGone) return 'gone';
    throw error;
  }
  return summary.finish();
}

type PeriodView = ReturnType<typeof periodView>;
type SummaryQuery = ReturnType<typeof summaryMeta>['query'];

/** One period of a summary. */
function periodView(period: Period) {
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
function summaryMeta(query: {
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

export const SUMMARY_SCHEMAS = {
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
    first: { ...nullable(TRACK_POINT), description: 'The first point; null when there is none.' },
    last: { ...nullable(TRACK_POINT), description: 'The last point; null when there is none.' },
  }),
} as const satisfies Readonly<Record<string, Schema>>;

const SUMMARY_META: Schema = shapeOf<{ query: SummaryQuery }>({
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
const QUERY = { fromMs: FROM_MS, toMs: TO_MS, by: 'day', tz: 'Europe/Rome' } as const;
const { lat, lng, speedKmh } = EXAMPLE_VAN.position;
const EXAMPLE: Period = {
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
const NOTHING = openPeriod(FROM_MS, TO_MS);

const GET_HISTORY_SUMMARY: Operation = {
  id: 'getHistorySummary',
  tag: 'Devices',
  summary: 'Read what a device did: in all, by day or by trip',
  description:
    'Oldest first. `total` is one period. `day` gives every day of `tz` from that of the first point to that of the last. `trip` gives what lies between parkings, from the last point of one to the first point of the next; a parking is 120 seconds or more under 5 km/h. Noise of a parked vehicle is no distance. More than 10 minutes without a point are a gap, which is neither moving nor parked nor a distance. What lies further back than the plan of the account retains is left out, and what lies outside of `from` and `to` is not looked at.',
  parameters: [FROM, TO, SUMMARY_BY, TIME_ZONE],
  answers: [
    answered(200, 'The periods.', envelope(list(ref('HistoryPeriod')), SUMMARY_META), {
      'a day': dataBody([periodView(EXAMPLE)], summaryMeta(QUERY)),
      'nothing reported': dataBody([periodView(NOTHING)], summaryMeta({ ...QUERY, by: 'total' })),
    }),
  ],
  errors: [
    ...ONE_DEVICE,
    ['BAD_REQUEST', WINDOW_MESSAGE],
    ['BAD_REQUEST', SUMMARY_BY.errorMessage],
    ['BAD_REQUEST', TIME_ZONE.errorMessage],
    ['BAD_REQUEST', TOO_MANY_POINTS],
    ['BAD_REQUEST', TOO_MANY_TRIPS],
  ],
};
