import { scopeMask } from '../access/scopes.ts';
import { ONE_DEVICE } from '../devices/deviceSchemas.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { type Answer, dataAnswer, errorAnswer } from '../http/answer.ts';
import { answered, dataBody, type Operation } from '../http/openapi/operation.ts';
import { envelope, list, ref } from '../http/openapi/schema.ts';
import { choiceParameter, FROM, parameterError, readChoice, TO, WINDOW_MESSAGE } from '../http/parameters.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import { OutOfTime } from '../lib/time.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import type { Sql } from '../postgres/sql.ts';
import type { TimeWindow } from './packedPoints.sql.ts';
import { DeviceGone, MOTION, pointPages } from './points.sql.ts';
import { type HistoryReader, readHistoryCall } from './readHistoryCall.ts';
import type { Period } from './summary/calendarLedger.ts';
import { SUMMARY_PERIODS, Summary, type SummaryRequest } from './summary/summary.ts';
import {
  EXAMPLE_DAYS,
  EXAMPLE_EMPTY_PERIOD,
  EXAMPLE_PERIOD,
  EXAMPLE_SUMMARY_QUERY,
  periodView,
  readTimeZone,
  SUMMARY_META,
  summaryMeta,
  TIME_ZONE,
} from './summary/summaryView.ts';

const SUMMARY_BY = choiceParameter(
  'by',
  SUMMARY_PERIODS,
  'The periods to add up: the whole time, days, or trips from parking to parking.',
  'total',
);

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

/** What a device did during a period: in total, by day or by trip. */
export function historySummaryRoute(ports: HistorySummaryPorts): Route {
  const running = new FairSemaphore<number>(RUNNING);
  return {
    method: 'GET',
    path: '/devices/:imei/history/summary',
    scopes: scopeMask('read_history_summary'),
    isOpenToGroups: true,
    versions: BOTH_VERSIONS,
    shedAs: 'bulk',
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
  const zone = readTimeZone(query);
  if (zone === null) return parameterError(TIME_ZONE);
  const device = ports.fleet.device(caller.worldIds, imei);
  if (device === undefined) return errorAnswer('DEVICE_NOT_FOUND');
  const request = { by, days: zone.days, ...window.sent };
  const untilMs = performance.now() + SUMMARY_LIMIT_MS;
  const periods = await running.run(caller.accountId, () =>
    summarize(ports, caller, device.fields.id, request, window, untilMs),
  );
  if (periods === 'gone') return errorAnswer('DEVICE_NOT_FOUND');
  if (periods === 'too_many_points') return errorAnswer('BAD_REQUEST', TOO_MANY_POINTS);
  if (periods === 'too_many_trips') return errorAnswer('BAD_REQUEST', TOO_MANY_TRIPS);
  return dataAnswer(
    periods.map((period) => periodView(period, by === 'day' ? zone.days : null)),
    summaryMeta({ ...request, tz: zone.tz }),
  );
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

const GET_HISTORY_SUMMARY: Operation = {
  id: 'getHistorySummary',
  tag: 'Devices',
  summary: 'Summarize what a device did: in total, by day or by trip',
  description:
    'Oldest first. `total` is one period. `day` gives every day of `tz` from that of the first point to that of the last. `trip` gives what lies between parkings, from the last point of one to the first point of the next; a parking is 120 seconds or more under 5 km/h. Noise of a parked vehicle is no distance. More than 10 minutes without a point are a gap, which is neither moving nor parked nor a distance. What lies further back than the plan of the account retains is left out, and what lies outside of `from` and `to` is not looked at.',
  parameters: [FROM, TO, SUMMARY_BY, TIME_ZONE],
  answers: [
    answered(200, 'The periods.', envelope(list(ref('HistoryPeriod')), SUMMARY_META), {
      'a day': dataBody([periodView(EXAMPLE_PERIOD, EXAMPLE_DAYS)], summaryMeta(EXAMPLE_SUMMARY_QUERY)),
      'nothing reported': dataBody(
        [periodView(EXAMPLE_EMPTY_PERIOD, null)],
        summaryMeta({ ...EXAMPLE_SUMMARY_QUERY, by: 'total' }),
      ),
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
