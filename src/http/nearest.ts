import { scopeMask } from '../access/scopes.ts';
import { isLatLng } from '../geometry/latLng.ts';
import type { Fleet } from '../memory/fleet.ts';
import { type Answer, errorAnswer, jsonAnswer } from './answer.ts';
import { nearDeviceJson } from './deviceJson.ts';
import { NEAREST_DEVICES } from './openapi/deviceOperations.ts';
import { readLimit } from './parameter.ts';
import { MAX_KM, NEAREST_LIMIT } from './parameters.ts';
import { isBlank, parseDecimal } from './query.ts';
import { BOTH_VERSIONS, type Call, type Route } from './route.ts';

/** No two points on Earth are farther apart than half its circumference: a wider radius is none at all. */
const HALF_CIRCUMFERENCE_KM = 20_038;

/** The devices nearest to a coordinate, by geodesic distance, from memory. */
export function nearestRoute(fleet: Fleet): Route {
  return {
    method: 'GET',
    path: '/devices/nearest',
    scopes: scopeMask('read_locations', 'read_devices'),
    versions: BOTH_VERSIONS,
    isPolled: true,
    describe: NEAREST_DEVICES,
    handle: (call) => nearest(fleet, call),
  };
}

function nearest(fleet: Fleet, { caller, query, nowMs }: Call): Answer {
  const { lat: latText, lng: lngText } = query;
  if (latText === undefined || lngText === undefined || isBlank(latText) || isBlank(lngText)) {
    return errorAnswer('COORDINATES_REQUIRED');
  }
  const lat = parseDecimal(latText);
  const lng = parseDecimal(lngText);
  if (lat === null || lng === null || !isLatLng(lat, lng)) return errorAnswer('INVALID_COORDINATES');
  const limit = readLimit(query, NEAREST_LIMIT);
  const maxKm = maxKmOf(query['max_km']);
  if (maxKm === 'invalid') return errorAnswer('BAD_REQUEST', MAX_KM.refusal);
  const maxM = maxKm === null || maxKm > HALF_CIRCUMFERENCE_KM ? Number.POSITIVE_INFINITY : maxKm * 1000;
  const found = fleet.near(caller.worldIds, lat, lng, limit, maxM);
  let data = '';
  for (const near of found) data += `${data === '' ? '[' : ','}${nearDeviceJson(near, nowMs)}`;
  const asked = `{"lat":${lat},"lng":${lng},"limit":${limit},"max_km":${maxKm}}`;
  return jsonAnswer(data === '' ? '[]' : `${data}]`, `{"query":${asked},"distance":"straight_line_km"}`);
}

function maxKmOf(text: string | undefined): number | null | 'invalid' {
  if (text === undefined || isBlank(text)) return null;
  const value = parseDecimal(text);
  return value !== null && value > 0 && Number.isFinite(value) ? value : 'invalid';
}
