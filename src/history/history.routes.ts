import { scopeMask } from '../access/scopes.ts';
import { EXAMPLE_VAN, ONE_DEVICE } from '../devices/deviceSchemas.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { type Answer, errorAnswer, listAnswer } from '../http/answer.ts';
import { answered, bodyOf, type Operation } from '../http/openapi/operation.ts';
import {
  integer,
  LATITUDE,
  LONGITUDE,
  number,
  page,
  ref,
  type Schema,
  SPEED_KMH,
  shapeOf,
  time,
} from '../http/openapi/schema.ts';
import { FROM, limitParameter, readLimit, TO, WINDOW_MESSAGE } from '../http/parameters.ts';
import { BOTH_VERSIONS, type Call, type ReadPorts, type Route } from '../http/route.ts';
import { formatIso } from '../lib/time.ts';
import { type HistoryPoint, selectHistory } from './newestPoints.sql.ts';
import { readHistoryCall } from './readHistoryCall.ts';

const HISTORY_LIMIT = limitParameter(1000, 500);

interface HistoryPorts extends ReadPorts {
  readonly fleet: Fleet;
}

/** Position history from Postgres, cut to the days that the reader's plan retains. */
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
  const asked = readHistoryCall(call);
  if (!asked.ok) return asked.error;
  const { imei, window } = asked.value;
  if (!fleet.has(caller.worldIds, imei)) return errorAnswer('DEVICE_NOT_FOUND');
  const limit = readLimit(call.query, HISTORY_LIMIT);
  const points = await selectHistory(reads(caller.accountId), caller.worldIds, imei, window, limit, nowMs);
  return listAnswer(points.map(historyView), { limit, offset: 0 });
}

function historyView(point: HistoryPoint) {
  return {
    latitude: point.lat,
    longitude: point.lng,
    speed_kmh: point.speedKmh,
    heading: point.heading,
    satellites: point.satellites,
    recorded_at: formatIso(point.recordedAtMs),
  };
}

export const HISTORY_SCHEMAS = {
  HistoryPoint: shapeOf<ReturnType<typeof historyView>>({
    latitude: LATITUDE,
    longitude: LONGITUDE,
    speed_kmh: SPEED_KMH,
    heading: number('Degrees, clockwise from north.', { minimum: 0, maximum: 360 }),
    satellites: integer('In use.', { minimum: 0 }),
    recorded_at: time('The GPS time of the point.'),
  }),
} as const satisfies Readonly<Record<string, Schema>>;

const { lat, lng, speedKmh, recordedAtMs } = EXAMPLE_VAN.position;
const EXAMPLE = historyView({ lat, lng, speedKmh, heading: 214, satellites: 11, recordedAtMs });

const GET_HISTORY: Operation = {
  id: 'getPositionHistory',
  tag: 'Devices',
  summary: 'Read the position history of a device',
  description:
    'Newest first. What lies further back than the plan of the account retains is left out. To read on, ask again with `to` at the time of the last point.',
  parameters: [FROM, TO, HISTORY_LIMIT],
  answers: [
    answered(200, 'Points of the history.', page(ref('HistoryPoint')), {
      points: bodyOf(listAnswer([EXAMPLE], { limit: 500, offset: 0 })),
    }),
  ],
  errors: [...ONE_DEVICE, ['BAD_REQUEST', WINDOW_MESSAGE]],
};
