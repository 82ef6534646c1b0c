import { seededRandom } from '../../test/support/seededRandom.ts';
import { jaggedRing, polygonArea, smallAreas, storeAreas } from '../areas.ts';
import type { BenchCase } from '../benchCase.ts';
import { runHttpCase } from '../httpCase.ts';

const VERTICES = [20, 200, 2_000];
const AREAS = 100_000;
const SMOKE_AREAS = 200;
const DEVICES = 1_000;
const CENTRE = { lat: 41.9, lng: 12.5 };
const RADIUS_DEG = 0.2;

export const bench: BenchCase = {
  about: 'whether a place is in an area and how far its edge is, over HTTP',
  run: async (context) => {
    const count = context.sizes?.at(-1) ?? (context.smoke ? SMOKE_AREAS : AREAS);
    const { databaseUrl, say } = context;
    const outcome = await runHttpCase(
      {
        route: '/api/v3/areas/:id/contains',
        redis: false,
        prepare: async (_world, paths) => {
          const polygons = VERTICES.map((n) => polygonArea(`${n}`, jaggedRing(n, CENTRE, RADIUS_DEG, 1)));
          const ids = await storeAreas(databaseUrl, polygons);
          await storeAreas(databaseUrl, smallAreas(count - ids.length), say);
          return VERTICES.map((n, at) => ({
            what: `contains, ${n} vertices`,
            paths: containsPaths(ids[at] as number, paths),
          }));
        },
        isGood: (data) => typeof data === 'object' && data !== null && 'inside' in data,
      },
      { ...context, sizes: [DEVICES] },
    );
    return outcome.kind === 'measured' ? { ...outcome, size: `${count} areas in memory` } : outcome;
  },
};

/** Evenly in and around the polygon: about half of the places are inside. */
function containsPaths(areaId: number, count: number): string[] {
  const random = seededRandom(7);
  const near = (degrees: number) => (degrees + 1.25 * RADIUS_DEG * (2 * random() - 1)).toFixed(6);
  return Array.from(
    { length: count },
    () => `/api/v3/areas/${areaId}/contains?lat=${near(CENTRE.lat)}&lng=${near(CENTRE.lng)}`,
  );
}
