import { scopeMask } from '../../../access/scopes.ts';
import { fail, ok } from '../../../base/result.ts';
import { type HistorySummaries, SUMMARY_LIMIT_MS } from '../../../flows/history/summarizeHistory.ts';
import type { Fleet } from '../../../memory/fleet.ts';
import { type Answer, dataAnswer, errorAnswer } from '../../answers/answer.ts';
import { periodView, summaryMeta } from '../../answers/historyViews.ts';
import { GET_HISTORY_SUMMARY } from '../../openapi/operations/historyOperations.ts';
import {
  readTimeZone,
  SUMMARY_BY,
  TIME_ZONE,
  TOO_MANY_POINTS,
  TOO_MANY_TRIPS,
} from '../../parameters/historyParameters.ts';
import { parameterError, readChoice } from '../../parameters/parameter.ts';
import type { Query } from '../../parameters/query.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../route.ts';
import { readHistoryCall } from './readHistoryCall.ts';

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
