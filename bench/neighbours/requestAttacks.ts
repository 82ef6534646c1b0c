import { brotliCompressSync, gzipSync } from 'node:zlib';
import { type Attack, accountOf, atOnce, headersOf, inTurn, type Scene, sized } from './attack.ts';
import { seedAreas, seedDevices } from './seeds.ts';

/** Attacks of requests whose answers take the event loop long. */
export const REQUEST_ATTACKS: readonly Attack[] = [
  {
    name: 'long digits',
    accounts: 1,
    run: async (scene) => {
      const digits = `${'1'.repeat(sized(scene, 5_000, 15_500))}x`;
      const ask = (path: string) => get(scene, path);
      await inTurn(scene, sized(scene, 8, 110), 8, (n) =>
        n % 2 === 0
          ? ask(`/api/v3/devices/nearest?lat=${digits}&lng=1`)
          : ask(`/api/v3/events?offset=${digits}`),
      );
      const body = `id=${scene.firstImei}&lon=1&lat=${digits}${digits}`;
      await inTurn(scene, sized(scene, 2, 20), 4, () => feed(scene, '/osmand', body, FORM));
    },
  },
  {
    name: 'bodies at the login',
    accounts: 0,
    run: async (scene) => {
      const body = brotliCompressSync(emptyObjects(sized(scene, 10_000, 340_000)));
      const headers = { ...JSON_BODY, 'Content-Encoding': 'br', 'X-Forwarded-For': '10.9.0.1' };
      const call = { url: `${scene.apiUrl}/api/v1/session`, method: 'POST', headers, body };
      await inTurn(scene, sized(scene, 4, 40), 8, () => scene.call(call));
    },
  },
  {
    name: 'bodies of areas',
    accounts: 1,
    run: async (scene) => {
      const body = brotliCompressSync(emptyObjects(sized(scene, 10_000, 340_000)));
      const headers = { ...headersOf(accountOf(scene)), ...JSON_BODY, 'Content-Encoding': 'br' };
      const call = { url: `${scene.apiUrl}/api/v3/areas`, method: 'POST', headers, body };
      await inTurn(scene, sized(scene, 4, 40), 8, () => scene.call(call));
    },
  },
  {
    name: 'bodies at the ingest',
    accounts: 0,
    run: async (scene) => {
      const bytes = sized(scene, 2 ** 18, MAX_BATCH_BYTES);
      const objects = `[${'{},'.repeat(Math.floor(bytes / 3) - 8)}{}]`;
      const bodies = [
        ['/traccar', gzipSync(objects), JSON_BODY],
        ['/positions', gzipSync(Buffer.alloc(bytes, '\n')), { 'Content-Type': 'application/x-ndjson' }],
        ['/positions', gzipSync(`[{"x":${objects}}]`), JSON_BODY],
      ] as const;
      await inTurn(scene, sized(scene, 3, 30), 3, async (n) => {
        const [path, body, headers] = bodies[n % bodies.length] ?? bodies[0];
        await feed(scene, path, body, { ...headers, 'Content-Encoding': 'gzip' });
      });
    },
  },
  ...(['read', 'unread'] as const).map(
    (manner): Attack => ({
      name: `area lists, ${manner}`,
      accounts: 1,
      ...(manner === 'unread' ? { lasts: true } : {}),
      seed: (seeding) =>
        seedAreas(seeding.sql, accountOf(seeding), { ...LARGE, count: sized(seeding, 5, 200) }),
      run: (scene) =>
        atOnce(sized(scene, 4, 50), () =>
          get(scene, '/api/v3/areas?limit=200', manner === 'unread' ? manner : undefined),
        ),
    }),
  ),
  {
    name: 'devices on one spot',
    accounts: 1,
    seed: (seeding) =>
      seedDevices(seeding.sql, accountOf(seeding).worldId, {
        firstImei: seeding.firstImei,
        count: sized(seeding, 500, 100_000),
        place: { lat: '48.5', lng: '9.5' },
      }),
    run: async (scene) => {
      const places = ['lat=48.5&lng=9.5', 'lat=48.6&lng=9.5', 'lat=-20&lng=100', 'lat=-48.5&lng=-170.5'];
      await inTurn(scene, sized(scene, 8, 110), 8, (n) =>
        get(scene, `/api/v3/devices/nearest?limit=50&${places[n % places.length]}`),
      );
    },
  },
  {
    name: 'devices on the equator',
    accounts: 1,
    seed: (seeding) =>
      seedDevices(seeding.sql, accountOf(seeding).worldId, {
        firstImei: seeding.firstImei,
        count: sized(seeding, 500, 50_000),
        place: { lat: '0', lng: `n * ${360 / sized(seeding, 500, 50_000)} - 180` },
      }),
    run: (scene) =>
      inTurn(scene, sized(scene, 8, 110), 8, (n) =>
        get(scene, `/api/v3/devices/nearest?limit=50&lat=${n % 2 === 0 ? 90 : -90}&lng=${n}`),
      ),
  },
];

const JSON_BODY = { 'Content-Type': 'application/json' };
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
const MAX_BATCH_BYTES = 16 * 1024 * 1024 - 1024;
const LARGE = { vertices: 2_000, centre: { lat: 47, lng: 8 }, radiusDeg: 0.2 };

const emptyObjects = (count: number): string => `{"x":[${'{},'.repeat(count - 1)}{}]}`;

function get(scene: Scene, path: string, manner?: 'unread'): Promise<number | null> {
  return scene.call({
    url: scene.apiUrl + path,
    headers: headersOf(accountOf(scene)),
    ...(manner === undefined ? {} : { manner }),
  });
}

function feed(
  scene: Scene,
  path: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string>>,
): Promise<number | null> {
  const all = { ...headers, 'X-Ingest-Token': scene.token };
  return scene.call({ url: scene.ingestUrl + path, method: 'POST', headers: all, body });
}
