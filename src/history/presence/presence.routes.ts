import { scopeMask } from '../../access/scopes.ts';
import type { AreaCatalog } from '../../areas/areaCatalog.memory.ts';
import { shapeOf } from '../../areas/shape.ts';
import { distanceM } from '../../geo/distance.ts';
import { isLatLng } from '../../geo/latLng.ts';
import { type Answer, dataAnswer, errorAnswer } from '../../http/answer.ts';
import { parseId } from '../../http/id.ts';
import { readLimit } from '../../http/parameter.ts';
import { COORDINATES_MESSAGE, WINDOW_MESSAGE } from '../../http/parameters.ts';
import { isBlank, parseDecimal, type Query } from '../../http/query.ts';
import type { Call, Route } from '../../http/route.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { historyWindowOf } from '../historyWindow.ts';
import { presenceMeta, presenceView } from '../presenceViews.ts';
import { PRESENCE_LIMIT_MS, type Presences } from './findPresence.ts';
import type { Place } from './presence.ts';
import { FIND_PRESENCE } from './presenceOperation.ts';
import {
  AREA_ID_MESSAGE,
  PLACE_MESSAGE,
  PRESENCE_LIMIT,
  PRESENCE_SPAN_MAX_MS,
  PRESENCE_SPAN_MS,
  RADIUS_M,
  SPAN_MESSAGE,
  TOO_MANY_PRESENCE_POINTS,
  TOO_MUCH_PRESENCE_WORK,
} from './presenceParameters.ts';

/** For the pages that are on their way when the search gives up. */
const GRACE_MS = 5_000;

export interface PresenceRoutePorts {
  readonly areas: AreaCatalog;
  readonly presences: Presences;
}

/** Which devices were at a place in a time, by their stored points. */
export function presenceRoute(ports: PresenceRoutePorts): Route {
  return {
    method: 'GET',
    path: '/presence',
    scopes: scopeMask('read_history_summary'),
    versions: ['v3'],
    deadlineMs: PRESENCE_LIMIT_MS + GRACE_MS,
    describe: FIND_PRESENCE,
    handle: (call) => presence(ports, call),
  };
}

async function presence({ areas, presences }: PresenceRoutePorts, call: Call): Promise<Answer> {
  const { caller, query, nowMs } = call;
  const asked = readPlace(query);
  if (!asked.ok) return asked.error;
  const sent = historyWindowOf(query, caller, nowMs);
  if (sent === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_MESSAGE);
  const toMs = sent.sent.toMs ?? nowMs;
  const fromMs = sent.sent.fromMs ?? Math.max(sent.fromMs, toMs - PRESENCE_SPAN_MS);
  if (toMs - fromMs > PRESENCE_SPAN_MAX_MS) return errorAnswer('BAD_REQUEST', SPAN_MESSAGE);
  const limit = readLimit(query, PRESENCE_LIMIT);
  const place =
    'areaId' in asked.value ? placeOfArea(areas, caller.worldIds, asked.value.areaId) : asked.value;
  if (place === null) return errorAnswer('NOT_FOUND');
  const hasLeft = () => call.hasLeft?.() ?? false;
  const found = await presences.find(caller, place, { fromMs, toMs }, limit, hasLeft);
  if (found === 'too_many_points') return errorAnswer('BAD_REQUEST', TOO_MANY_PRESENCE_POINTS);
  if (found === 'too_much_work') return errorAnswer('BAD_REQUEST', TOO_MUCH_PRESENCE_WORK);
  if (found === 'left') return dataAnswer([]);
  return dataAnswer(
    found.devices.map((each) => presenceView(each, nowMs)),
    presenceMeta({ fromMs, toMs, limit }, found.total),
  );
}

/** A circle, or the id of an area. */
function readPlace(query: Query): Result<Place | { readonly areaId: number }, Answer> {
  const has = (name: string) => query[name] !== undefined && !isBlank(query[name]);
  const hasCircle = has('lat') || has('lng') || has(RADIUS_M.name);
  if (hasCircle === has('area_id')) return fail(errorAnswer('BAD_REQUEST', PLACE_MESSAGE));
  if (!hasCircle) {
    const areaId = parseId(query['area_id'] ?? '');
    return areaId === null ? fail(errorAnswer('BAD_REQUEST', AREA_ID_MESSAGE)) : ok({ areaId });
  }
  const lat = parseDecimal(query['lat']);
  const lng = parseDecimal(query['lng']);
  if (lat === null || lng === null || !isLatLng(lat, lng)) {
    return fail(errorAnswer('BAD_REQUEST', COORDINATES_MESSAGE));
  }
  const radiusM = parseDecimal(query[RADIUS_M.name]);
  if (radiusM === null || radiusM < 1 || radiusM > RADIUS_M.max) {
    return fail(errorAnswer('BAD_REQUEST', RADIUS_M.errorMessage));
  }
  return ok(circle(lat, lng, radiusM));
}

/** The closest point is the one nearest to the centre. */
function circle(lat: number, lng: number, radiusM: number): Place {
  const { contains, boxes } = shapeOf({ type: 'circle', center: { lat, lng }, radiusM });
  return { contains, boxes, closenessM: (pointLat, pointLng) => distanceM(lat, lng, pointLat, pointLng) };
}

/** The closest point is the one deepest inside. Null: the caller sees no such area. */
function placeOfArea(areas: AreaCatalog, worldIds: readonly number[], areaId: number): Place | null {
  const area = areas.area(worldIds, areaId);
  if (area === undefined) return null;
  const { shape } = area;
  return {
    contains: (lat, lng) => shape.contains(lat, lng),
    closenessM: (lat, lng) => shape.signedDistanceM(lat, lng),
    boxes: shape.boxes,
  };
}
