import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { newKey } from '../../src/access/credentials.ts';
import { OFFSET_MAX } from '../../src/http/parameters.ts';
import { jaggedRing } from '../setup/areas.ts';
import { type Attack, type Attacker, type AttackSeeding, atOnce, JSON_BODY } from './attack.ts';
import { seedDeliveries, seedDevices, seedEvents, seedWebhooks } from './seeds.ts';

const BEYOND = Number.MAX_SAFE_INTEGER;
const GEOJSON = { 'Content-Type': 'application/geo+json' };
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
      seed: async (seeding) => {
        await seeding.seedDevices(1, { lat: '46', lng: '11' });
        const { sql, firstImei } = seeding;
        await seedEvents(sql, seeding.account().worldId, firstImei, seeding.sized(500, 200_000, 1_000_000));
      },
      run: (attacker) => twice(attacker, (n) => attacker.get(`/api/v3/events?${query}&n=${n}`)),
    }),
  ),
  {
    name: 'deliveries at a far offset',
    seed: seedOldDeliveries,
    run: async (attacker) => {
      const id = await webhookOf(attacker);
      const state = (n: number) => (n % 2 === 0 ? '' : '&status=exhausted');
      const path = `/api/webhooks/${id}/deliveries?offset=${BEYOND}`;
      await twice(attacker, (n) => attacker.get(path + state(n)));
    },
  },
  {
    name: 'deletion of an endpoint with many deliveries',
    seed: seedOldDeliveries,
    run: async (attacker) => {
      const id = await webhookOf(attacker);
      const headers = attacker.headers();
      await attacker.call({ url: `${attacker.apiUrl}/api/webhooks/${id}`, method: 'DELETE', headers });
    },
  },
  {
    name: 'reads of a hundred endpoints that fail',
    seed: async (seeding) => {
      const { sql } = seeding;
      const { accountId } = seeding.account();
      const urls = Array.from({ length: 100 }, (_, n) => `${seeding.receiverUrl}/failing/${n}`);
      const [id = 0] = await seedWebhooks(sql, accountId, urls);
      await seedDeliveries(sql, accountId, id, seeding.sized(500, 100_000), 'failed');
      await sql`update webhook set failing_since = now(), failures = 14 where account_id = ${accountId}`;
    },
    run: async (attacker) => {
      const id = await webhookOf(attacker);
      const path = `/api/webhooks/${id}`;
      const [delivery] = await attacker.fetchData<{ id: string }[]>(`${path}/deliveries?limit=1`);
      const paths = ['/api/webhooks?limit=200', path, `${path}/deliveries/${delivery?.id}`];
      await twice(attacker, (n) => attacker.get(paths[n % paths.length] as string));
    },
  },
  {
    name: 'changes that wait for an import',
    run: async (attacker) => {
      const vertices = attacker.sized(50, 2_000);
      const feature = (n: number) => featureText(`area-${n}`, vertices);
      const features = Array.from({ length: attacker.sized(5, 200) }, (_, n) => feature(n));
      const imported = importAreas(attacker, collection(features));
      const yard = { name: 'Yard', type: 'circle', center: { lat: 1, lng: 1 }, radius_m: 100 };
      const body = JSON.stringify(yard);
      const headers = { ...attacker.headers(), ...JSON_BODY };
      await atOnce(attacker.sized(5, 60), (n) => {
        const url = `${attacker.apiUrl}/api/v3/areas/by-external-id/area-${n}`;
        return attacker.call({ url, method: 'PUT', headers, body });
      });
      await imported;
    },
  },
  {
    name: 'imports that do not end',
    lasts: true,
    run: async (attacker) => {
      const blank = ' '.repeat(attacker.sized(2 ** 16, 31 * 2 ** 20));
      const body = gzipSync(`{"type":"FeatureCollection","features":[${blank}`);
      await atOnce(attacker.sized(4, 60), () => importAreas(attacker, body, 'unfinished'));
    },
  },
  {
    name: 'imports of very many small areas',
    run: async (attacker) => {
      const feature = multiPointText(attacker.sized(2, 50));
      const body = gzipSync(collection(Array.from({ length: attacker.sized(5, 200) }, () => feature)));
      await attacker.inTurn(attacker.sized(2, 10), 2, () => importAreas(attacker, body));
    },
  },
  {
    name: 'small imports at once',
    asks: 'small import',
    run: (attacker) => {
      const body = collection([featureText(null, 20)]);
      return atOnce(attacker.sized(5, 100), () => importAreas(attacker, body));
    },
  },
  {
    name: 'receivers that hang',
    accounts: 3,
    lasts: true,
    seed: async (seeding) => {
      for (const [n, { accountId, worldId }] of seeding.accounts.entries()) {
        const url = (endpoint: number) => `${seeding.receiverUrl}/hang/${n}/${endpoint}`;
        const urls = Array.from({ length: seeding.sized(5, 100) }, (_, endpoint) => url(endpoint));
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
      attacker.inTurn(attacker.sized(100, 6_000), 16, (n) => {
        const address = `2001:db8:5:5::${(n + 1).toString(16)}`;
        const headers = { 'X-API-Key': newKey(randomBytes), 'X-Forwarded-For': address };
        return attacker.call({ url: `${attacker.apiUrl}/api/v3/devices`, headers });
      }),
  },
  {
    name: 'logins from many addresses',
    accounts: 0,
    asks: 'login',
    run: async (attacker) => {
      const url = `${attacker.apiUrl}/api/v1/session`;
      for (let round = 0; round < attacker.sized(1, 3) && !attacker.stopped.aborted; round++) {
        await atOnce(attacker.sized(3, 40), (n) => {
          const headers = { ...JSON_BODY, 'X-Forwarded-For': `10.8.${round}.${n + 1}` };
          const body = JSON.stringify({ email: `nobody-${round}-${n}@example.com`, password: 'guess' });
          return attacker.call({ url, method: 'POST', headers, body });
        });
        await sleep(attacker.sized(1, ROUND_MS));
      }
    },
  },
  {
    name: 'guesses of the ingest token',
    accounts: 0,
    run: (attacker) =>
      attacker.inTurn(attacker.sized(50, 3_000), 16, (n) => {
        const url = `${attacker.ingestUrl}/osmand?id=${attacker.firstImei}&lat=1&lon=1&token=guess-${n}`;
        return attacker.call({ url, headers: { 'X-Forwarded-For': '10.7.0.1' } });
      }),
  },
];

const collection = (features: readonly string[]): string =>
  `{"type":"FeatureCollection","features":[${features.join(',')}]}`;

/** Nearly sixty calls at once, twice: what one key may call in a minute. */
async function twice(attacker: Attacker, work: (n: number) => Promise<unknown>): Promise<void> {
  for (let round = 0; round < 2 && !attacker.stopped.aborted; round++)
    await atOnce(attacker.sized(4, 59), work);
}

function importAreas(attacker: Attacker, body: string | Buffer, manner?: 'unfinished') {
  const encoding = typeof body === 'string' ? {} : { 'Content-Encoding': 'gzip' };
  const headers = { ...attacker.headers(), ...GEOJSON, ...encoding };
  const url = `${attacker.apiUrl}/api/v3/areas/import`;
  return attacker.call({ url, method: 'POST', headers, body, manner });
}

async function seedOldDeliveries(seeding: AttackSeeding): Promise<void> {
  const { accountId } = seeding.account();
  const [id = 0] = await seedWebhooks(seeding.sql, accountId, [`${seeding.receiverUrl}/old`]);
  await seedDeliveries(seeding.sql, accountId, id, seeding.sized(500, 200_000, 1_000_000));
}

async function webhookOf(attacker: Attacker): Promise<number> {
  const [webhook] = await attacker.fetchData<{ id: number }[]>('/api/webhooks');
  return webhook?.id ?? 0;
}

async function sendTags(attacker: Attacker, n: number): Promise<void> {
  const point = { recorded_at: Date.now(), latitude: 46, longitude: 11, rfid: `tag ${n}` };
  const imei = (account: number) => String(attacker.firstImei + account);
  await attacker.sendPoints(attacker.accounts.map((_, account) => ({ imei: imei(account), ...point })));
}

/** A polygon as GeoJSON text. With an external id, an import locks the external ids of the account. */
export function featureText(externalId: string | null, vertices: number): string {
  const properties = { name: 'Imported', ...(externalId === null ? {} : { external_id: externalId }) };
  return `{"type":"Feature","properties":${JSON.stringify(properties)},"geometry":${polygonText(vertices)}}`;
}

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
