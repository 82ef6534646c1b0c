import type { Worlds } from '../access/credentials.ts';
import { isLatLng } from '../geo/wgs84.ts';
import { type Answer, ERRORS, errorAnswer, validationAnswer } from '../http/answer.ts';
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
import { choice, envelope, integer, list, nullable, number, ref, shapeOf } from '../http/openapi/schema.ts';
import { jsonBody } from '../http/requestBody.ts';
import { JSON_BODY_BYTES, type RequestBody, type Route } from '../http/route.ts';
import { isJsonObject, isMissing, type JsonObject } from '../lib/parseText.ts';
import { type FieldError, fail, ok, type Result } from '../lib/result.ts';
import { Pace, type Steps } from '../lib/workTurns.ts';
import type { NearDevice } from './device.ts';
import { EXAMPLE_POINT } from './deviceSchemas.ts';
import type { Fleet } from './fleet.memory.ts';
import { type DeviceFilter, FILTER_ERRORS, filterSeen } from './living/deviceFilter.ts';
import { FILTER_SCHEMA, readFilterFields } from './living/filterFields.ts';
import type { Asker, NearQuestion } from './living/livingFleet.memory.ts';
import {
  EXAMPLE_FOUND,
  listJson,
  MAX_KM,
  maxMetres,
  NEAREST_LIMIT,
  NEAREST_SCOPES,
} from './nearest.routes.ts';

export const NEAREST_BATCH_SCHEMAS = {
  NearestBatchInput: batchInput(
    {
      limit: integer(`As in the single route: ${NEAREST_LIMIT.min} to ${NEAREST_LIMIT.max}, 1 without it.`),
      max_km: nullable(number('Only devices within this many kilometres.', { minimum: 0 })),
    },
    { filter: ref('DeviceFilter') },
  ),
  DeviceFilter: {
    ...FILTER_SCHEMA,
    description:
      'Only devices that pass all of these, for every point. As the parameters of the single route.',
  },
  NearestBatchItem: batchItem('devices', list(ref('NearDevice')), [
    'COORDINATES_REQUIRED',
    'INVALID_COORDINATES',
    'BAD_REQUEST',
  ]),
  BatchFieldError: BATCH_FIELD_ERROR,
};

const FILTER_MESSAGE = 'filter must be an object';

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
      'moving vans': {
        points: [{ ref: 'stop 17', ...EXAMPLE_POINT }],
        filter: { status: ['moving'], group: 'north', max_age_seconds: 300 },
      },
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
  errors: [['BAD_REQUEST', FILTER_MESSAGE], ...FILTER_ERRORS],
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
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'bulk',
    maxBodyBytes: JSON_BODY_BYTES,
    describe: NEAREST_BATCH,
    handle: ({ caller, body, nowMs }) => {
      const points = readBatchPoints(body);
      if (!points.ok) return points.error;
      const questions = points.value.map(readQuestion);
      const devices = questions.reduce((sum, { limit }) => sum + limit, 0);
      if (devices > BATCH_DEVICES_MAX) return validationAnswer([TOO_MANY_DEVICES]);
      const filter = readBatchFilter(body, caller.worldIds);
      if (!filter.ok) return filter.error;
      return bulkCalls.answer(caller.accountId, (json) =>
        writeAll(json, fleet, caller, questions, filter.value, nowMs),
      );
    },
  };
}

/** `filter` of a body whose points were read. */
function readBatchFilter(body: RequestBody | null, worlds: Worlds): Result<DeviceFilter | null, Answer> {
  const json = jsonBody(body);
  const sent = json.ok && isJsonObject(json.value) ? json.value['filter'] : null;
  if (isMissing(sent)) return ok(filterSeen(worlds, null));
  return isJsonObject(sent)
    ? readFilterFields(sent, worlds)
    : fail(errorAnswer('BAD_REQUEST', FILTER_MESSAGE));
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
  caller: Asker,
  questions: readonly Question[],
  filter: DeviceFilter | null,
  nowMs: number,
): Steps<void> {
  const { worldIds } = caller;
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
        filter === null
          ? (fleet.near(worldIds, lat, lng, limit, maxM) ??
            (yield* fleet.nearInSteps(worldIds, lat, lng, limit, maxM)))
          : yield* findPassing(fleet, caller, question, filter, nowMs);
      json.add(`"devices":${listJson(found, nowMs)}}`);
    }
    seen++;
    if (pace.isDue()) yield* pace.pause();
  }
  json.add('],"meta":{"distance":"straight_line_km"}}');
}

function* findPassing(
  { living }: Fleet,
  caller: Asker,
  question: NearQuestion,
  filter: DeviceFilter,
  nowMs: number,
): Steps<NearDevice[]> {
  const near = living.near(caller, question, filter, nowMs);
  const due = living.due(caller, filter, nowMs);
  // For this question too, if it takes long, and for those to come.
  if (due !== null) yield* due;
  if (near !== null && due === null) return near;
  return (
    living.near(caller, question, filter, nowMs) ??
    (yield* living.nearInSteps(caller.worldIds, question, filter, nowMs))
  );
}
