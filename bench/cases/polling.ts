import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { BenchCase } from '../benchCase.ts';
import { jaggedRing, polygonArea, smallAreas, storeAreas } from '../setup/areas.ts';
import { httpCase, runHttpCase } from '../setup/httpCase.ts';
import { containsPaths, nearestPaths, POLYGON_CENTRE, POLYGON_RADIUS_DEG } from '../setup/places.ts';
import { splitAmong } from '../setup/world.ts';

// The routes that customers poll, over HTTP.

const NEAREST = '/api/v3/devices/nearest';
const isOneDevice = (data: unknown): boolean => Array.isArray(data) && data.length === 1;

const nearestCase = (about: string, what: string, redis = false): BenchCase =>
  httpCase(about, {
    route: NEAREST,
    redis,
    prepare: async (_world, paths) => [{ what, paths: nearestPaths(paths) }],
    isGood: isOneDevice,
  });

export const nearest: BenchCase = nearestCase(
  'the nearest device over HTTP, limits and versions in this process',
  'nearest k=1',
);

export const nearestRedis: BenchCase = nearestCase(
  'the nearest device over HTTP, authorized through Redis',
  'nearest k=1, Redis',
  true,
);

const ACCOUNTS = 10_000;
const SMOKE_ACCOUNTS = 50;

export const nearestTenants: BenchCase = httpCase('nearest k=1 for many small accounts', {
  route: NEAREST,
  prepare: async (_world, paths, { databaseUrl, smoke }) => {
    const accounts = smoke ? SMOKE_ACCOUNTS : ACCOUNTS;
    const keys = await splitAmong(databaseUrl, accounts);
    return [{ what: `nearest k=1, ${accounts} accounts`, paths: nearestPaths(paths), keys }];
  },
  isGood: isOneDevice,
});

export const location: BenchCase = httpCase('the latest location of a device over HTTP', {
  route: '/api/v3/devices/:imei/location',
  prepare: async ({ deviceIds }, count) => {
    const random = seededRandom(3);
    const imei = () => simulatedImei(Math.floor(random() * deviceIds.length));
    const paths = Array.from({ length: count }, () => `/api/v3/devices/${imei()}/location`);
    return [{ what: 'location', paths }];
  },
  isGood: (data) => typeof data === 'object' && data !== null && 'latitude' in data,
});

const PAGE = 50;

export const devices: BenchCase = httpCase('pages of 50 of the device list over HTTP', {
  route: '/api/v3/devices',
  prepare: async ({ deviceIds }, count) => {
    const random = seededRandom(4);
    const offset = () => Math.floor(random() * (deviceIds.length - PAGE));
    const paths = Array.from({ length: count }, () => `/api/v3/devices?limit=${PAGE}&offset=${offset()}`);
    return [{ what: `devices, pages of ${PAGE}`, paths }];
  },
  isGood: (data) => Array.isArray(data) && data.length === PAGE,
});

const VERTICES = [20, 200, 2_000];
const AREAS = 100_000;
const SMOKE_AREAS = 200;
const DEVICES = 1_000;

export const contains: BenchCase = {
  about: 'whether an area contains a place, and the distance to its edge, over HTTP',
  run: async (context) => {
    const count = context.sizes?.at(-1) ?? (context.smoke ? SMOKE_AREAS : AREAS);
    const { databaseUrl, say } = context;
    const prepare = async (_world: unknown, paths: number) => {
      const ring = (vertices: number) => jaggedRing(vertices, POLYGON_CENTRE, POLYGON_RADIUS_DEG, 1);
      const ids = await storeAreas(
        databaseUrl,
        VERTICES.map((n) => polygonArea(`${n}`, ring(n))),
      );
      await storeAreas(databaseUrl, smallAreas(count - ids.length), say);
      return ids.map((id, n) => ({
        what: `contains, ${VERTICES[n]} vertices`,
        paths: containsPaths(id, paths),
      }));
    };
    const isGood = (data: unknown) => typeof data === 'object' && data !== null && 'inside' in data;
    const spec = { route: '/api/v3/areas/:id/contains', prepare, isGood };
    const outcome = await runHttpCase(spec, { ...context, sizes: [DEVICES] });
    return outcome.kind === 'measured' ? { ...outcome, size: `${count} areas in memory` } : outcome;
  },
};
