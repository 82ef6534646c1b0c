import { scopeMask } from '../access/scopes.ts';
import { isLatLng } from '../geo/wgs84.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../http/answer.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { answered, dataBody } from '../http/openapi/operation.ts';
import {
  choice,
  envelope,
  integer,
  LATITUDE,
  LONGITUDE,
  list,
  nullable,
  number,
  ref,
  shapeOf,
} from '../http/openapi/schema.ts';
import {
  hasOneOf,
  isBlank,
  LAT,
  LNG,
  limitParameter,
  type Parameter,
  parseDecimal,
  readLimit,
} from '../http/parameters.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import type { AtOnce, WorkTurns } from '../lib/workTurns.ts';
import type { NearDevice } from './device.ts';
import { nearDeviceJson } from './device.ts';
import { EXAMPLE_NEAR, EXAMPLE_NOW_MS, EXAMPLE_POINT } from './deviceSchemas.ts';
import type { Fleet } from './fleet.memory.ts';
import { type DeviceFilter, FILTER_ERRORS, FILTERS, readFilter } from './living/deviceFilter.ts';
import type { NearQuestion } from './living/livingFleet.memory.ts';

export const NEAREST_LIMIT = limitParameter(50, 1);

export const MAX_KM = {
  name: 'max_km',
  in: 'query',
  required: false,
  description: 'Only devices within this many kilometres.',
  schema: { type: 'number', minimum: 0, exclusiveMinimum: true },
  errorMessage: 'max_km must be a positive number',
} as const satisfies Parameter & { errorMessage: string };

export const EXAMPLE_FOUND = [JSON.parse(nearDeviceJson(EXAMPLE_NEAR, EXAMPLE_NOW_MS))];

const NEAREST_DEVICES: Operation = {
  id: 'nearestDevices',
  tag: 'Devices',
  summary: 'Find the devices nearest to a coordinate',
  description:
    'Nearest first, by straight-line distance on the ellipsoid. Devices without a position are left out, and those that do not pass all filters: `limit` counts those that do. When there is none within reach, `data` is empty.',
  parameters: [LAT, LNG, NEAREST_LIMIT, MAX_KM, ...FILTERS],
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
        one: dataBody(EXAMPLE_FOUND, {
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
  errors: [
    'COORDINATES_REQUIRED',
    'INVALID_COORDINATES',
    ['BAD_REQUEST', MAX_KM.errorMessage],
    ...FILTER_ERRORS,
  ],
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
  readonly atOnce: AtOnce<string | number>;
}

/** The devices nearest to a coordinate, by geodesic distance, from memory. */
export function nearestRoute(ports: NearestPorts): Route {
  const places = new FairSemaphore<number>(LONG_SEARCHES);
  return {
    method: 'GET',
    path: '/devices/nearest',
    scopes: NEAREST_SCOPES,
    isOpenToGroups: true,
    versions: BOTH_VERSIONS,
    shedAs: 'poll',
    isFromMemory: true,
    describe: NEAREST_DEVICES,
    handle: (call) => nearest(ports, places, call),
  };
}

function nearest(ports: NearestPorts, places: FairSemaphore<number>, call: Call): Answer | Promise<Answer> {
  const { fleet, turns, atOnce } = ports;
  const { caller, query, nowMs } = call;
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
  const isFiltered = caller.worldIds.groups !== undefined || hasOneOf(query, FILTERS);
  const filter = isFiltered ? readFilter(query, caller.worldIds) : null;
  if (filter?.ok === false) return filter.error;
  const asked = `{"lat":${lat},"lng":${lng},"limit":${limit},"max_km":${maxKm}}`;
  if (filter !== null && filter.value !== null) {
    const question = { lat, lng, limit, maxM };
    const found = nearestPassing(ports, places, call, question, filter.value);
    return found instanceof Promise
      ? found.then((list) => foundAnswer(list, asked))
      : foundAnswer(found, asked);
  }
  const { accountId, worldIds } = caller;
  const answer = (list: string | null): Answer | Promise<Answer> => {
    if (list !== null) return foundAnswer(list, asked);
    return places
      .run(accountId, () => turns.run(accountId, fleet.nearInSteps(worldIds, lat, lng, limit, maxM)))
      .then((found) => foundAnswer(listJson(found, nowMs), asked));
  };
  const found = atOnce.run(accountId, () => {
    const near = fleet.near(worldIds, lat, lng, limit, maxM);
    return near === null ? null : listJson(near, nowMs);
  });
  return found instanceof Promise ? found.then(answer) : answer(found);
}

/** The JSON of the nearest devices that pass a filter. */
function nearestPassing(
  { fleet, turns, atOnce }: NearestPorts,
  places: FairSemaphore<number>,
  { caller, nowMs }: Call,
  question: NearQuestion,
  filter: DeviceFilter,
): string | Promise<string> {
  const { accountId, worldIds } = caller;
  const { living } = fleet;
  const atOnceJson = (): string | null => {
    const near = living.near(caller, question, filter, nowMs);
    return near === null ? null : listJson(near, nowMs);
  };
  const goOn = (list: string | null): string | Promise<string> => {
    const due = living.due(caller, filter, nowMs);
    if (list === null) {
      return places.run(accountId, async () => {
        if (due !== null) await turns.run(accountId, due);
        const json = due === null ? null : atOnceJson();
        if (json !== null) return json;
        return listJson(
          await turns.run(accountId, living.nearInSteps(worldIds, question, filter, nowMs)),
          nowMs,
        );
      });
    }
    // For the questions to come.
    if (due !== null) void turns.run(accountId, due);
    return list;
  };
  const found = atOnce.run(accountId, atOnceJson);
  return found instanceof Promise ? found.then(goOn) : goOn(found);
}

/** The radius of a search in metres; null: no bound. */
export function maxMetres(maxKm: number | null): number {
  return maxKm === null || maxKm > HALF_CIRCUMFERENCE_KM ? Number.POSITIVE_INFINITY : maxKm * 1000;
}

function foundAnswer(list: string, asked: string): Answer {
  return jsonAnswer(list, `{"query":${asked},"distance":"straight_line_km"}`);
}

export function listJson(found: readonly NearDevice[], nowMs: number): string {
  let json = '';
  for (const near of found) json += `${json === '' ? '[' : ','}${nearDeviceJson(near, nowMs)}`;
  return json === '' ? '[]' : `${json}]`;
}

function maxKmOf(text: string | undefined): number | null | 'invalid' {
  if (text === undefined || isBlank(text)) return null;
  const value = parseDecimal(text);
  return value !== null && value > 0 && Number.isFinite(value) ? value : 'invalid';
}
