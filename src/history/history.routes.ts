import { scopeMask } from '../access/scopes.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { ONE_DEVICE } from '../devices/imeiParameter.ts';
import { type Answer, listAnswer } from '../http/answer.ts';
import { answered, bodyOf } from '../http/openapi/body.ts';
import { page } from '../http/openapi/commonSchemas.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { ref } from '../http/openapi/schema.ts';
import { readLimit } from '../http/parameter.ts';
import { FROM, TO, WINDOW_MESSAGE } from '../http/parameters.ts';
import type { ReadPorts } from '../http/ports.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import { formatIso } from '../lib/isoTime.ts';
import { ok } from '../lib/result.ts';
import { EXAMPLE_HISTORY } from './historyExamples.ts';
import { HISTORY_LIMIT } from './historyParameters.ts';
import type { HistoryPoint } from './newestPoints.sql.ts';

import { selectHistory } from './newestPoints.sql.ts';
import { readHistoryCall } from './readHistoryCall.ts';

export const GET_HISTORY: Operation = {
  id: 'getPositionHistory',
  tag: 'Devices',
  summary: 'Read the position history of a device',
  description:
    'Newest first. What lies further back than the plan of the account retains is left out. To read on, ask again with `to` at the time of the last point.',
  parameters: [FROM, TO, HISTORY_LIMIT],
  answers: [
    answered(200, 'Points of the history.', page(ref('HistoryPoint')), {
      points: bodyOf(listAnswer([historyView(EXAMPLE_HISTORY)], { limit: 500, offset: 0 })),
    }),
  ],
  errors: [...ONE_DEVICE, ['BAD_REQUEST', WINDOW_MESSAGE]],
};

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

export function historyView(point: HistoryPoint) {
  return {
    latitude: point.lat,
    longitude: point.lng,
    speed_kmh: point.speedKmh,
    heading: point.heading,
    satellites: point.satellites,
    recorded_at: formatIso(point.recordedAtMs),
  };
}
