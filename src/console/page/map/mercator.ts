import type { LatLng } from '../types.ts';

/**
 * Places as whole numbers of 32 bits in Web Mercator: the world has 2^32 steps from west to east, so that the
 * difference of two places is the short way around, and 2^31 from north to south (steps of 1 to 2 cm).
 */
export interface Steps {
  readonly x: number;
  readonly y: number;
}

export const STEPS_X = 2 ** 32;
export const STEPS_Y = 2 ** 31;
/** Beyond it the map ends. */
const LAT_MAX = 85.051;

export function stepsOf({ lng, lat }: LatLng): Steps {
  const clamped = Math.max(-LAT_MAX, Math.min(LAT_MAX, lat));
  const y = (1 - Math.atanh(Math.sin((clamped * Math.PI) / 180)) / Math.PI) / 2;
  return { x: Math.round((lng / 360) * STEPS_X) | 0, y: Math.round(y * STEPS_Y) };
}

export function lngLatOf({ x, y }: Steps): LatLng {
  const lat = (Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / STEPS_Y))) * 180) / Math.PI;
  return { lng: (x / STEPS_X) * 360, lat };
}
