import { scopeMask } from '../access/scopes.ts';
import { EXAMPLE_VAN, ONE_DEVICE } from '../devices/deviceSchemas.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { answered, type Operation } from '../http/openapi/operation.ts';
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
import { emptyColumns } from './codec/pointColumns.ts';
import { type HistoryPoint, historyPage } from './historyPage.ts';
import { selectHistory } from './newestPoints.sql.ts';
import { NEVER_PACKED_MS } from './packedPoints.sql.ts';
import { readHistoryCall } from './readHistoryCall.ts';

const HISTORY_LIMIT = limitParameter(1000, 500);

interface HistoryPorts extends ReadPorts {
  /** Reads that a replica may answer. */
  readonly heavyReads: ReadPorts['reads'];
  readonly fleet: Fleet;
}

/** Position history from Postgres, cut to the days that the reader's plan retains. */
export function historyRoute(ports: HistoryPorts): Route {
  return {
    method: 'GET',
    path: '/devices/:imei/history',
    scopes: scopeMask('read_history'),
    isOpenToGroups: true,
    versions: BOTH_VERSIONS,
    shedAs: 'bulk',
    describe: GET_HISTORY,
    handle: (call) => history(ports, call),
  };
}

async function history({ reads, heavyReads, fleet }: HistoryPorts, call: Call): Promise<Answer> {
  const { caller, nowMs } = call;
  const asked = readHistoryCall(call);
  if (!asked.ok) return asked.error;
  const { imei, window } = asked.value;
  if (!fleet.has(caller.worldIds, imei)) return errorAnswer('DEVICE_NOT_FOUND');
  const limit = readLimit(call.query, HISTORY_LIMIT);
  // A page of recent points is read by an index, which takes no longer than to ask how far a replica is.
  const isClosed = window.toMs <= nowMs - NEVER_PACKED_MS;
  const sql = (isClosed ? heavyReads : reads)(caller.accountId);
  const points = await selectHistory(sql, caller.worldIds, imei, window, limit, nowMs);
  return { status: 200, body: historyPage(points, limit) };
}

export const HISTORY_SCHEMAS = {
  HistoryPoint: shapeOf<HistoryPoint>({
    latitude: LATITUDE,
    longitude: LONGITUDE,
    speed_kmh: SPEED_KMH,
    heading: number('Degrees, clockwise from north.', { minimum: 0, maximum: 360 }),
    satellites: integer('In use.', { minimum: 0 }),
    recorded_at: time('The GPS time of the point.'),
  }),
} as const satisfies Readonly<Record<string, Schema>>;

function exampleOf({ lat, lng, speedKmh, recordedAtMs }: typeof EXAMPLE_VAN.position): unknown {
  const points = emptyColumns(1);
  points.lats[0] = lat;
  points.lngs[0] = lng;
  points.speedsKmh[0] = speedKmh;
  points.headings[0] = 214;
  points.satellites[0] = 11;
  points.recordedAtMs[0] = recordedAtMs;
  return JSON.parse(historyPage([points], HISTORY_LIMIT.fallback).toString());
}

const GET_HISTORY: Operation = {
  id: 'getPositionHistory',
  tag: 'Devices',
  summary: 'Read the position history of a device',
  description:
    'Newest first. What lies further back than the plan of the account retains is left out. To read on, ask again with `to` at the time of the last point.',
  parameters: [FROM, TO, HISTORY_LIMIT],
  answers: [
    answered(200, 'Points of the history.', page(ref('HistoryPoint')), {
      points: exampleOf(EXAMPLE_VAN.position),
    }),
  ],
  errors: [...ONE_DEVICE, ['BAD_REQUEST', WINDOW_MESSAGE]],
};
