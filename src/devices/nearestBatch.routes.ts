import { isLatLng } from '../geo/latLng.ts';
import { validationAnswer } from '../http/answer.ts';
import {
  BATCH_BODY,
  BATCH_LIMITS,
  type BatchPoint,
  errorJson,
  OUT_OF_RANGE,
  READ_PROMPTLY,
  readBatchPoints,
} from '../http/bulk/batchPoints.ts';
import type { BulkCalls } from '../http/bulk/bulkCalls.ts';
import { BATCH_DEVICES_MAX } from '../http/bulk/bulkLimits.ts';
import type { TextPieces } from '../http/bulk/textPieces.ts';
import { ERRORS } from '../http/errors.ts';
import { answered, dataBody } from '../http/openapi/body.ts';
import { envelope } from '../http/openapi/commonSchemas.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { choice, list, ref, shapeOf } from '../http/openapi/schema.ts';
import { JSON_BODY_BYTES, type Route } from '../http/route.ts';
import type { FieldError } from '../lib/fieldError.ts';
import { isMissing, type JsonObject } from '../lib/parseJson.ts';
import type { Steps } from '../lib/workTurns.ts';
import { Pace } from '../lib/workTurns.ts';
import { EXAMPLE_NEAR, EXAMPLE_NOW_MS, EXAMPLE_POINT } from './deviceExamples.ts';
import { nearDeviceJson } from './deviceJson.ts';
import { nearestView } from './deviceViews.ts';
import type { Fleet } from './fleet.memory.ts';
import type { NearDevice } from './device.ts';
import { MAX_KM, maxMetres, NEAREST_LIMIT, NEAREST_SCOPES } from './nearest.routes.ts';

export const NEAREST_BATCH: Operation = {
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
            { ref: 'stop 17', devices: [nearestView(EXAMPLE_NEAR, EXAMPLE_NOW_MS)] },
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

export const TOO_MANY_DEVICES = {
  field: 'points',
  code: 'LIMIT_REACHED',
  message: `the limits of all points together are more than ${BATCH_DEVICES_MAX} devices; ask for fewer, or in several calls`,
} as const satisfies FieldError;

export interface NearestBatchPorts {
  readonly fleet: Fleet;
  readonly bulkCalls: BulkCalls;
}

/** The devices nearest to each of up to 1 000 coordinates: for each exactly what the single route answers. */
export function nearestBatchRoute({ fleet, bulkCalls }: NearestBatchPorts): Route {
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

/** Reads a point by the rules of the single route: see nearest.ts. */
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
  json.add(CLOSING);
}

const CLOSING = '],"meta":{"distance":"straight_line_km"}}';

function listJson(found: readonly NearDevice[], nowMs: number): string {
  let json = '';
  for (const near of found) json += `${json === '' ? '[' : ','}${nearDeviceJson(near, nowMs)}`;
  return json === '' ? '[]' : `${json}]`;
}
