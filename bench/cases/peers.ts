import { Redis } from 'ioredis';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { findRedisServer, startRedis } from '../../test/support/redis.ts';
import type { BenchCase, CaseContext } from '../benchCase.ts';
import type { LoadResult } from '../measure/measureLoad.ts';
import { jaggedRing, polygonArea, storeAreas } from '../setup/areas.ts';
import { withPostgis } from '../setup/cluster.ts';
import { type MeasuredServer, measureInTurn, ownUsage, ratioOf, rowOf } from '../setup/measuredServer.ts';
import {
  containsPaths,
  containsQueries,
  nearestPaths,
  POLYGON_CENTRE,
  POLYGON_RADIUS_DEG,
  placeSource,
} from '../setup/places.ts';
import { startBenchService } from '../setup/service.ts';
import { createWorld } from '../setup/world.ts';
import { openWorker } from '../worker.ts';
import type { HttpLoad } from '../workers/httpLoad.ts';
import type { PeerQuestion, PeerReply } from '../workers/peerServer.ts';

const DEVICES = 100_000;
const SMOKE_DEVICES = 500;
const PATHS = 256;
const VERTICES = 2_000;
const RING = jaggedRing(VERTICES, POLYGON_CENTRE, POLYGON_RADIUS_DEG, 1);

export const peers: BenchCase = {
  about: 'the same questions to PostGIS and Redis behind Express',
  run: async (context) => {
    const { databaseUrl, say } = context;
    const devices = context.sizes?.at(-1) ?? (context.smoke ? SMOKE_DEVICES : DEVICES);
    if (findRedisServer() === null)
      return { kind: 'skipped', reason: 'there is no redis-server in PATH' } as const;
    const outcome = await withPostgis(process.env, async (postgisUrl) => {
      await fillPostgis(postgisUrl, devices, RING);
      const world = await createWorld({ databaseUrl, devices, spread: 'towns', seed: 1, say });
      const [areaId = 0] = await storeAreas(databaseUrl, [polygonArea('Bench', RING)]);
      const redis = await startRedis();
      await fillRedis(redis.url, devices);
      const service = await startBenchService(databaseUrl);
      try {
        const api = { url: `http://127.0.0.1:${service.port}`, headers: { 'X-API-Key': world.key } };
        return { devices, ...(await measure(context, { api, areaId, postgisUrl, redisUrl: redis.url })) };
      } finally {
        await service.stop();
        await redis.stop();
      }
    });
    if (outcome === null) {
      const reason = 'no PostGIS: FLEET_BENCH_POSTGIS_URL must name a server where it can be created';
      return { kind: 'skipped', reason } as const;
    }
    const { rows, metrics } = outcome;
    const size = `${devices} devices, a polygon of ${VERTICES} vertices`;
    return { kind: 'measured', size, rows, metrics } as const;
  },
};

interface Peers {
  readonly api: Pick<MeasuredServer, 'url' | 'headers'>;
  readonly areaId: number;
  readonly postgisUrl: string;
  readonly redisUrl: string;
}

async function measure(context: CaseContext, { api, areaId, postgisUrl, redisUrl }: Peers) {
  const load = openWorker<HttpLoad, LoadResult>(new URL('../workers/httpLoad.ts', import.meta.url));
  const postgis = await openPeer({ kind: 'postgis', databaseUrl: postgisUrl });
  const redis = await openPeer({ kind: 'redis', redisUrl });
  const asked = nearestPaths(PATHS);
  const queries = asked.map((path) => path.slice(path.indexOf('?')));
  const own = { ...api, usage: ownUsage };
  const row = (
    what: string,
    server: Omit<MeasuredServer, 'what' | 'paths' | 'rounds'>,
    paths: string[],
  ): MeasuredServer => ({
    what,
    ...server,
    paths,
    rounds: [],
  });
  const servers = {
    nearest: row('nearest', own, asked),
    postgisNearest: row(
      'PostGIS KNN, Express',
      postgis.server,
      queries.map((query) => `/nearest${query}`),
    ),
    redisNearest: row(
      'Redis GEOSEARCH, Express',
      redis.server,
      queries.map((query) => `/nearest${query}`),
    ),
    contains: row('contains, with the distance', own, containsPaths(areaId, PATHS)),
    postgisContains: row(
      'PostGIS ST_Contains, Express',
      postgis.server,
      containsQueries(PATHS).map((query) => `/contains/1${query}`),
    ),
  };
  try {
    await measureInTurn(load, Object.values(servers), context);
    const perSecond = (a: MeasuredServer, b: MeasuredServer) => ratioOf(a, b, (round) => round.perSecond);
    return {
      rows: Object.values(servers).map(rowOf),
      metrics: {
        nearest_of_postgis: perSecond(servers.nearest, servers.postgisNearest),
        nearest_of_redis: perSecond(servers.nearest, servers.redisNearest),
        contains_of_postgis: perSecond(servers.contains, servers.postgisContains),
      },
    };
  } finally {
    await Promise.all([load.close(), postgis.close(), redis.close()]);
  }
}

async function openPeer(question: PeerQuestion) {
  const worker = openWorker<PeerQuestion, PeerReply>(new URL('../workers/peerServer.ts', import.meta.url));
  const { port } = await worker.ask(question);
  const usage = () => worker.ask({ kind: 'usage' });
  return { server: { url: `http://127.0.0.1:${port}`, headers: {}, usage }, close: () => worker.close() };
}

const CHUNK = 10_000;

/** Stores the devices and one polygon in PostGIS. Throws when the server has no PostGIS. */
async function fillPostgis(url: string, devices: number, ring: readonly LatLng[]): Promise<void> {
  const sql = openSql(url, { maxConnections: 1, name: 'bench peer' });
  try {
    await sql.unsafe(`create extension postgis;
      create table bench_device (imei text primary key, name text, plate text, latitude float8, longitude float8,
        place geography(point));
      create table bench_area (id int primary key, shape geometry(polygon, 4326))`);
    const places = placesOf(devices);
    for (let at = 0; at < devices; at += CHUNK) {
      const end = Math.min(devices, at + CHUNK);
      const rows = Array.from({ length: end - at }, (_, n) => at + n);
      const list = (of: (n: number) => string | number) => `{${rows.map(of).join(',')}}`;
      await sql`
        insert into bench_device select imei, 'Vehicle ' || imei, 'RM ' || right(imei, 6), lat, lng, st_point(lng, lat)::geography
        from unnest(${list(simulatedImei)}::text[], ${list((n) => places[2 * n] as number)}::float8[],
          ${list((n) => places[2 * n + 1] as number)}::float8[]) as r (imei, lat, lng)`;
    }
    const closed = [...ring, ring[0] as LatLng].map(({ lat, lng }) => `${lng} ${lat}`).join(',');
    await sql`insert into bench_area values (1, st_geomfromtext(${`POLYGON((${closed}))`}, 4326))`;
    await sql.unsafe('create index on bench_device using gist (place)');
    await sql.unsafe('analyze bench_device; analyze bench_area');
  } finally {
    await sql.end();
  }
}

/** Stores the same devices in a sorted set of Redis. */
async function fillRedis(url: string, devices: number): Promise<void> {
  const redis = new Redis(url);
  const places = placesOf(devices);
  for (let at = 0; at < devices; at += CHUNK) {
    const args: (string | number)[] = [];
    for (let n = at; n < Math.min(devices, at + CHUNK); n++) {
      args.push(places[2 * n + 1] as number, places[2 * n] as number, simulatedImei(n));
    }
    await redis.geoadd('devices', ...args);
  }
  await redis.quit();
}

/** Latitudes and longitudes of the devices of createWorld with seed 1. */
function placesOf(devices: number): Float64Array {
  const place = placeSource('towns', 1);
  const places = new Float64Array(2 * devices);
  for (let n = 0; n < devices; n++) place(places.subarray(2 * n, 2 * n + 2));
  return places;
}
