import { scopeMask } from '../../../access/scopes.ts';
import type { AreaType } from '../../../areas/area.ts';
import { inOneGo, type Steps } from '../../../base/workTurns.ts';
import { isLatLng } from '../../../geometry/latLng.ts';
import type { Area } from '../../../memory/area.ts';
import type { AreaCatalog } from '../../../memory/areaCatalog.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../../answers/answer.ts';
import { AREAS_CONTAINING, AREAS_CONTAINING_BATCH } from '../../openapi/operations/bulkOperations.ts';
import { parameterError, readChoice } from '../../parameters/parameter.ts';
import { AREA_TYPE, COORDINATES_MESSAGE } from '../../parameters/parameters.ts';
import { parseDecimal } from '../../parameters/query.ts';
import { type Call, JSON_BODY_BYTES, type Route } from '../route.ts';
import { type BatchPoint, errorJson, readBatchPoints } from './batchPoints.ts';
import type { BulkCalls } from './bulkCalls.ts';
import { CONTAINING_MAX } from './bulkLimits.ts';
import type { TextPieces } from './textPieces.ts';

/** Candidates that are compared at once, and between two looks at the clock: a fraction of a millisecond. */
const CANDIDATES_PER_STEP = 20;
/** Points of a batch between two looks at the clock, when few areas are around them. */
const POINTS_PER_STEP = 20;

export interface AreasContainingPorts {
  readonly areas: AreaCatalog;
  readonly bulkCalls: BulkCalls;
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
  { areas, bulkCalls }: AreasContainingPorts,
  { caller, query }: Call,
): Answer | Promise<Answer> {
  const lat = parseDecimal(query['lat']);
  const lng = parseDecimal(query['lng']);
  if (lat === null || lng === null || !isLatLng(lat, lng)) {
    return errorAnswer('BAD_REQUEST', COORDINATES_MESSAGE);
  }
  const type = readChoice(query, AREA_TYPE);
  if (type === 'invalid') return parameterError(AREA_TYPE);
  const candidates = areas.near(caller.worldIds, lat, lng);
  if (candidates.length <= CANDIDATES_PER_STEP) return foundAnswer(inOneGo(find(candidates, lat, lng, type)));
  return bulkCalls.run(caller.accountId, () => find(candidates, lat, lng, type)).then(foundAnswer);
}

interface Containing {
  readonly area: Area;
  /** Metres to the boundary: 0 or less. */
  readonly distanceM: number;
}

interface Found {
  /** Deepest inside first, then by id; at most CONTAINING_MAX. */
  readonly areas: readonly Containing[];
  readonly total: number;
}

function* find(candidates: readonly Area[], lat: number, lng: number, type: AreaType | null): Steps<Found> {
  const found: Containing[] = [];
  let seen = 0;
  for (const area of candidates) {
    if (++seen % CANDIDATES_PER_STEP === 0) yield;
    if (type !== null && area.definition.geometry.type !== type) continue;
    if (!area.shape.contains(lat, lng)) continue;
    found.push({ area, distanceM: area.shape.signedDistanceM(lat, lng) });
  }
  found.sort((a, b) => a.distanceM - b.distanceM || a.area.id - b.area.id);
  return { areas: found.slice(0, CONTAINING_MAX), total: found.length };
}

function foundAnswer({ areas, total }: Found): Answer {
  const items = areas.map(({ area: { id, definition }, distanceM }) => {
    const { name, geometry, externalId } = definition;
    const area = JSON.stringify({ id, name, type: geometry.type, external_id: externalId });
    return `{"area":${area},"distance_m":${distanceM}}`;
  });
  return jsonAnswer(`[${items.join(',')}]`, `{"total":${total}}`);
}

function* writeAll(
  json: TextPieces,
  areas: AreaCatalog,
  worldIds: readonly number[],
  points: readonly BatchPoint[],
): Steps<void> {
  json.add('{"data":[');
  let seen = 0;
  for (const point of points) {
    const result =
      'errorJson' in point
        ? `"error":${point.errorJson}`
        : yield* answerPoint(areas, worldIds, point.sent['lat'], point.sent['lng']);
    json.add(`${seen === 0 ? '' : ','}{"ref":${point.refJson},${result}}`);
    if (++seen % POINTS_PER_STEP === 0) yield;
  }
  json.add('],"meta":{}}');
}

function* answerPoint(
  areas: AreaCatalog,
  worldIds: readonly number[],
  lat: unknown,
  lng: unknown,
): Steps<string> {
  if (typeof lat !== 'number' || typeof lng !== 'number' || !isLatLng(lat, lng)) return INVALID_POINT;
  const found = yield* find(areas.near(worldIds, lat, lng), lat, lng, null);
  const items = found.areas.map(({ area: { id, definition }, distanceM }) => {
    const { externalId } = definition;
    return `{"id":${id},"external_id":${externalId === null ? 'null' : `"${externalId}"`},"distance_m":${distanceM}}`;
  });
  const total = found.total > CONTAINING_MAX ? `,"total":${found.total}` : '';
  return `"areas":[${items.join(',')}]${total}`;
}

const INVALID_POINT = `"error":${errorJson('BAD_REQUEST', COORDINATES_MESSAGE)}`;
