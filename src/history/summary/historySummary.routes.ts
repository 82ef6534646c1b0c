import { scopeMask } from '../../access/scopes.ts';
import type { Fleet } from '../../devices/fleet.memory.ts';
import { type Answer, dataAnswer, errorAnswer } from '../../http/answer.ts';
import { parameterError, readChoice } from '../../http/parameter.ts';
import type { Query } from '../../http/query.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../../http/route.ts';
import { fail, ok } from '../../lib/result.ts';
import { GET_HISTORY_SUMMARY } from '../historyOperations.ts';
import {
  readTimeZone,
  SUMMARY_BY,
  TIME_ZONE,
  TOO_MANY_POINTS,
  TOO_MANY_TRIPS,
} from '../historyParameters.ts';
import { periodView, summaryMeta } from '../historyViews.ts';
import { readHistoryCall } from '../readHistoryCall.ts';
import { type HistorySummaries, SUMMARY_LIMIT_MS } from './summarizeHistory.ts';

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
