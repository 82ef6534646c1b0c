import type { LatLng } from './latLng.ts';
import type { Ring } from './ring.ts';
import { RADIANS_PER_DEGREE } from './wgs84.ts';

/**
 * The centroid of a polygon, on the map of longitude and latitude (PostGIS' ST_Centroid(geometry)); lng -180 to 180.
 * It may lie outside of a bent shape. Around a pole that map has no middle: there the centroid is the direction of the
 * area's mean normal, computed from the boundary alone.
 */
export function ringCentroid(ring: Ring): LatLng {
  return ring.pole ? polarCentroid(ring) : planarCentroid(ring);
}

function planarCentroid({ lngs, lats }: Ring): LatLng {
  // Relative to a vertex, so that small shapes keep their digits.
  const lng0 = lngs[0]!;
  const lat0 = lats[0]!;
  let doubleArea = 0;
  let east = 0;
  let north = 0;
  for (let i = 2; i < lngs.length; i++) {
    const ax = lngs[i - 1]! - lng0;
    const ay = lats[i - 1]! - lat0;
    const bx = lngs[i]! - lng0;
    const by = lats[i]! - lat0;
    const cross = ax * by - bx * ay;
    doubleArea += cross;
    east += (ax + bx) * cross;
    north += (ay + by) * cross;
  }
  const lng = lng0 + east / (3 * doubleArea);
  return { lat: lat0 + north / (3 * doubleArea), lng: lng > 180 ? lng - 360 : lng };
}

/** On the unit sphere the vector area inside a closed curve is half the sum of the cross products along it. */
function polarCentroid({ lngs, lats, pole, turns }: Ring): LatLng {
  const sum = { x: 0, y: 0, z: 0 };
  let from = normalAt(lats[0]!, lngs[0]!);
  for (let i = 1; i < lngs.length; i++) {
    const dLng = lngs[i]! - lngs[i - 1]!;
    const dLat = lats[i]! - lats[i - 1]!;
    const steps = Math.ceil(Math.max(Math.abs(dLng), Math.abs(dLat)));
    for (let k = 1; k <= steps; k++) {
      const to = normalAt(lats[i - 1]! + (k / steps) * dLat, lngs[i - 1]! + (k / steps) * dLng);
      sum.x += from.y * to.z - from.z * to.y;
      sum.y += from.z * to.x - from.x * to.z;
      sum.z += from.x * to.y - from.y * to.x;
      from = to;
    }
  }
  // Eastward around the north pole the inside is on the left, and the sum points out of it.
  const sign = pole === 'north' ? turns : -turns;
  return {
    lat: Math.atan2(sign * sum.z, Math.hypot(sum.x, sum.y)) / RADIANS_PER_DEGREE,
    lng: Math.atan2(sign * sum.y, sign * sum.x) / RADIANS_PER_DEGREE,
  };
}

function normalAt(lat: number, lng: number): { x: number; y: number; z: number } {
  const phi = lat * RADIANS_PER_DEGREE;
  const lambda = lng * RADIANS_PER_DEGREE;
  return { x: Math.cos(phi) * Math.cos(lambda), y: Math.cos(phi) * Math.sin(lambda), z: Math.sin(phi) };
}
