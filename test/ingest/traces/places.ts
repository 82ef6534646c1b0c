import type { AreaBody, Place } from './trace.ts';

type NamedBody = AreaBody & { readonly name: string };

/** In the middle of `depot`, and a kilometre away from it. */
export const INSIDE: Place = [41.9, 12.5];
export const OUTSIDE: Place = [41.91, 12.5];

/** 200 m around INSIDE. */
export function depot(fields: AreaBody = {}): NamedBody {
  return { name: 'depot', type: 'circle', center: latLng(INSIDE), radius_m: 200, ...fields };
}

export function circle(name: string, center: Place, radiusM: number, fields: AreaBody = {}): NamedBody {
  return { name, type: 'circle', center: latLng(center), radius_m: radiusM, ...fields };
}

export function polygon(name: string, points: readonly Place[], fields: AreaBody = {}): NamedBody {
  return { name, type: 'polygon', points: points.map(latLng), ...fields };
}

export function track(name: string, points: readonly Place[], fields: AreaBody = {}): NamedBody {
  return { name, type: 'polyline', points: points.map(latLng), ...fields };
}

export function place(name: string, center: Place, fields: AreaBody = {}): NamedBody {
  return { name, type: 'point', center: latLng(center), ...fields };
}

export function latLng([lat, lng]: Place): { lat: number; lng: number } {
  return { lat, lng };
}
