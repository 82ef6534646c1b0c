import { scopeMask } from '../access/scopes.ts';
import type { Fleet } from '../memory/fleet.ts';
import { selectHistory } from '../store/positions.ts';
import { type Answer, errorAnswer, listAnswer } from './answer.ts';
import { refuseImei } from './imei.ts';
import { GET_HISTORY } from './openapi/deviceOperations.ts';
import { readLimit } from './parameter.ts';
import { HISTORY_LIMIT, WINDOW_REFUSAL } from './parameters.ts';
import type { ReadPorts } from './ports.ts';
import { windowOf } from './query.ts';
import { BOTH_VERSIONS, type Call, type Route } from './route.ts';
import { historyView } from './views.ts';

const DAY_MS = 86_400_000;
/** The latest instant that ISO 8601 can write with four digits: an open end. */
const END_OF_TIME_MS = 253_402_300_799_999;

interface HistoryPorts extends ReadPorts {
  readonly fleet: Fleet;
}

/** Position history from Postgres, cut to what the reader's plan retains. */
export function historyRoute(ports: HistoryPorts): Route {
  return {
    method: 'GET',
    path: '/devices/:imei/history',
    scopes: scopeMask('read_history'),
    versions: BOTH_VERSIONS,
    describe: GET_HISTORY,
    handle: (call) => history(ports, call),
  };
}

async function history({ reads, fleet }: HistoryPorts, call: Call): Promise<Answer> {
  const { caller, query, nowMs } = call;
  const imei = call.params['imei'] ?? '';
  const refusal = refuseImei(imei);
  if (refusal !== null) return refusal;
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_REFUSAL);
  const limit = readLimit(query, HISTORY_LIMIT);
  if (fleet.device(caller.worldIds, imei) === undefined) return errorAnswer('DEVICE_NOT_FOUND');
  const retainedFromMs = nowMs - caller.historyDays * DAY_MS;
  const points = await selectHistory(
    reads(caller.accountId),
    caller.worldIds,
    imei,
    {
      fromMs: Math.max(window.fromMs ?? retainedFromMs, retainedFromMs),
      toMs: window.toMs ?? END_OF_TIME_MS,
    },
    limit,
  );
  return listAnswer(points.map(historyView), { limit, offset: 0 });
}
