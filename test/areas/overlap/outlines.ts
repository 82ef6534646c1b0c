import { type AreaGeometry, toVertices } from '../../../src/areas/area.ts';
import { type Outline, outlineOf, overlapM2 } from '../../../src/areas/overlap/overlap.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';

export type Pair = readonly [lat: number, lng: number];

const toPoints = (pairs: readonly Pair[]) => toVertices(pairs.map(([lat, lng]) => ({ lat, lng })));
export const circle = (lat: number, lng: number, radiusM: number): AreaGeometry => ({
  type: 'circle',
  center: { lat, lng },
  radiusM,
});
export const polygon = (...pairs: readonly Pair[]): AreaGeometry => ({
  type: 'polygon',
  points: toPoints(pairs),
});
export const track = (bufferM: number, ...pairs: readonly Pair[]): AreaGeometry => ({
  type: 'polyline',
  points: toPoints(pairs),
  bufferM,
});

export const outline = (geometry: AreaGeometry): Outline => inOneGo(outlineOf(geometry));
export const common = (a: Outline, b: Outline): number => inOneGo(overlapM2(a, b));

/** The corners of a simple polygon around a centre. Longitudes may pass 180°. */
export function star(random: () => number, corners: number, [lat, lng]: Pair, size: number): Pair[] {
  return Array.from({ length: corners }, (_, n): Pair => {
    const angle = ((n + 0.1 + 0.8 * random()) / corners) * 2 * Math.PI;
    const reach = size * (0.1 + 0.9 * random());
    return [lat + reach * Math.sin(angle), lng + reach * Math.cos(angle)];
  });
}

export const TEETH = 124;
export const BACK = 0.02;

/** A comb a degree wide, whose teeth lie along the parallels, or along the meridians. */
export function comb(isUpright: boolean): Pair[] {
  const pairs: Pair[] = [];
  for (let n = 0; n < TEETH; n++) {
    const [low, high] = [n / TEETH, (n + 0.45) / TEETH];
    pairs.push([low, BACK], [low, 1], [high, 1], [high, BACK]);
  }
  pairs.push([1, BACK], [1, 0], [0, 0]);
  return isUpright ? pairs.map(([lat, lng]): Pair => [lng, lat]) : pairs;
}
