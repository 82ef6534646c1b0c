import type { BenchCase } from '../benchCase.ts';
import { runHttpCase } from './httpCase.ts';
import { placeSource } from './places.ts';

const QUERY_SEED = 2;

/** k = 1 from places that are distributed like the devices. */
export function nearestCase({ about, redis }: { about: string; redis: boolean }): BenchCase {
  return {
    about,
    run: (context) =>
      runHttpCase(
        {
          route: '/api/v3/devices/nearest',
          redis,
          prepare: async (_world, paths) => [
            { what: redis ? 'nearest k=1, Redis' : 'nearest k=1', paths: nearestPaths(paths) },
          ],
          isGood: (data) => Array.isArray(data) && data.length === 1,
        },
        context,
      ),
  };
}

export function nearestPaths(count: number): string[] {
  const place = placeSource('towns', QUERY_SEED);
  const out = new Float64Array(2);
  return Array.from({ length: count }, () => {
    place(out);
    return `/api/v3/devices/nearest?lat=${out[0]?.toFixed(6)}&lng=${out[1]?.toFixed(6)}`;
  });
}
