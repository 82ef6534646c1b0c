import type { Ring } from '../../src/geo/path.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';

type Position = [lng: number, lat: number];

/** `intersection` of polygon-clipping or polyclip-ts. */
export type Intersect = (subject: Position[][], clip: Position[][]) => Position[][][];

/**
 * The contender of cutRing: cuts a ring at the antimeridian by intersecting it with each copy of the map that it
 * reaches into. Parts are rings without the closing repetition. Not for a ring around a pole, whose path is open.
 */
export function clipRing(intersect: Intersect, { lngs, lats }: Ring): LatLng[][] {
  const subject = [lngs.map((lng, i): Position => [lng, lats[i]!])];
  const east = Math.max(...lngs);
  const parts: LatLng[][] = [];
  for (let shift = 0; shift - 180 < east; shift += 360) {
    for (const polygon of intersect(subject, mapCopy(shift))) {
      for (const ring of polygon) {
        parts.push(ring.slice(0, -1).map(([lng, lat]) => ({ lat, lng: lng - shift })));
      }
    }
  }
  return parts;
}

function mapCopy(shift: number): Position[][] {
  const [west, east] = [shift - 180, shift + 180];
  return [
    [
      [west, -90],
      [east, -90],
      [east, 90],
      [west, 90],
      [west, -90],
    ],
  ];
}
