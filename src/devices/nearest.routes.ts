import { scopeMask } from '../access/scopes.ts';
import { isLatLng } from '../geo/wgs84.ts';
import { type Answer, ERRORS, errorAnswer, jsonAnswer, validationAnswer } from '../http/answer.ts';
import {
  BATCH_BODY,
  BATCH_DEVICES_MAX,
  BATCH_FIELD_ERROR,
  BATCH_LIMITS,
  type BatchPoint,
  type BulkCalls,
  batchInput,
  batchItem,
  errorJson,
  OUT_OF_RANGE,
  READ_PROMPTLY,
  readBatchPoints,
  type TextPieces,
} from '../http/bulkCalls.ts';
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
  isBlank,
  LAT,
  LNG,
  limitParameter,
  type Parameter,
  parseDecimal,
  readLimit,
} from '../http/parameters.ts';
import { BOTH_VERSIONS, type Call, JSON_BODY_BYTES, type Route } from '../http/route.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import { isMissing, type JsonObject } from '../lib/parseText.ts';
import type { FieldError } from '../lib/result.ts';
import { type AtOnce, Pace, type Steps, type WorkTurns } from '../lib/workTurns.ts';
import type { NearDevice } from './device.ts';
import { nearDeviceJson } from './device.ts';
import { EXAMPLE_NEAR, EXAMPLE_NOW_MS, EXAMPLE_POINT } from './deviceSchemas.ts';
import type { Fleet } from './fleet.memory.ts';

const NEAREST_LIMIT = limitParameter(50, 1);

const MAX_KM = {
  name: 'max_km',
  in: 'query',
  required: false,
  description: 'Only devices within this many kilometres.',
  schema: { type: 'number', minimum: 0, exclusiveMinimum: true },
  errorMessage: 'max_km must be a positive number',
} as const satisfies Parameter & { errorMessage: string };

const EXAMPLE_FOUND = [JSON.parse(nearDeviceJson(EXAMPLE_NEAR, EXAMPLE_NOW_MS))];

const NEAREST_DEVICES: Operation = {
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
  errors: ['COORDINATES_REQUIRED', 'INVALID_COORDINATES', ['BAD_REQUEST', MAX_KM.errorMessage]],
};

/** No two points on Earth are farther apart than half its circumference: a wider radius is none at all. */
const HALF_CIRCUMFERENCE_KM = 20_038;

/** Limits for searches that take many turns: an account runs one at a time, and further ones wait. */
const LONG_SEARCHES = { running: 64, runningPerKey: 1, waiting: 2_000, waitingPerKey: 50 };

const NEAREST_SCOPES = scopeMask('read_locations', 'read_devices');

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
    versions: BOTH_VERSIONS,
    isFromMemory: true,
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

/** The radius of a search in metres; null: no bound. */
function maxMetres(maxKm: number | null): number {
  return maxKm === null || maxKm > HALF_CIRCUMFERENCE_KM ? Number.POSITIVE_INFINITY : maxKm * 1000;
}

function foundAnswer(list: string, asked: string): Answer {
  return jsonAnswer(list, `{"query":${asked},"distance":"straight_line_km"}`);
}

function listJson(found: readonly NearDevice[], nowMs: number): string {
  let json = '';
  for (const near of found) json += `${json === '' ? '[' : ','}${nearDeviceJson(near, nowMs)}`;
  return json === '' ? '[]' : `${json}]`;
}

function maxKmOf(text: string | undefined): number | null | 'invalid' {
  if (text === undefined || isBlank(text)) return null;
  const value = parseDecimal(text);
  return value !== null && value > 0 && Number.isFinite(value) ? value : 'invalid';
}

export const NEAREST_BATCH_SCHEMAS = {
  NearestBatchInput: batchInput({
    limit: integer(`As in the single route: ${NEAREST_LIMIT.min} to ${NEAREST_LIMIT.max}, 1 without it.`),
    max_km: nullable(number('Only devices within this many kilometres.', { minimum: 0 })),
  }),
  NearestBatchItem: batchItem('devices', list(ref('NearDevice')), [
    'COORDINATES_REQUIRED',
    'INVALID_COORDINATES',
    'BAD_REQUEST',
  ]),
  BatchFieldError: BATCH_FIELD_ERROR,
};

const NEAREST_BATCH: Operation = {
  id: 'nearestDevicesBatch',
  tag: 'Devices',
  summary: 'Find the devices nearest to each of many coordinates',
  description: `Up to ${BATCH_LIMITS.points} points in one call, which counts as one in the limits. Each item is exactly what the single route answers for its point, or its error. The limits of all points together are at most ${BATCH_DEVICES_MAX} devices. ${READ_PROMPTLY}`,
  body: {
    ...BATCH_BODY,
    schema: ref('NearestBatchInput'),
    examples: {
      stops: { points: [{ ref: 'stop 17', ...EXAMPLE_POINT, limit: 1, max_km: 25 }, OUT_OF_RANGE] },
    },
  },
  answers: [
    answered(
      200,
      'One item for each point, in the order sent.',
      envelope(
        list(ref('NearestBatchItem')),
        shapeOf<{ distance: string }>({ distance: choice(['straight_line_km']) }),
      ),
      {
        stops: dataBody(
          [
            { ref: 'stop 17', devices: EXAMPLE_FOUND },
            {
              ref: OUT_OF_RANGE.ref,
              error: { code: 'INVALID_COORDINATES', message: ERRORS.INVALID_COORDINATES[1] },
            },
          ],
          { distance: 'straight_line_km' },
        ),
      },
    ),
  ],
};

const TOO_MANY_DEVICES = {
  field: 'points',
  code: 'LIMIT_REACHED',
  message: `the limits of all points together are more than ${BATCH_DEVICES_MAX} devices; ask for fewer, or in several calls`,
} as const satisfies FieldError;

/** The devices nearest to each of up to 1 000 coordinates: for each exactly what the single route answers. */
export function nearestBatchRoute({ fleet, bulkCalls }: { fleet: Fleet; bulkCalls: BulkCalls }): Route {
  return {
    method: 'POST',
    path: '/devices/nearest/batch',
    scopes: NEAREST_SCOPES,
    versions: ['v3'],
    maxBodyBytes: JSON_BODY_BYTES,
    describe: NEAREST_BATCH,
    handle: ({ caller, body, nowMs }) => {
      const points = readBatchPoints(body);
      if (!points.ok) return points.error;
      const questions = points.value.map(readQuestion);
      const devices = questions.reduce((sum, { limit }) => sum + limit, 0);
      if (devices > BATCH_DEVICES_MAX) return validationAnswer([TOO_MANY_DEVICES]);
      return bulkCalls.answer(caller.accountId, (json) =>
        writeAll(json, fleet, caller.worldIds, questions, nowMs),
      );
    },
  };
}

/** `limit` is 0 where nothing is asked because of an error. */
type Question = { readonly refJson: string; readonly limit: number } & (
  | { readonly lat: number; readonly lng: number; readonly maxM: number }
  | { readonly errorJson: string }
);

/** Reads a point by the rules of the single route. */
function readQuestion(point: BatchPoint): Question {
  const { refJson } = point;
  if ('errorJson' in point) return { refJson, limit: 0, errorJson: point.errorJson };
  const { lat, lng, limit, max_km: maxKm } = point.sent;
  const wrong = (json: string): Question => ({ refJson, limit: 0, errorJson: json });
  if (isMissing(lat) || isMissing(lng)) return wrong(errorJson('COORDINATES_REQUIRED'));
  if (typeof lat !== 'number' || typeof lng !== 'number' || !isLatLng(lat, lng)) {
    return wrong(errorJson('INVALID_COORDINATES'));
  }
  const hasReach = !isMissing(maxKm);
  if (hasReach && !(typeof maxKm === 'number' && maxKm > 0 && Number.isFinite(maxKm))) {
    return wrong(errorJson('BAD_REQUEST', MAX_KM.errorMessage));
  }
  return { refJson, limit: limitOf(limit), lat, lng, maxM: maxMetres(hasReach ? (maxKm as number) : null) };
}

function limitOf(sent: JsonObject[string]): number {
  const { min, max, fallback } = NEAREST_LIMIT;
  return typeof sent === 'number' ? Math.min(max, Math.max(min, Math.trunc(sent))) : fallback;
}

function* writeAll(
  json: TextPieces,
  fleet: Fleet,
  worldIds: readonly number[],
  questions: readonly Question[],
  nowMs: number,
): Steps<void> {
  const pace = new Pace();
  json.add('{"data":[');
  let seen = 0;
  for (const question of questions) {
    json.add(`${seen === 0 ? '' : ','}{"ref":${question.refJson},`);
    if ('errorJson' in question) {
      json.add(`"error":${question.errorJson}}`);
    } else {
      const { lat, lng, limit, maxM } = question;
      const found =
        fleet.near(worldIds, lat, lng, limit, maxM) ??
        (yield* fleet.nearInSteps(worldIds, lat, lng, limit, maxM));
      json.add(`"devices":${listJson(found, nowMs)}}`);
    }
    seen++;
    if (pace.isDue()) yield* pace.pause();
  }
  json.add('],"meta":{"distance":"straight_line_km"}}');
}
