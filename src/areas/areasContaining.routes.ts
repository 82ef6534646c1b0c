import { scopeMask } from '../access/scopes.ts';
import { isLatLng } from '../geo/latLng.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../http/answer.ts';
import { type BatchPoint, errorJson, readBatchPoints } from '../http/batchPoints.ts';
import type { BulkCalls } from '../http/bulkCalls.ts';
import { parameterError, readChoice } from '../http/parameter.ts';
import { AREA_TYPE, COORDINATES_MESSAGE } from '../http/parameters.ts';
import { parseDecimal } from '../http/query.ts';
import { type Call, JSON_BODY_BYTES, type Route } from '../http/route.ts';
import type { TextPieces } from '../http/textPieces.ts';
import type { AtOnce } from '../lib/atOnce.ts';
import type { JsonObject } from '../lib/jsonObject.ts';
import { Pace } from '../lib/pace.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { AreaCatalog } from './areaCatalog.memory.ts';
import { AREAS_CONTAINING, AREAS_CONTAINING_BATCH } from './bulkOperations.ts';
import { ContainingAreas } from './containingAreas.ts';

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
