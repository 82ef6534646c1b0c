import assert from 'node:assert/strict';
import { ringMeasures } from '../../src/geo/measure.ts';
import { doublePlanarArea, unwrapRing } from '../../src/geo/path.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';

type Rings = readonly (readonly LatLng[])[];

/** Equal but for the vertex that each ring starts with. */
export function assertSameRings(actual: Rings, expected: Rings): void {
  const plain = (rings: Rings) =>
    rings.map((ring) =>
      startingLeast(ring)
        .map(({ lng, lat }) => `${lng} ${lat}`)
        .join(', '),
    );
  assert.deepEqual(plain(actual), plain(expected));
}

function startingLeast(ring: readonly LatLng[]): LatLng[] {
  const least = ring.reduce((best, { lng, lat }, i) => {
    const other = ring[best]!;
    return lng < other.lng || (lng === other.lng && lat < other.lat) ? i : best;
  }, 0);
  return [...ring.slice(least), ...ring.slice(0, least)];
}

/** Counter-clockwise, as cutting makes it. */
export function turnedLeft(ring: readonly LatLng[]): readonly LatLng[] {
  const unwrapped = unwrapRing(ring);
  const left = unwrapped.pole
    ? unwrapped.turns === (unwrapped.pole === 'north' ? 1 : -1)
    : doublePlanarArea(unwrapped.lngs, unwrapped.lats) > 0;
  return left ? ring : ring.toReversed();
}

export const leftmost = (ring: readonly LatLng[]) => startingLeast(turnedLeft(ring));

export const oneNameOf = ({ lat, lng }: LatLng): LatLng => ({ lat, lng: lng === 180 ? -180 : lng });
export const oneName = (ring: readonly LatLng[]) => ring.map(oneNameOf);

/** A vertex on the antimeridian may come back under its other name. */
export const named = (ring: readonly LatLng[]) => (point: LatLng) =>
  Math.abs(point.lng) === 180
    ? (ring.find(({ lat, lng }) => lat === point.lat && Math.abs(lng) === 180) ?? point)
    : point;

export const sumOfAreas = (rings: Rings) =>
  rings.reduce((sum, ring) => sum + ringMeasures(unwrapRing(ring)).areaM2, 0);

export function assertClose(actual: number, expected: number, relative: number): void {
  assert.ok(Math.abs(actual - expected) <= relative * expected, `${actual} instead of ${expected}`);
}
