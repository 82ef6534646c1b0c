import { seededRandom } from '../../test/support/seededRandom.ts';

/** The polygons that are asked for lie here and are about twice this wide. */
export const POLYGON_CENTRE = { lat: 41.9, lng: 12.5 };
export const POLYGON_RADIUS_DEG = 0.2;

/** Queries evenly in and around the polygon: about half of the places are inside. */
export function containsQueries(count: number): string[] {
  const random = seededRandom(7);
  const near = (degrees: number) => (degrees + 1.25 * POLYGON_RADIUS_DEG * (2 * random() - 1)).toFixed(6);
  return Array.from(
    { length: count },
    () => `?lat=${near(POLYGON_CENTRE.lat)}&lng=${near(POLYGON_CENTRE.lng)}`,
  );
}

export function containsPaths(areaId: number, count: number): string[] {
  return containsQueries(count).map((query) => `/api/v3/areas/${areaId}/contains${query}`);
}
