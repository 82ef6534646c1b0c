import { Redis } from 'ioredis';

import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';

import { openSql } from '../../src/postgres/sql.ts';
import { placeSource } from './places.ts';

const CHUNK = 10_000;

/** Stores the devices and one polygon in PostGIS. Throws when the server has no PostGIS. */
export async function fillPostgis(url: string, devices: number, ring: readonly LatLng[]): Promise<void> {
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
export async function fillRedis(url: string, devices: number): Promise<void> {
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
