import { Redis } from 'ioredis';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';
import { arrayLiteral } from '../../src/postgres/sql.ts';
import { findRedisServer, startRedis } from '../../test/support/redis.ts';
import type { BenchCase, CaseContext, Part } from '../benchCase.ts';
import { usageNow } from '../measure/usage.ts';
import { jaggedRing, polygonArea, storeAreas } from '../setup/areas.ts';
import { openBenchSql, withPostgis } from '../setup/cluster.ts';
import {
  type MeasuredServer,
  measureInTurn,
  openHttpLoad,
  openServer,
  ratioOf,
  rowOf,
} from '../setup/measuredServer.ts';
import {
  containsPaths,
  containsQueries,
  nearestPaths,
  POLYGON_CENTRE,
  POLYGON_RADIUS_DEG,
  placesOf,
} from '../setup/places.ts';
import { startBenchService } from '../setup/service.ts';
import { createWorld } from '../setup/world.ts';
import type { PeerQuestion } from '../workers/peerServer.ts';

const DEVICES = 100_000;
const SMOKE_DEVICES = 500;
const PATHS = 256;
const VERTICES = 2_000;
const RING = jaggedRing(VERTICES, POLYGON_CENTRE, POLYGON_RADIUS_DEG, 1);

export const peers: BenchCase = {
  about: 'the same questions to PostGIS and Redis behind Express',
  run: async (context) => {
    const devices = context.sizes?.at(-1) ?? (context.smoke ? SMOKE_DEVICES : DEVICES);
    if (findRedisServer() === null) return { kind: 'skipped', reason: 'there is no redis-server in PATH' };
    const measured = await withPostgis(process.env, async (postgisUrl) => {
      await fillPostgis(postgisUrl, devices, RING);
      const world = await createWorld(context, devices);
      const [areaId = 0] = await storeAreas(context.databaseUrl, [polygonArea('Bench', RING)]);
      const redis = await startRedis();
      try {
        await fillRedis(redis.url, devices);
        await using service = await startBenchService(context.databaseUrl);
        const api = { url: service.url, headers: { 'X-API-Key': world.key } };
        return await measure(context, api, areaId, postgisUrl, redis.url);
      } finally {
        await redis.stop();
      }
    });
    const reason = 'no PostGIS: FLEET_BENCH_POSTGIS_URL must name a server where it can be created';
    if (measured === null) return { kind: 'skipped', reason };
    return { kind: 'measured', size: `${devices} devices, a polygon of ${VERTICES} vertices`, ...measured };
  },
};

async function measure(
  context: CaseContext,
  api: Pick<MeasuredServer, 'url' | 'headers'>,
  areaId: number,
  postgisUrl: string,
  redisUrl: string,
): Promise<Part> {
  await using load = openHttpLoad();
  const openPeer = (peer: PeerQuestion) => openServer('peerServer', peer);
  await using postgis = await openPeer({ kind: 'postgis', databaseUrl: postgisUrl });
  await using redis = await openPeer({ kind: 'redis', redisUrl });
  const asked = nearestPaths(PATHS);
  const nearest = asked.map((path) => `/nearest${path.slice(path.indexOf('?'))}`);
  const contains = containsQueries(PATHS).map((query) => `/contains/1${query}`);
  const own = { ...api, usage: async () => usageNow() };
  const row = (
    what: string,
    server: Pick<MeasuredServer, 'url' | 'usage'>,
    paths: string[],
  ): MeasuredServer => ({ what, headers: {}, ...server, paths, rounds: [] });
  const servers = {
    nearest: row('nearest', own, asked),
    postgisNearest: row('PostGIS KNN, Express', postgis, nearest),
    redisNearest: row('Redis GEOSEARCH, Express', redis, nearest),
    contains: row('contains, with the distance', own, containsPaths(areaId, PATHS)),
    postgisContains: row('PostGIS ST_Contains, Express', postgis, contains),
  };
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
}

const CHUNK = 10_000;

/** Stores the devices and one polygon in PostGIS. Throws when the server has no PostGIS. */
async function fillPostgis(url: string, devices: number, ring: readonly LatLng[]): Promise<void> {
  await using sql = openBenchSql(url);
  await sql.unsafe(`create extension postgis;
    create table bench_device (imei text primary key, name text, plate text, latitude float8, longitude float8,
      place geography(point));
    create table bench_area (id int primary key, shape geometry(polygon, 4326))`);
  const places = placesOf('towns', 1, devices);
  for (let at = 0; at < devices; at += CHUNK) {
    const rows = Array.from({ length: Math.min(CHUNK, devices - at) }, (_, n) => at + n);
    const list = (of: (n: number) => string | number) => arrayLiteral(rows.map(of));
    await sql`
      insert into bench_device select imei, 'Vehicle ' || imei, 'RM ' || right(imei, 6), lat, lng, st_point(lng, lat)::geography
      from unnest(${list(simulatedImei)}::text[], ${list((n) => places[2 * n]!)}::float8[],
        ${list((n) => places[2 * n + 1]!)}::float8[]) as r (imei, lat, lng)`;
  }
  const closed = [...ring, ring[0] as LatLng].map(({ lat, lng }) => `${lng} ${lat}`).join(',');
  await sql`insert into bench_area values (1, st_geomfromtext(${`POLYGON((${closed}))`}, 4326))`;
  await sql.unsafe(
    'create index on bench_device using gist (place); analyze bench_device; analyze bench_area',
  );
}

async function fillRedis(url: string, devices: number): Promise<void> {
  const redis = new Redis(url);
  const places = placesOf('towns', 1, devices);
  for (let at = 0; at < devices; at += CHUNK) {
    const args: (string | number)[] = [];
    for (let n = at; n < Math.min(devices, at + CHUNK); n++) {
      args.push(places[2 * n + 1] as number, places[2 * n] as number, simulatedImei(n));
    }
    await redis.geoadd('devices', ...args);
  }
  await redis.quit();
}
