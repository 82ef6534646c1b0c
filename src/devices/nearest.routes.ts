import { scopeMask } from '../access/scopes.ts';
import { isLatLng } from '../geo/latLng.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../http/answer.ts';
import { answered, dataBody } from '../http/openapi/body.ts';
import { envelope, LATITUDE, LONGITUDE } from '../http/openapi/commonSchemas.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { choice, integer, list, nullable, number, ref, shapeOf } from '../http/openapi/schema.ts';
import { limitParameter, type Parameter, readLimit } from '../http/parameters/parameter.ts';
import { LAT, LNG } from '../http/parameters/parameters.ts';
import { isBlank, parseDecimal } from '../http/parameters/query.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import type { AtOnce, WorkTurns } from '../lib/workTurns.ts';
import { EXAMPLE_NEAR, EXAMPLE_NOW_MS, EXAMPLE_POINT } from './deviceExamples.ts';
import { nearDeviceJson } from './deviceJson.ts';
import { nearestView } from './deviceViews.ts';

import type { Fleet } from './fleet.memory.ts';
import type { NearDevice } from './device.ts';

export const NEAREST_LIMIT = limitParameter(50, 1);

export const MAX_KM = {
  name: 'max_km',
  in: 'query',
  required: false,
  description: 'Only devices within so many kilometres.',
  schema: { type: 'number', minimum: 0, exclusiveMinimum: true },
  errorMessage: 'max_km must be a positive number',
} as const satisfies Parameter & { errorMessage: string };

export const NEAREST_DEVICES: Operation = {
  id: 'nearestDevices',
  tag: 'Devices',
  summary: 'Find the devices nearest to a coordinate',
  description:
    'Nearest first, by straight-line distance on the ellipsoid. Devices without a position are left out. When there is none within reach, `data` is empty.',
  parameters: [LAT, LNG, NEAREST_LIMIT, MAX_KM],
  answers: [
    answered(
      200,
      'The nearest devices.',
      envelope(
        list(ref('NearDevice')),
        shapeOf<{ query: object; distance: string }>({
          query: shapeOf<{ lat: number; lng: number; limit: number; max_km: number | null }>(
            {
              lat: LATITUDE,
              lng: LONGITUDE,
              limit: integer(undefined, { minimum: NEAREST_LIMIT.min, maximum: NEAREST_LIMIT.max }),
              max_km: nullable(number()),
            },
            { description: 'The parameters as they were used.' },
          ),
          distance: choice(['straight_line_km']),
        }),
      ),
      {
        one: dataBody([nearestView(EXAMPLE_NEAR, EXAMPLE_NOW_MS)], {
          query: { ...EXAMPLE_POINT, limit: 1, max_km: null },
          distance: 'straight_line_km',
        }),
        'none within max_km': dataBody([], {
          query: { ...EXAMPLE_POINT, limit: 1, max_km: 0.5 },
          distance: 'straight_line_km',
        }),
      },
    ),
  ],
  errors: ['COORDINATES_REQUIRED', 'INVALID_COORDINATES', ['BAD_REQUEST', MAX_KM.errorMessage]],
};

/** No two points on Earth are farther apart than half its circumference: a wider radius is none at all. */
const HALF_CIRCUMFERENCE_KM = 20_038;

/** Limits for searches that take many turns: an account runs one at a time, and further ones wait. */
const LONG_SEARCHES = { running: 64, runningPerKey: 1, waiting: 2_000, waitingPerKey: 50 };

export const NEAREST_SCOPES = scopeMask('read_locations', 'read_devices');

export interface NearestPorts {
  readonly fleet: Fleet;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
  /** By account. */
  readonly atOnce: Pick<AtOnce<string | number>, 'run'>;
}

/** The devices nearest to a coordinate, by geodesic distance, from memory. */
export function nearestRoute(ports: NearestPorts): Route {
  const places = new FairSemaphore<number>(LONG_SEARCHES);
  return {
    method: 'GET',
    path: '/devices/nearest',
    scopes: NEAREST_SCOPES,
    versions: BOTH_VERSIONS,
    isPolled: true,
    describe: NEAREST_DEVICES,
    handle: (call) => nearest(ports, places, call),
  };
}

function nearest(
  { fleet, turns, atOnce }: NearestPorts,
  places: FairSemaphore<number>,
  { caller, query, nowMs }: Call,
): Answer | Promise<Answer> {
  const { lat: latText, lng: lngText } = query;
  if (latText === undefined || lngText === undefined || isBlank(latText) || isBlank(lngText)) {
    return errorAnswer('COORDINATES_REQUIRED');
  }
  const lat = parseDecimal(latText);
  const lng = parseDecimal(lngText);
  if (lat === null || lng === null || !isLatLng(lat, lng)) return errorAnswer('INVALID_COORDINATES');
  const limit = readLimit(query, NEAREST_LIMIT);
  const maxKm = maxKmOf(query['max_km']);
  if (maxKm === 'invalid') return errorAnswer('BAD_REQUEST', MAX_KM.errorMessage);
  const maxM = maxMetres(maxKm);
  const asked = `{"lat":${lat},"lng":${lng},"limit":${limit},"max_km":${maxKm}}`;
  const { accountId, worldIds } = caller;
  const answer = (found: readonly NearDevice[] | null): Answer | Promise<Answer> => {
    if (found !== null) return foundAnswer(found, asked, nowMs);
    return places
      .run(accountId, () => turns.run(accountId, fleet.nearInSteps(worldIds, lat, lng, limit, maxM)))
      .then((found) => foundAnswer(found, asked, nowMs));
  };
  const found = atOnce.run(accountId, () => fleet.near(worldIds, lat, lng, limit, maxM));
  return found instanceof Promise ? found.then(answer) : answer(found);
}

/** The radius of a search in metres; null: no bound. */
export function maxMetres(maxKm: number | null): number {
  return maxKm === null || maxKm > HALF_CIRCUMFERENCE_KM ? Number.POSITIVE_INFINITY : maxKm * 1000;
}

function foundAnswer(found: readonly NearDevice[], asked: string, nowMs: number): Answer {
  let data = '';
  for (const near of found) data += `${data === '' ? '[' : ','}${nearDeviceJson(near, nowMs)}`;
  return jsonAnswer(data === '' ? '[]' : `${data}]`, `{"query":${asked},"distance":"straight_line_km"}`);
}

function maxKmOf(text: string | undefined): number | null | 'invalid' {
  if (text === undefined || isBlank(text)) return null;
  const value = parseDecimal(text);
  return value !== null && value > 0 && Number.isFinite(value) ? value : 'invalid';
}
