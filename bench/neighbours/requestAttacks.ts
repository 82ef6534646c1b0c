import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { AreaDefinition } from '../../src/areas/area.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';
import { dearTrack } from '../../test/support/ingest/dearTracks.ts';
import { jaggedRing, polygonArea, trackArea } from '../setup/areas.ts';
import { INGEST_TOKEN } from '../setup/points.ts';
import {
  type Attack,
  type Attacker,
  type AttackSeeding,
  atOnce,
  JSON_BODY,
  startAttackedPod,
} from './attack.ts';
import { seedAreas, seedCopies } from './seeds.ts';
import { featureText } from './sharedAttacks.ts';

/** As many devices and areas as a batch may ask for, of many points in few places. */
export const LARGEST_BATCHES: Attack = { name: 'largest batches', seed: seedBatches, run: sendBatches };

async function seedBatches(seeding: AttackSeeding): Promise<void> {
  const place = { lat: 'n * 0.00001 + 20', lng: 'mod(n, 300) * 0.0001 + 30' };
  await seeding.seedDevices(seeding.sized(500, 50_000), place);
  const areas = { vertices: 20, centre: { lat: 20.25, lng: 30.01 }, radiusDeg: 0.3 };
  await seedAreas(seeding.sql, seeding.account(), { ...areas, count: seeding.sized(20, 300) });
}

async function sendBatches(attacker: Attacker): Promise<void> {
  const points = (more: object) =>
    JSON.stringify({
      points: Array.from({ length: attacker.sized(50, 1_000) }, (_, n) => ({
        ref: n,
        lat: 20 + (n % 500) * 0.001,
        lng: 30 + (n % 7) * 0.004,
        ...more,
      })),
    });
  const batches = [
    ['/api/v3/devices/nearest/batch', points({ limit: 10 })],
    ['/api/v3/areas/containing/batch', points({})],
  ] as const;
  await attacker.inTurn(attacker.sized(8, 110), 8, (n) => {
    const [path, body] = batches[n % batches.length] ?? batches[0];
    return attacker.postJson(path, body);
  });
}

/** Another pod takes as large an import as there is, and this one follows it while it answers batches. */
const BATCHES_BESIDE_IMPORT: Attack = {
  name: 'largest batches beside an import through another pod',
  accounts: 2,
  seed: seedBatches,
  run: async (attacker) => {
    await using other = await startAttackedPod(attacker.databaseUrl);
    const [count, vertices] = [attacker.sized(5, 200), attacker.sized(50, 2_000)];
    const features = Array.from({ length: count }, () => featureText(null, vertices));
    const imported = attacker.call({
      url: `${other.apiUrl}/api/v3/areas/import`,
      method: 'POST',
      headers: { ...attacker.headers(1), 'Content-Type': 'application/geo+json' },
      body: `{"type":"FeatureCollection","features":[${features.join(',')}]}`,
    });
    await Promise.all([imported, sendBatches(attacker)]);
  },
};

/** Areas with two boxes, all of them around each point of the batches. */
const BATCHES_ACROSS_180 = containingBatches(
  'batches of points in areas across 180°',
  polygonArea(
    'Area',
    jaggedRing(20, { lat: -17, lng: 180 }, 0.5, 1).map(({ lat, lng }) => ({
      lat,
      lng: lng > 180 ? lng - 360 : lng,
    })),
  ),
  2_000,
  (n) => ({ lat: -17 + (n % 10) * 0.01, lng: n % 2 === 0 ? 180 : -180 }),
);

const DEAR_PLACE = { lat: 0.001, lng: 12.5 };
const DEAR = dearTrack(DEAR_PLACE);
/** More work than a batch may be. */
const BATCHES_AMONG_DEAR = containingBatches(
  'batches of points among areas that take long',
  trackArea(DEAR.name, DEAR.points, DEAR.buffer_m),
  200,
  () => DEAR_PLACE,
);

function containingBatches(
  name: string,
  definition: AreaDefinition,
  areas: number,
  pointOf: (n: number) => LatLng,
): Attack {
  return {
    name,
    seed: (seeding) => seedCopies(seeding.sql, seeding.account(), definition, seeding.sized(20, areas)),
    run: async (attacker) => {
      const points = Array.from({ length: attacker.sized(50, 1_000) }, (_, n) => pointOf(n));
      const body = JSON.stringify({ points });
      await attacker.inTurn(attacker.sized(4, 20), 4, () =>
        attacker.postJson('/api/v3/areas/containing/batch', body),
      );
    },
  };
}

/** Attacks through requests that occupy the event loop. */
export const REQUEST_ATTACKS: readonly Attack[] = [
  BATCHES_BESIDE_IMPORT,
  BATCHES_ACROSS_180,
  BATCHES_AMONG_DEAR,
  {
    name: 'long digits',
    run: async (attacker) => {
      const digits = `${'1'.repeat(attacker.sized(5_000, 15_500))}x`;
      const paths = [`/api/v3/devices/nearest?lat=${digits}&lng=1`, `/api/v3/events?offset=${digits}`];
      await attacker.inTurn(attacker.sized(8, 110), 8, (n) => attacker.get(paths[n % 2] ?? ''));
      const body = `id=${attacker.firstImei}&lon=1&lat=${digits}${digits}`;
      await attacker.inTurn(attacker.sized(2, 20), 4, () => feed(attacker, '/osmand', body, FORM));
    },
  },
  {
    name: 'bodies at the login',
    accounts: 0,
    run: (attacker) => sendBodies(attacker, '/api/v1/session', { 'X-Forwarded-For': '10.9.0.1' }),
  },
  {
    name: 'bodies of areas',
    run: (attacker) => sendBodies(attacker, '/api/v3/areas', attacker.headers()),
  },
  {
    name: 'bodies at the ingest',
    accounts: 0,
    run: async (attacker) => {
      const bytes = attacker.sized(2 ** 18, MAX_BATCH_BYTES);
      const objects = `[${'{},'.repeat(Math.floor(bytes / 3) - 8)}{}]`;
      const bodies = [
        ['/traccar', gzipSync(objects), JSON_BODY],
        ['/positions', gzipSync(Buffer.alloc(bytes, '\n')), { 'Content-Type': 'application/x-ndjson' }],
        ['/positions', gzipSync(`[{"x":${objects}}]`), JSON_BODY],
      ] as const;
      await attacker.inTurn(attacker.sized(3, 30), 3, async (n) => {
        const [path, body, headers] = bodies[n % bodies.length] ?? bodies[0];
        await feed(attacker, path, body, { ...headers, 'Content-Encoding': 'gzip' });
      });
    },
  },
  ...(['read', 'unread'] as const).map(
    (manner): Attack => ({
      name: `area lists, ${manner}`,
      ...(manner === 'unread' ? { lasts: true } : {}),
      seed: (seeding) =>
        seedAreas(seeding.sql, seeding.account(), { ...LARGE, count: seeding.sized(5, 200) }),
      run: (attacker) =>
        atOnce(attacker.sized(4, 50), () =>
          attacker.get('/api/v3/areas?limit=200', manner === 'unread' ? manner : undefined),
        ),
    }),
  ),
  {
    name: 'devices on one spot',
    seed: (seeding) => seeding.seedDevices(seeding.sized(500, 100_000), { lat: '48.5', lng: '9.5' }),
    run: async (attacker) => {
      const places = ['lat=48.5&lng=9.5', 'lat=48.6&lng=9.5', 'lat=-20&lng=100', 'lat=-48.5&lng=-170.5'];
      await attacker.inTurn(attacker.sized(8, 110), 8, (n) =>
        attacker.get(`/api/v3/devices/nearest?limit=50&${places[n % places.length]}`),
      );
    },
  },
  {
    name: 'devices on the equator',
    seed: (seeding) => {
      const count = seeding.sized(500, 50_000);
      return seeding.seedDevices(count, { lat: '0', lng: `n * ${360 / count} - 180` });
    },
    run: (attacker) =>
      attacker.inTurn(attacker.sized(8, 110), 8, (n) =>
        attacker.get(`/api/v3/devices/nearest?limit=50&lat=${n % 2 === 0 ? 90 : -90}&lng=${n}`),
      ),
  },
  LARGEST_BATCHES,
  {
    name: 'questions about a track that take long',
    run: async (attacker) => {
      const { points } = poleToPole(attacker, 0);
      const id = await attacker.makeArea({ name: 'Far', type: 'polyline', buffer_m: 50, points });
      // From the other side of the Earth all edges are about equally far. All at the same moment.
      await atOnce(attacker.sized(8, 110), (n) =>
        attacker.get(`/api/v3/areas/${id}/contains?lat=-1&lng=${-167 - n / 1_000}`),
      );
    },
  },
  {
    name: 'overlaps that take long',
    run: async (attacker) => {
      const ids: number[] = [];
      for (const area of slowOverlaps(attacker)) ids.push(await attacker.makeArea({ name: 'Slow', ...area }));
      await attacker.inTurn(attacker.sized(8, 100), 8, (n) =>
        attacker.get(`/api/v3/areas/${ids[n % ids.length]}/overlaps`),
      );
    },
  },
];

/** Two combs with many crossings, a star and its copy but for rounding, and tracks from pole to pole. */
function slowOverlaps(attacker: Attacker): object[] {
  const polygon = (pairs: readonly (readonly [number, number])[]) => ({
    type: 'polygon',
    points: pairs.map(([lat, lng]) => ({ lat, lng })),
  });
  const teeth = attacker.sized(10, 124);
  const comb: [number, number][] = [];
  for (let n = 0; n < teeth; n++) {
    const [low, high] = [n / teeth, (n + 0.45) / teeth];
    comb.push([low, 0.02], [low, 1], [high, 1], [high, 0.02]);
  }
  comb.push([1, 0.02], [1, 0], [0, 0]);
  const star = Array.from({ length: 150 }, (_, n): [number, number] => {
    const reach = n % 2 === 0 ? 1 / 3 : 1 / 7;
    return [reach * Math.sin((n * Math.PI) / 75) - 24, reach * Math.cos((n * Math.PI) / 75) - 174];
  });
  const round = (degrees: number) => Number(degrees.toPrecision(15));
  const rounded = star.map(([lat, lng]) => [round(lat), round(lng)] as const);
  const upright = comb.map(([lat, lng]) => [lng, lat] as const);
  return [
    ...[comb, upright, star, rounded].map(polygon),
    poleToPole(attacker, 0),
    poleToPole(attacker, 0.005),
  ];
}

function poleToPole(attacker: Attacker, shift: number) {
  const points = Array.from({ length: attacker.sized(20, 2_000) }, (_, n) => ({
    lat: n % 2 === 0 ? -80 : 80,
    lng: n / 100 + shift,
  }));
  return { type: 'polyline', points };
}

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
const MAX_BATCH_BYTES = 16 * 1024 * 1024 - 1024;
const LARGE = { vertices: 2_000, centre: { lat: 47, lng: 8 }, radiusDeg: 0.2 };

/** Small when compressed, and many values to parse. */
async function sendBodies(attacker: Attacker, path: string, caller: Record<string, string>): Promise<void> {
  const objects = '{},'.repeat(attacker.sized(10_000, 340_000) - 1);
  const body = brotliCompressSync(`{"x":[${objects}{}]}`);
  const headers = { ...caller, ...JSON_BODY, 'Content-Encoding': 'br' };
  const call = { url: attacker.apiUrl + path, method: 'POST', headers, body };
  await attacker.inTurn(attacker.sized(4, 40), 8, () => attacker.call(call));
}

function feed(
  attacker: Attacker,
  path: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string>>,
): Promise<number | null> {
  const all = { ...headers, 'X-Ingest-Token': INGEST_TOKEN };
  return attacker.call({ url: attacker.ingestUrl + path, method: 'POST', headers: all, body });
}
