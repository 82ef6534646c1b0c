import { scopeMask } from '../../../access/scopes.ts';
import type { Fleet } from '../../../memory/fleet.ts';
import { selectHistory } from '../../../store/history/newestPoints.ts';
import { type Answer, errorAnswer, listAnswer } from '../../answers/answer.ts';
import { historyView } from '../../answers/views.ts';
import { GET_HISTORY } from '../../openapi/operations/historyOperations.ts';
import { historyWindowOf } from '../../parameters/historyWindow.ts';
import { imeiError } from '../../parameters/imei.ts';
import { readLimit } from '../../parameters/parameter.ts';
import { HISTORY_LIMIT, WINDOW_MESSAGE } from '../../parameters/parameters.ts';
import type { ReadPorts } from '../ports.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../route.ts';

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
  const error = imeiError(imei);
  if (error !== null) return error;
  const window = historyWindowOf(query, caller, nowMs);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_MESSAGE);
  const limit = readLimit(query, HISTORY_LIMIT);
  if (fleet.device(caller.worldIds, imei) === undefined) return errorAnswer('DEVICE_NOT_FOUND');
  const points = await selectHistory(reads(caller.accountId), caller.worldIds, imei, window, limit, nowMs);
  return listAnswer(points.map(historyView), { limit, offset: 0 });
}
