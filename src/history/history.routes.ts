import { scopeMask } from '../access/scopes.ts';
import { EXAMPLE_VAN } from '../devices/deviceViews.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { ONE_DEVICE } from '../devices/imei.ts';
import { type Answer, listAnswer } from '../http/answer.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { answered, bodyOf } from '../http/openapi/operation.ts';
import { page, ref } from '../http/openapi/schema.ts';
import { FROM, readLimit, TO, WINDOW_MESSAGE } from '../http/parameters.ts';
import type { ReadPorts } from '../http/route.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import { formatIso } from '../lib/isoTime.ts';
import { ok } from '../lib/result.ts';
import { HISTORY_LIMIT } from './historyParameters.ts';
import { type HistoryPoint, selectHistory } from './newestPoints.sql.ts';
import { readHistoryCall } from './readHistoryCall.ts';
import { emptyPeriod, type Period } from './summary/calendarLedger.ts';

const FROM_MS = Date.UTC(2026, 1, 28, 23);
const TO_MS = Date.UTC(2026, 2, 1, 23);
const { lat, lng, speedKmh } = EXAMPLE_VAN.position;

const EXAMPLE_HISTORY: HistoryPoint = {
  lat,
  lng,
  speedKmh: EXAMPLE_VAN.position.speedKmh,
  heading: 214,
  satellites: 11,
  recordedAtMs: EXAMPLE_VAN.position.recordedAtMs,
};

/** A day in Rome. */
export const EXAMPLE_SUMMARY = { fromMs: FROM_MS, toMs: TO_MS, by: 'day', tz: 'Europe/Rome' } as const;

export const EXAMPLE_DAY: Period = {
  fromMs: FROM_MS,
  toMs: TO_MS,
  points: 4_371,
  distanceM: 187_230,
  movingMs: 13_260_000,
  parkedMs: 29_940_000,
  gapMs: 43_180_000,
  maxSpeedKmh: 118.4,
  first: { recordedAtMs: Date.UTC(2026, 2, 1, 6, 12, 4), lat, lng, speedKmh },
  last: { recordedAtMs: Date.UTC(2026, 2, 1, 22, 59, 44), lat, lng, speedKmh: 0 },
};

export const NO_HISTORY: Period = emptyPeriod(FROM_MS, TO_MS);

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
