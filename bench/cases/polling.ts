import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { adminOf } from '../../test/support/postgres/admin.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { BenchCase, CaseContext, CaseOutcome } from '../benchCase.ts';
import { jaggedRing, polygonArea, smallAreas, storeAreas } from '../setup/areas.ts';
import { openBenchSql } from '../setup/cluster.ts';
import { runHttpCase } from '../setup/httpCase.ts';
import { containsPaths, nearestPaths, POLYGON_CENTRE, POLYGON_RADIUS_DEG } from '../setup/places.ts';

// The routes that customers poll, over HTTP.

const NEAREST = '/api/v3/devices/nearest';
const isOneDevice = (data: unknown): boolean => Array.isArray(data) && data.length === 1;

export const nearest: BenchCase = {
  about: 'the nearest device over HTTP, limits and versions in this process',
  run: (context) => runNearest(context, false),
};

export const nearestRedis: BenchCase = {
  about: 'the nearest device over HTTP, authorized through Redis',
  run: (context) => runNearest(context, true),
};

function runNearest(context: CaseContext, redis: boolean): Promise<CaseOutcome> {
  const what = redis ? 'nearest k=1, Redis' : 'nearest k=1';
  const prepare = async (_world: unknown, paths: number) => [{ what, paths: nearestPaths(paths) }];
  return runHttpCase({ route: NEAREST, redis, prepare, isGood: isOneDevice }, context);
}

/** Ten devices for each account. */
const ACCOUNTS = 10_000;
const SMOKE_ACCOUNTS = 50;

export const nearestTenants: BenchCase = {
  about: 'nearest k=1 for many small accounts',
  run: (context) => {
    const accounts = context.smoke ? SMOKE_ACCOUNTS : ACCOUNTS;
    const what = `nearest k=1, ${accounts} accounts`;
    const prepare = async (_world: unknown, paths: number) => {
      const keys = await splitAmong(context.databaseUrl, accounts);
      return [{ what, paths: nearestPaths(paths), keys }];
    };
    return runHttpCase({ route: NEAREST, prepare, isGood: isOneDevice }, context);
  },
};

/** Keys used in turn: more than fit into the first-level cache of a processor. */
const KEYS = 256;

/** Distributes the devices of a world among new accounts. Returns one key for each of the first accounts. */
async function splitAmong(databaseUrl: string, accounts: number): Promise<string[]> {
  await using sql = openBenchSql(databaseUrl);
  await sql.begin(async (tx) => {
    await tx`
      with made as (insert into world select from generate_series(1, ${accounts}::int) returning id)
      insert into account (email, name, world_id)
      select 'tenant' || row_number() over () || '@example.com', 'Tenant', id from made`;
    await tx`
      with owner as (
        select world_id, row_number() over (order by id) - 1 as n from account where email like 'tenant%'
      )
      update device d set world_id = owner.world_id from owner where owner.n = d.id % ${accounts}::int`;
  });
  await sql.unsafe('analyze device');
  const admin = adminOf(databaseUrl);
  const keys: string[] = [];
  for (let n = 1; n <= Math.min(KEYS, accounts); n++)
    keys.push((await admin.key(`tenant${n}@example.com`)).key);
  return keys;
}

export const location: BenchCase = {
  about: 'the latest location of a device over HTTP',
  run: (context) =>
    runHttpCase(
      {
        route: '/api/v3/devices/:imei/location',
        prepare: async ({ deviceIds }, count) => {
          const random = seededRandom(3);
          const imei = () => simulatedImei(Math.floor(random() * deviceIds.length));
          const paths = Array.from({ length: count }, () => `/api/v3/devices/${imei()}/location`);
          return [{ what: 'location', paths }];
        },
        isGood: (data) => typeof data === 'object' && data !== null && 'latitude' in data,
      },
      context,
    ),
};

const PAGE = 50;

export const devices: BenchCase = {
  about: 'pages of 50 of the device list over HTTP',
  run: (context) =>
    runHttpCase(
      {
        route: '/api/v3/devices',
        prepare: async ({ deviceIds }, count) => {
          const random = seededRandom(4);
          const offset = () => Math.floor(random() * (deviceIds.length - PAGE));
          const path = () => `/api/v3/devices?limit=${PAGE}&offset=${offset()}`;
          const paths = Array.from({ length: count }, path);
          return [{ what: `devices, pages of ${PAGE}`, paths }];
        },
        isGood: (data) => Array.isArray(data) && data.length === PAGE,
      },
      context,
    ),
};

const VERTICES = [20, 200, 2_000];
const AREAS = 100_000;
const SMOKE_AREAS = 200;
const DEVICES = 1_000;

export const contains: BenchCase = {
  about: 'whether an area contains a place, and the distance to its edge, over HTTP',
  run: async (context) => {
    const count = context.sizes?.at(-1) ?? (context.smoke ? SMOKE_AREAS : AREAS);
    const { databaseUrl, say } = context;
    const outcome = await runHttpCase(
      {
        route: '/api/v3/areas/:id/contains',
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
