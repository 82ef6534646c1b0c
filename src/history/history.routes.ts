import { scopeMask } from '../access/scopes.ts';
import { historyView } from '../devices/deviceViews.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { type Answer, listAnswer } from '../http/answer.ts';
import { readLimit } from '../http/parameter.ts';
import { HISTORY_LIMIT } from '../http/parameters.ts';
import type { ReadPorts } from '../http/ports.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import { ok } from '../lib/result.ts';
import { GET_HISTORY } from './historyOperations.ts';
import { selectHistory } from './newestPoints.sql.ts';
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
