import { scopeMask } from '../../../access/scopes.ts';
import { ok } from '../../../base/result.ts';
import type { Fleet } from '../../../memory/fleet.ts';
import { selectHistory } from '../../../store/history/newestPoints.ts';
import { type Answer, listAnswer } from '../../answers/answer.ts';
import { historyView } from '../../answers/views.ts';
import { GET_HISTORY } from '../../openapi/operations/historyOperations.ts';
import { readLimit } from '../../parameters/parameter.ts';
import { HISTORY_LIMIT } from '../../parameters/parameters.ts';
import type { ReadPorts } from '../ports.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../route.ts';
import { readHistoryCall } from './readHistoryCall.ts';

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
  const { caller, nowMs } = call;
  const asked = readHistoryCall(fleet, call, (query) => ok(readLimit(query, HISTORY_LIMIT)));
  if (!asked.ok) return asked.error;
  const { device, window, own: limit } = asked.value;
  const { imei } = device.fields;
  const points = await selectHistory(reads(caller.accountId), caller.worldIds, imei, window, limit, nowMs);
  return listAnswer(points.map(historyView), { limit, offset: 0 });
}
