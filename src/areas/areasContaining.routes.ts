import { scopeMask } from '../access/scopes.ts';
import { EXAMPLE_POINT } from '../devices/deviceExamples.ts';
import { isLatLng } from '../geo/latLng.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../http/answer.ts';
import {
  BATCH_BODY,
  BATCH_LIMITS,
  type BatchPoint,
  errorJson,
  OUT_OF_RANGE,
  READ_PROMPTLY,
  readBatchPoints,
} from '../http/batchPoints.ts';
import type { BulkCalls } from '../http/bulkCalls.ts';
import { CONTAINING_MAX } from '../http/bulkLimits.ts';
import { answered, dataBody } from '../http/openapi/body.ts';
import { envelope } from '../http/openapi/commonSchemas.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { integer, list, ref, shapeOf } from '../http/openapi/schema.ts';
import { parameterError, readChoice } from '../http/parameter.ts';
import { COORDINATES_MESSAGE, LAT, LNG } from '../http/parameters.ts';
import { parseDecimal } from '../http/query.ts';
import { type Call, JSON_BODY_BYTES, type Route } from '../http/route.ts';
import type { TextPieces } from '../http/textPieces.ts';
import type { AtOnce } from '../lib/atOnce.ts';
import type { JsonObject } from '../lib/jsonObject.ts';
import { Pace } from '../lib/pace.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { AreaCatalog } from './areaCatalog.memory.ts';
import { DISTANCE_M, external_id, id, name, type } from './areaOperations.ts';
import { AREA_TYPE } from './areaReads.routes.ts';

import { ContainingAreas } from './containingAreas.ts';

export const AREAS_CONTAINING: Operation = {
  id: 'areasContaining',
  tag: 'Areas',
  summary: 'Find the areas that contain a point',
  description: `Deepest inside first, then by id, at most ${CONTAINING_MAX}; \`meta.total\` counts all. By the same rule that produces entries and exits.`,
  parameters: [LAT, LNG, AREA_TYPE],
  answers: [
    answered(
      200,
      'The areas.',
      envelope(
        list(ref('ContainingArea')),
        shapeOf<{ total: number }>({ total: integer('How many areas contain the point.', { minimum: 0 }) }),
      ),
      {
        one: dataBody([{ area: { id, name, type, external_id }, distance_m: DISTANCE_M }], { total: 1 }),
        none: dataBody([], { total: 0 }),
      },
    ),
  ],
  errors: [['BAD_REQUEST', COORDINATES_MESSAGE], ['BAD_REQUEST', AREA_TYPE.errorMessage], 'TOO_COMPLEX'],
};

export const AREAS_CONTAINING_BATCH: Operation = {
  id: 'areasContainingBatch',
  tag: 'Areas',
  summary: 'Find the areas that contain each of many points',
  description: `Up to ${BATCH_LIMITS.points} points in one call, which counts as one in the limits. Areas are in the order of the single route, at most ${CONTAINING_MAX} for each point. ${READ_PROMPTLY}`,
  body: {
    ...BATCH_BODY,
    schema: ref('ContainingBatchInput'),
    examples: { positions: { points: [{ ref: 'van 12', ...EXAMPLE_POINT }, OUT_OF_RANGE] } },
  },
  answers: [
    answered(200, 'One item for each point, in the order sent.', envelope(list(ref('ContainingBatchItem'))), {
      positions: dataBody([
        { ref: 'van 12', areas: [{ id, external_id, distance_m: DISTANCE_M }] },
        { ref: OUT_OF_RANGE.ref, error: { code: 'BAD_REQUEST', message: COORDINATES_MESSAGE } },
      ]),
    }),
  ],
};

export interface AreasContainingPorts {
  readonly areas: AreaCatalog;
  readonly bulkCalls: BulkCalls;
  /** By account. */
  readonly atOnce: Pick<AtOnce<string | number>, 'run'>;
}

/** Which areas contain a point: one point, or up to 1 000. Answered from memory. */
export function areasContainingRoutes(ports: AreasContainingPorts): Route[] {
  return [
    {
      method: 'GET',
      path: '/areas/containing',
      scopes: scopeMask('read_areas'),
      versions: ['v3'],
      isPolled: true,
      describe: AREAS_CONTAINING,
      handle: (call) => containing(ports, call),
    },
    {
      method: 'POST',
      path: '/areas/containing/batch',
      scopes: scopeMask('read_areas'),
      versions: ['v3'],
      maxBodyBytes: JSON_BODY_BYTES,
      describe: AREAS_CONTAINING_BATCH,
      handle: ({ caller, body }) => {
        const points = readBatchPoints(body);
        if (!points.ok) return points.error;
        return ports.bulkCalls.answer(caller.accountId, (json) =>
          writeAll(json, ports.areas, caller.worldIds, points.value),
        );
      },
    },
  ];
}

function containing(
  { areas, bulkCalls, atOnce }: AreasContainingPorts,
  { caller, query }: Call,
): Answer | Promise<Answer> {
  const lat = parseDecimal(query['lat']);
  const lng = parseDecimal(query['lng']);
  if (lat === null || lng === null || !isLatLng(lat, lng)) {
    return errorAnswer('BAD_REQUEST', COORDINATES_MESSAGE);
  }
  const type = readChoice(query, AREA_TYPE);
  if (type === 'invalid') return parameterError(AREA_TYPE);
  const found = new ContainingAreas();
  const steps = found.find(areas.near(caller.worldIds, lat, lng), lat, lng, type, new Pace());
  // Nearly always the first step is the only one. Others take turns with other long computations.
  const answer = (isDone: boolean): Answer | Promise<Answer> =>
    isDone ? foundAnswer(found) : bulkCalls.run(caller.accountId, () => steps).then(() => foundAnswer(found));
  const isDone = atOnce.run(caller.accountId, () => steps.next().done === true);
  return isDone instanceof Promise ? isDone.then(answer) : answer(isDone);
}

function foundAnswer(found: ContainingAreas): Answer {
  const items = Array.from({ length: found.count }, (_, place) => {
    const { id, definition } = found.area(place);
    const { name, geometry, externalId } = definition;
    const area = JSON.stringify({ id, name, type: geometry.type, external_id: externalId });
    return `{"area":${area},"distance_m":${found.distanceM(place)}}`;
  });
  return jsonAnswer(`[${items.join(',')}]`, `{"total":${found.total}}`);
}

function* writeAll(
  json: TextPieces,
  areas: AreaCatalog,
  worldIds: readonly number[],
  points: readonly BatchPoint[],
): Steps<void> {
  const found = new ContainingAreas();
  const pace = new Pace();
  json.add('{"data":[');
  let seen = 0;
  for (const point of points) {
    json.add(`${seen === 0 ? '' : ','}{"ref":${point.refJson},`);
    const error =
      'errorJson' in point ? point.errorJson : yield* findAround(found, areas, worldIds, point.sent, pace);
    if (error === null) writeFound(json, found);
    else json.add(`"error":${error}}`);
    seen++;
    if (pace.isDue()) yield* pace.pause();
  }
  json.add('],"meta":{}}');
}

/** Finds the areas around a point as it was sent; returns the JSON text of what is wrong with it, or null. */
function* findAround(
  found: ContainingAreas,
  areas: AreaCatalog,
  worldIds: readonly number[],
  { lat, lng }: JsonObject,
  pace: Pace,
): Steps<string | null> {
  if (typeof lat !== 'number' || typeof lng !== 'number' || !isLatLng(lat, lng)) return INVALID_POINT;
  yield* found.find(areas.near(worldIds, lat, lng), lat, lng, null, pace);
  return null;
}

/** An external id is ASCII that JSON takes as it is: see externalId.ts. */
function writeFound(json: TextPieces, found: ContainingAreas): void {
  json.addAscii('"areas":[');
  for (let place = 0; place < found.count; place++) {
    const { id, definition } = found.area(place);
    const { externalId } = definition;
    json.addAscii(place === 0 ? '{"id":' : ',{"id":');
    json.addAscii(String(id));
    json.addAscii(externalId === null ? ',"external_id":null' : `,"external_id":"${externalId}"`);
    json.addAscii(',"distance_m":');
    json.addAscii(String(found.distanceM(place)));
    json.addAscii('}');
  }
  json.addAscii(found.total > found.count ? `],"total":${found.total}}` : ']}');
}

const INVALID_POINT = errorJson('BAD_REQUEST', COORDINATES_MESSAGE);
