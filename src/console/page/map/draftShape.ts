import type { AreaBody } from '../areaDraft.ts';
import type { LatLng } from '../types.ts';
import { destination, distanceM } from './areaShapes.ts';

/** What of a draft can be dragged: a vertex by its number, the centre of a circle, or its rim. */
export type Handle = number | 'center' | 'rim';

/** Six decimals of a degree are a tenth of a metre. */
const DECIMALS = 6;
const EAST_DEG = 90;

/** Every handle and where it is. */
export function handlesOf({ type, center, radius_m, points }: AreaBody): [Handle, LatLng][] {
  if (type === 'polygon' || type === 'polyline') return points.map((point, index) => [index, point]);
  if (center === null) return [];
  const rim: [Handle, LatLng][] = radius_m === null ? [] : [['rim', destination(center, radius_m, EAST_DEG)]];
  return [...rim, ['center', center]];
}

/** The draft after a click: one vertex more, or the centre there. */
export function clicked({ type, points }: AreaBody, at: LatLng): Partial<AreaBody> {
  const isOfPoints = type === 'polygon' || type === 'polyline';
  return isOfPoints ? { points: [...points, plain(at)] } : { center: plain(at) };
}

/** The draft after a handle was dragged there. */
export function dragged({ center, points }: AreaBody, handle: Handle, to: LatLng): Partial<AreaBody> {
  if (handle === 'center') return { center: plain(to) };
  if (handle === 'rim')
    return center === null ? {} : { radius_m: Math.max(1, Math.round(distanceM(center, to))) };
  return { points: points.with(handle, plain(to)) };
}

function plain({ lat, lng }: LatLng): LatLng {
  const round = (degrees: number): number => Number(degrees.toFixed(DECIMALS));
  return { lat: round(lat), lng: round(lng - 360 * Math.round(lng / 360)) };
}
