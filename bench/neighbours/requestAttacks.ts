import { brotliCompressSync, gzipSync } from 'node:zlib';
import { type Attack, type Attacker, accountOf, atOnce, headersOf, inTurn, sized } from './attack.ts';
import { seedAreas, seedDevices } from './seeds.ts';

/** As many devices and areas as a batch may ask for, of many points in few places. */
export const LARGEST_BATCHES: Attack = {
  name: 'largest batches',
  accounts: 1,
  seed: async (seeding) => {
    const { sql, firstImei } = seeding;
    const count = sized(seeding, 500, 50_000);
    const place = { lat: 'n * 0.00001 + 20', lng: 'mod(n, 300) * 0.0001 + 30' };
    await seedDevices(sql, accountOf(seeding).worldId, { firstImei, count, place });
    const areas = { vertices: 20, centre: { lat: 20.25, lng: 30.01 }, radiusDeg: 0.3 };
    await seedAreas(sql, accountOf(seeding), { ...areas, count: sized(seeding, 20, 300) });
  },
  run: async (attacker) => {
    const points = (more: object) =>
      JSON.stringify({
        points: Array.from({ length: sized(attacker, 50, 1_000) }, (_, n) => ({
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
    await inTurn(attacker, sized(attacker, 8, 110), 8, (n) => {
      const [path, body] = batches[n % batches.length] ?? batches[0];
      const headers = { ...headersOf(accountOf(attacker)), ...JSON_BODY };
      return attacker.call({ url: attacker.apiUrl + path, method: 'POST', headers, body });
    });
  },
};

/** Attacks through requests that occupy the event loop. */
export const REQUEST_ATTACKS: readonly Attack[] = [
  {
    name: 'long digits',
    accounts: 1,
    run: async (attacker) => {
      const digits = `${'1'.repeat(sized(attacker, 5_000, 15_500))}x`;
      const ask = (path: string) => get(attacker, path);
      await inTurn(attacker, sized(attacker, 8, 110), 8, (n) =>
        n % 2 === 0
          ? ask(`/api/v3/devices/nearest?lat=${digits}&lng=1`)
          : ask(`/api/v3/events?offset=${digits}`),
      );
      const body = `id=${attacker.firstImei}&lon=1&lat=${digits}${digits}`;
      await inTurn(attacker, sized(attacker, 2, 20), 4, () => feed(attacker, '/osmand', body, FORM));
    },
  },
  {
    name: 'bodies at the login',
    accounts: 0,
    run: async (attacker) => {
      const body = brotliCompressSync(emptyObjects(sized(attacker, 10_000, 340_000)));
      const headers = { ...JSON_BODY, 'Content-Encoding': 'br', 'X-Forwarded-For': '10.9.0.1' };
      const call = { url: `${attacker.apiUrl}/api/v1/session`, method: 'POST', headers, body };
      await inTurn(attacker, sized(attacker, 4, 40), 8, () => attacker.call(call));
    },
  },
  {
    name: 'bodies of areas',
    accounts: 1,
    run: async (attacker) => {
      const body = brotliCompressSync(emptyObjects(sized(attacker, 10_000, 340_000)));
      const headers = { ...headersOf(accountOf(attacker)), ...JSON_BODY, 'Content-Encoding': 'br' };
      const call = { url: `${attacker.apiUrl}/api/v3/areas`, method: 'POST', headers, body };
      await inTurn(attacker, sized(attacker, 4, 40), 8, () => attacker.call(call));
    },
  },
  {
    name: 'bodies at the ingest',
    accounts: 0,
    run: async (attacker) => {
      const bytes = sized(attacker, 2 ** 18, MAX_BATCH_BYTES);
      const objects = `[${'{},'.repeat(Math.floor(bytes / 3) - 8)}{}]`;
      const bodies = [
        ['/traccar', gzipSync(objects), JSON_BODY],
        ['/positions', gzipSync(Buffer.alloc(bytes, '\n')), { 'Content-Type': 'application/x-ndjson' }],
        ['/positions', gzipSync(`[{"x":${objects}}]`), JSON_BODY],
      ] as const;
      await inTurn(attacker, sized(attacker, 3, 30), 3, async (n) => {
        const [path, body, headers] = bodies[n % bodies.length] ?? bodies[0];
        await feed(attacker, path, body, { ...headers, 'Content-Encoding': 'gzip' });
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
      run: (attacker) =>
        atOnce(sized(attacker, 4, 50), () =>
          get(attacker, '/api/v3/areas?limit=200', manner === 'unread' ? manner : undefined),
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
    run: async (attacker) => {
      const places = ['lat=48.5&lng=9.5', 'lat=48.6&lng=9.5', 'lat=-20&lng=100', 'lat=-48.5&lng=-170.5'];
      await inTurn(attacker, sized(attacker, 8, 110), 8, (n) =>
        get(attacker, `/api/v3/devices/nearest?limit=50&${places[n % places.length]}`),
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
    run: (attacker) =>
      inTurn(attacker, sized(attacker, 8, 110), 8, (n) =>
        get(attacker, `/api/v3/devices/nearest?limit=50&lat=${n % 2 === 0 ? 90 : -90}&lng=${n}`),
      ),
  },
  LARGEST_BATCHES,
];

const JSON_BODY = { 'Content-Type': 'application/json' };
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
const MAX_BATCH_BYTES = 16 * 1024 * 1024 - 1024;
const LARGE = { vertices: 2_000, centre: { lat: 47, lng: 8 }, radiusDeg: 0.2 };

const emptyObjects = (count: number): string => `{"x":[${'{},'.repeat(count - 1)}{}]}`;

function get(attacker: Attacker, path: string, manner?: 'unread'): Promise<number | null> {
  return attacker.call({
    url: attacker.apiUrl + path,
    headers: headersOf(accountOf(attacker)),
    ...(manner === undefined ? {} : { manner }),
  });
}

function feed(
  attacker: Attacker,
  path: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string>>,
): Promise<number | null> {
  const all = { ...headers, 'X-Ingest-Token': attacker.token };
  return attacker.call({ url: attacker.ingestUrl + path, method: 'POST', headers: all, body });
}
