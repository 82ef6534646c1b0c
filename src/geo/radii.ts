import { ECCENTRICITY_SQUARED } from './surfacePoint.ts';
import { EQUATORIAL_RADIUS_M, RADIANS_PER_DEGREE } from './wgs84.ts';

/** Radius of curvature of the WGS84 meridian at a latitude, in metres: d(distance) per radian of latitude. */
export function meridianRadiusM(lat: number): number {
  const w = flatteningTerm(lat);
  return (EQUATORIAL_RADIUS_M * (1 - ECCENTRICITY_SQUARED)) / (w * Math.sqrt(w));
}

/** Radius of the parallel at a latitude, in metres: d(distance) per radian of longitude. */
export function parallelRadiusM(lat: number): number {
  return normalRadiusM(lat) * Math.cos(lat * RADIANS_PER_DEGREE);
}

/** Radius of curvature across the meridian (prime vertical), in metres. */
export function normalRadiusM(lat: number): number {
  return EQUATORIAL_RADIUS_M / Math.sqrt(flatteningTerm(lat));
}

function flatteningTerm(lat: number): number {
  const sinLat = Math.sin(lat * RADIANS_PER_DEGREE);
  return 1 - ECCENTRICITY_SQUARED * sinLat * sinLat;
}
