import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { newKey } from '../../src/access/credentials.ts';
import { OFFSET_MAX } from '../../src/http/parameters.ts';
import { jaggedRing } from '../setup/areas.ts';
import {
  type Attack,
  type Attacker,
  accountOf,
  atOnce,
  fetchData,
  get,
  headersOf,
  inTurn,
  JSON_BODY,
  seedOwnDevices,
  sendPoints,
  sized,
} from './attack.ts';
import { seedDeliveries, seedDevices, seedEvents, seedWebhooks } from './seeds.ts';

const BEYOND = Number.MAX_SAFE_INTEGER;
const GEOJSON = { 'Content-Type': 'application/geo+json' };
/** Time between two events for endpoints that hang. */
const EVENT_EVERY_MS = 500;
const ROUND_MS = 3_000;

/** Attacks on what all callers share: connections, memory, delivery slots, limits. */
export const SHARED_ATTACKS: readonly Attack[] = [
  ...[
    ['events at a far offset', `offset=${BEYOND}`],
    ['events at the greatest offset', `offset=${OFFSET_MAX}&limit=200`],
    ['events of a type that there is not', 'type=alarm&limit=200'],
  ].map(
    ([name = '', query = '']): Attack => ({
      name,
      accounts: 1,
      seed: async (seeding) => {
        await seedOwnDevices(seeding, 1, { lat: '46', lng: '11' });
        const { sql, firstImei } = seeding;
        await seedEvents(sql, accountOf(seeding).worldId, firstImei, sized(seeding, 500, 200_000, 1_000_000));
      },
      run: (attacker) => twice(attacker, (_, n) => get(attacker, `/api/v3/events?${query}&n=${n}`)),
    }),
  ),
  {
    name: 'deliveries at a far offset',
    accounts: 1,
    seed: seedOldDeliveries,
    run: async (attacker) => {
      const id = await webhookOf(attacker);
      const state = (n: number) => (n % 2 === 0 ? '' : '&status=exhausted');
      await twice(attacker, (_, n) =>
        get(attacker, `/api/webhooks/${id}/deliveries?offset=${BEYOND}${state(n)}`),
      );
    },
  },
  {
    name: 'deletion of an endpoint with many deliveries',
    accounts: 1,
    seed: seedOldDeliveries,
    run: async (attacker) => {
      const id = await webhookOf(attacker);
      const headers = headersOf(accountOf(attacker));
      await attacker.call({ url: `${attacker.apiUrl}/api/webhooks/${id}`, method: 'DELETE', headers });
    },
  },
  {
    name: 'changes that wait for an import',
    accounts: 1,
    run: async (attacker) => {
      const features = Array.from({ length: sized(attacker, 5, 200) }, (_, n) =>
        featureText(`area-${n}`, sized(attacker, 50, 2_000)),
      );
      const imported = importAreas(attacker, collection(features));
      const yard = { name: 'Yard', type: 'circle', center: { lat: 1, lng: 1 }, radius_m: 100 };
      const body = JSON.stringify(yard);
      await atOnce(sized(attacker, 5, 60), (n) =>
        attacker.call({
          url: `${attacker.apiUrl}/api/v3/areas/by-external-id/area-${n}`,
          method: 'PUT',
          headers: { ...headersOf(accountOf(attacker)), ...JSON_BODY },
          body,
        }),
      );
      await imported;
    },
  },
  {
    name: 'imports that do not end',
    accounts: 1,
    lasts: true,
    run: async (attacker) => {
      const blank = ' '.repeat(sized(attacker, 2 ** 16, 31 * 2 ** 20));
      const body = gzipSync(`{"type":"FeatureCollection","features":[${blank}`);
      await atOnce(sized(attacker, 4, 60), () => importAreas(attacker, body, 'unfinished'));
    },
  },
  {
    name: 'imports of very many small areas',
    accounts: 1,
    run: async (attacker) => {
      const parts = sized(attacker, 2, 50);
      const body = gzipSync(
        collection(Array.from({ length: sized(attacker, 5, 200) }, () => multiPointText(parts))),
      );
      await inTurn(attacker, sized(attacker, 2, 10), 2, () => importAreas(attacker, body));
    },
  },
  {
    name: 'small imports at once',
    accounts: 1,
    asks: 'small import',
    run: (attacker) => {
      const body = collection([featureText(null, 20)]);
      return atOnce(sized(attacker, 5, 100), () => importAreas(attacker, body));
    },
  },
  {
    name: 'receivers that hang',
    accounts: 3,
    lasts: true,
    seed: async (seeding) => {
      for (const [n, { accountId, worldId }] of seeding.accounts.entries()) {
        const url = (endpoint: number) => `${seeding.receiverUrl}/hang/${n}/${endpoint}`;
        const urls = Array.from({ length: sized(seeding, 5, 100) }, (_, endpoint) => url(endpoint));
        await seedWebhooks(seeding.sql, accountId, urls);
        const firstImei = seeding.firstImei + n;
        await seedDevices(seeding.sql, worldId, { firstImei, count: 1, place: { lat: '46', lng: '11' } });
      }
    },
    run: async (attacker) => {
      for (let n = 0; !attacker.stopped.aborted; n++) {
        await sendTags(attacker, n);
        await sleep(EVENT_EVERY_MS);
      }
    },
  },
  {
    name: 'unknown keys of one IPv6 network',
    accounts: 0,
    run: (attacker) =>
      inTurn(attacker, sized(attacker, 100, 6_000), 16, (n) =>
        attacker.call({
          url: `${attacker.apiUrl}/api/v3/devices`,
          headers: {
            'X-API-Key': newKey(randomBytes),
            'X-Forwarded-For': `2001:db8:5:5::${(n + 1).toString(16)}`,
          },
        }),
      ),
  },
  {
    name: 'logins from many addresses',
    accounts: 0,
    asks: 'login',
    run: async (attacker) => {
      for (let round = 0; round < sized(attacker, 1, 3) && !attacker.stopped.aborted; round++) {
        await atOnce(sized(attacker, 3, 40), (n) =>
          attacker.call({
            url: `${attacker.apiUrl}/api/v1/session`,
            method: 'POST',
            headers: { ...JSON_BODY, 'X-Forwarded-For': `10.8.${round}.${n + 1}` },
            body: JSON.stringify({ email: `nobody-${round}-${n}@example.com`, password: 'guess' }),
          }),
        );
        await sleep(sized(attacker, 1, ROUND_MS));
      }
    },
  },
  {
    name: 'guesses of the ingest token',
    accounts: 0,
    run: (attacker) =>
      inTurn(attacker, sized(attacker, 50, 3_000), 16, (n) =>
        attacker.call({
          url: `${attacker.ingestUrl}/osmand?id=${attacker.firstImei}&lat=1&lon=1&token=guess-${n}`,
          headers: { 'X-Forwarded-For': '10.7.0.1' },
        }),
      ),
  },
];

const collection = (features: readonly string[]): string =>
  `{"type":"FeatureCollection","features":[${features.join(',')}]}`;

/** Nearly sixty calls at once, twice: what one key may call in a minute. */
async function twice(
  attacker: Attacker,
  work: (attacker: Attacker, n: number) => Promise<unknown>,
): Promise<void> {
  const times = sized(attacker, 4, 59);
  for (let round = 0; round < 2 && !attacker.stopped.aborted; round++) {
    await atOnce(times, (n) => work(attacker, n));
  }
}

function importAreas(
  attacker: Attacker,
  body: string | Buffer,
  manner?: 'unfinished',
): Promise<number | null> {
  const encoding = typeof body === 'string' ? {} : { 'Content-Encoding': 'gzip' };
  return attacker.call({
    url: `${attacker.apiUrl}/api/v3/areas/import`,
    method: 'POST',
    headers: { ...headersOf(accountOf(attacker)), ...GEOJSON, ...encoding },
    body,
    ...(manner === undefined ? {} : { manner }),
  });
}

async function seedOldDeliveries(seeding: Parameters<NonNullable<Attack['seed']>>[0]): Promise<void> {
  const { accountId } = accountOf(seeding);
  const [id = 0] = await seedWebhooks(seeding.sql, accountId, [`${seeding.receiverUrl}/old`]);
  await seedDeliveries(seeding.sql, accountId, id, sized(seeding, 500, 200_000, 1_000_000));
}

/** The id of the only endpoint of the first account. */
async function webhookOf(attacker: Attacker): Promise<number> {
  const [webhook] = await fetchData<{ id: number }[]>(attacker, '/api/webhooks');
  return webhook?.id ?? 0;
}

/** Makes an event for the only device of each account. */
async function sendTags(attacker: Attacker, n: number): Promise<void> {
  const points = attacker.accounts.map((_, account) => ({
    imei: String(attacker.firstImei + account),
    recorded_at: Date.now(),
    latitude: 46,
    longitude: 11,
    rfid: `tag ${n}`,
  }));
  await sendPoints(attacker, points);
}

/** A polygon as GeoJSON text. With an external id, an import locks the external ids of the account. */
export function featureText(externalId: string | null, vertices: number): string {
  const properties = { name: 'Imported', ...(externalId === null ? {} : { external_id: externalId }) };
  return `{"type":"Feature","properties":${JSON.stringify(properties)},"geometry":${polygonText(vertices)}}`;
}

/** A feature that becomes `parts` areas. */
function multiPointText(parts: number): string {
  const coordinates = Array.from({ length: parts }, (_, n) => `[${(n / 100).toFixed(2)},7]`);
  return `{"type":"Feature","properties":{"name":"P"},"geometry":{"type":"MultiPoint","coordinates":[${coordinates.join(',')}]}}`;
}

const texts = new Map<number, string>();

/** Cached: writing 2 000 numbers for each of 200 features would cost the attacker too much time. */
function polygonText(vertices: number): string {
  const known = texts.get(vertices);
  if (known !== undefined) return known;
  const ring = jaggedRing(vertices, { lat: 46, lng: 11 }, 0.2, 3);
  const positions = [...ring, ...ring.slice(0, 1)].map(
    ({ lat, lng }) => `[${lng.toFixed(7)},${lat.toFixed(7)}]`,
  );
  const text = `{"type":"Polygon","coordinates":[[${positions.join(',')}]]}`;
  texts.set(vertices, text);
  return text;
}
