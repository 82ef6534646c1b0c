import type { BenchCase } from '../benchCase.ts';
import { jaggedRing, polygonArea, smallAreas, storeAreas } from '../setup/areas.ts';
import { containsPaths, POLYGON_CENTRE, POLYGON_RADIUS_DEG } from '../setup/containsPaths.ts';
import { runHttpCase } from '../setup/httpCase.ts';

const VERTICES = [20, 200, 2_000];
const AREAS = 100_000;
const SMOKE_AREAS = 200;
const DEVICES = 1_000;

export const bench: BenchCase = {
  about: 'whether an area contains a place, and the distance to its edge, over HTTP',
  run: async (context) => {
    const count = context.sizes?.at(-1) ?? (context.smoke ? SMOKE_AREAS : AREAS);
    const { databaseUrl, say } = context;
    const outcome = await runHttpCase(
      {
        route: '/api/v3/areas/:id/contains',
        redis: false,
        prepare: async (_world, paths) => {
          const polygons = VERTICES.map((n) =>
            polygonArea(`${n}`, jaggedRing(n, POLYGON_CENTRE, POLYGON_RADIUS_DEG, 1)),
          );
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
