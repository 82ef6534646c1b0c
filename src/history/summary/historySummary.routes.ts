import { scopeMask } from '../../access/scopes.ts';
import type { Fleet } from '../../devices/fleet.memory.ts';
import { ONE_DEVICE } from '../../devices/imei.ts';
import { type Answer, dataAnswer, errorAnswer } from '../../http/answer.ts';
import type { Operation } from '../../http/openapi/operation.ts';
import { answered, dataBody } from '../../http/openapi/operation.ts';
import { envelope, list, ref } from '../../http/openapi/schema.ts';
import { FROM, parameterError, readChoice, TO, WINDOW_MESSAGE } from '../../http/parameters.ts';
import type { Query } from '../../http/query.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../../http/route.ts';
import { fail, ok } from '../../lib/result.ts';
import { EXAMPLE_DAY, EXAMPLE_SUMMARY, NO_HISTORY } from '../history.routes.ts';
import {
  readTimeZone,
  SUMMARY_BY,
  TIME_ZONE,
  TOO_MANY_POINTS,
  TOO_MANY_TRIPS,
} from '../historyParameters.ts';
import { periodView, SUMMARY_META, summaryMeta } from '../historySchemas.ts';
import { readHistoryCall } from '../readHistoryCall.ts';
import { type HistorySummaries, SUMMARY_LIMIT_MS } from './summarizeHistory.ts';

export const GET_HISTORY_SUMMARY: Operation = {
  id: 'getHistorySummary',
  tag: 'Devices',
  summary: 'Read what a device did: in all, by day or by trip',
  description:
    'Oldest first. `total` is one period. `day` gives every day of `tz` from that of the first point to that of the last. `trip` gives what lies between parkings, from the last point of one to the first point of the next; a parking is 120 seconds or more under 5 km/h. Noise of a parked vehicle is no distance. More than 10 minutes without a point are a gap, which is neither moving nor parked nor a distance. What lies further back than the plan of the account retains is left out, and what lies outside of `from` and `to` is not looked at.',
  parameters: [FROM, TO, SUMMARY_BY, TIME_ZONE],
  answers: [
    answered(200, 'The periods.', envelope(list(ref('HistoryPeriod')), SUMMARY_META), {
      'a day': dataBody([periodView(EXAMPLE_DAY)], summaryMeta(EXAMPLE_SUMMARY)),
      'nothing reported': dataBody(
        [periodView(NO_HISTORY)],
        summaryMeta({ ...EXAMPLE_SUMMARY, by: 'total' }),
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

/** For the pages that are on their way when the summary gives up. */
const GRACE_MS = 5_000;

export interface HistorySummaryPorts {
  readonly fleet: Fleet;
  readonly summaries: HistorySummaries;
}

/** What a device did in a time: as a whole, by day or by trip. */
export function historySummaryRoute(ports: HistorySummaryPorts): Route {
  return {
    method: 'GET',
    path: '/devices/:imei/history/summary',
    scopes: scopeMask('read_history_summary'),
    versions: BOTH_VERSIONS,
    deadlineMs: SUMMARY_LIMIT_MS + GRACE_MS,
    describe: GET_HISTORY_SUMMARY,
    handle: (call) => summary(ports, call),
  };
}

async function summary({ fleet, summaries }: HistorySummaryPorts, call: Call): Promise<Answer> {
  const { caller } = call;
  const asked = readHistoryCall(fleet, call, readPeriods);
  if (!asked.ok) return asked.error;
  const { device, window, own } = asked.value;
  const request = { by: own.by, days: own.zone.days, ...window.sent };
  const periods = await summaries.summarize(caller, device.fields.id, request, window);
  if (periods === 'gone') return errorAnswer('DEVICE_NOT_FOUND');
  if (periods === 'too_many_points') return errorAnswer('BAD_REQUEST', TOO_MANY_POINTS);
  if (periods === 'too_many_trips') return errorAnswer('BAD_REQUEST', TOO_MANY_TRIPS);
  return dataAnswer(periods.map(periodView), summaryMeta({ ...request, tz: own.zone.name }));
}

function readPeriods(query: Query) {
  const by = readChoice(query, SUMMARY_BY) ?? 'total';
  if (by === 'invalid') return fail(parameterError(SUMMARY_BY));
  const zone = readTimeZone(query);
  return zone === 'invalid' ? fail(parameterError(TIME_ZONE)) : ok({ by, zone });
}
