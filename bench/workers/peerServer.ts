import { createServer } from 'node:http';
import express, { type Request, type Response } from 'express';
import helmet from 'helmet';
import { Redis } from 'ioredis';
import pg from 'pg';
import { type ServerUsage, usageNow } from '../measure/usage.ts';
import { listen } from '../setup/listen.ts';
import { answerQuestions } from '../worker.ts';

export type PeerQuestion =
  | { readonly kind: 'postgis'; readonly databaseUrl: string }
  | { readonly kind: 'redis'; readonly redisUrl: string }
  | { readonly kind: 'usage' };

const POOL = 8;
/** GEOSEARCH wants a radius: the first that holds a device, each wider than the one before. */
const RADII_KM = [10, 100, 1_000, 21_000];

// A worker: what one would build instead, behind the same Express + helmet. Database and Redis are processes of their
// own, whose processor time is not counted here.
let port = 0;
answerQuestions(async (question: PeerQuestion): Promise<ServerUsage> => {
  if (question.kind === 'postgis') port = await serve(await postgisRoutes(question.databaseUrl));
  if (question.kind === 'redis') port = await serve(await redisRoutes(question.redisUrl));
  return { port, ...usageNow() };
});

type Routes = Readonly<Record<string, (request: Request) => Promise<unknown>>>;

async function postgisRoutes(databaseUrl: string): Promise<Routes> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: POOL });
  await pool.query('select 1');
  const rows = async (name: string, text: string, values: unknown[]) =>
    (await pool.query({ name, text, values })).rows;
  const nearest = `select imei as id, imei, name, plate, latitude, longitude, place <-> p as distance_m
    from bench_device, (select st_point($1, $2)::geography as p) asked order by place <-> p limit 1`;
  const contains =
    'select st_contains(shape, st_point($1, $2, 4326)) as inside from bench_area where id = $3';
  return {
    '/nearest': ({ query: { lng, lat } }) => rows('nearest', nearest, [Number(lng), Number(lat)]),
    '/contains/:id': async ({ params, query: { lng, lat } }) =>
      (await rows('contains', contains, [Number(lng), Number(lat), Number(params['id'])]))[0],
  };
}

async function redisRoutes(redisUrl: string): Promise<Routes> {
  const redis = new Redis(redisUrl, { enableAutoPipelining: true });
  await redis.ping();
  return {
    '/nearest': async ({ query }) => {
      for (const radiusKm of RADII_KM) {
        const found = (await redis.geosearch(
          'devices',
          'FROMLONLAT',
          Number(query['lng']),
          Number(query['lat']),
          'BYRADIUS',
          radiusKm,
          'km',
          'ASC',
          'COUNT',
          1,
          'WITHCOORD',
          'WITHDIST',
        )) as unknown[];
        if (found.length > 0) return found;
      }
      return [];
    },
  };
}

function serve(routes: Routes): Promise<number> {
  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.use(helmet());
  for (const [path, answer] of Object.entries(routes)) {
    app.get(path, async (request: Request, response: Response) => {
      response.json({ data: await answer(request), meta: {} });
    });
  }
  return listen(createServer(app));
}
