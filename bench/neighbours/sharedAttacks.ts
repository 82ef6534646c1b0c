import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { newKey } from '../../src/access/apiKey.ts';
import { OFFSET_MAX } from '../../src/http/deepPage.ts';
import { type Attack, accountOf, atOnce, headersOf, inTurn, type Scene, sized } from './attack.ts';
import { featureText, multiPointText } from './featureTexts.ts';
import { seedDeliveries, seedDevices, seedEvents, seedWebhooks } from './seeds.ts';

const BEYOND = Number.MAX_SAFE_INTEGER;
const GEOJSON = { 'Content-Type': 'application/geo+json' };
const JSON_BODY = { 'Content-Type': 'application/json' };
/** Between two events for endpoints that hang. */
const EVENT_EVERY_MS = 500;
const ROUND_MS = 3_000;

/** Attacks on what all callers share: connections, memory, lanes, limits. */
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
        const { sql, firstImei } = seeding;
        const { worldId } = accountOf(seeding);
        await seedDevices(sql, worldId, { firstImei, count: 1, place: { lat: '46', lng: '11' } });
        await seedEvents(sql, worldId, firstImei, sized(seeding, 500, 200_000, 1_000_000));
      },
      run: (scene) => twice(scene, (_, n) => get(scene, `/api/v3/events?${query}&n=${n}`)),
    }),
  ),
  {
    name: 'deliveries at a far offset',
    accounts: 1,
    seed: seedOldDeliveries,
    run: async (scene) => {
      const id = await webhookOf(scene);
      const state = (n: number) => (n % 2 === 0 ? '' : '&status=exhausted');
      await twice(scene, (_, n) => get(scene, `/api/webhooks/${id}/deliveries?offset=${BEYOND}${state(n)}`));
    },
  },
  {
    name: 'deletion of an endpoint with many deliveries',
    accounts: 1,
    seed: seedOldDeliveries,
    run: async (scene) => {
      const id = await webhookOf(scene);
      const headers = headersOf(accountOf(scene));
      await scene.call({ url: `${scene.apiUrl}/api/webhooks/${id}`, method: 'DELETE', headers });
    },
  },
  {
    name: 'changes that wait for an import',
    accounts: 1,
    run: async (scene) => {
      const features = Array.from({ length: sized(scene, 5, 200) }, (_, n) =>
        featureText(`area-${n}`, sized(scene, 50, 2_000)),
      );
      const imported = importAreas(scene, collection(features));
      const body = JSON.stringify({
        name: 'Yard',
        type: 'circle',
        center: { lat: 1, lng: 1 },
        radius_m: 100,
      });
      await atOnce(sized(scene, 5, 60), (n) =>
        scene.call({
          url: `${scene.apiUrl}/api/v3/areas/by-external-id/area-${n}`,
          method: 'PUT',
          headers: { ...headersOf(accountOf(scene)), ...JSON_BODY },
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
    run: async (scene) => {
      const blank = ' '.repeat(sized(scene, 2 ** 16, 31 * 2 ** 20));
      const body = gzipSync(`{"type":"FeatureCollection","features":[${blank}`);
      await atOnce(sized(scene, 4, 60), () => importAreas(scene, body, 'unfinished'));
    },
  },
  {
    name: 'imports of very many small areas',
    accounts: 1,
    run: async (scene) => {
      const parts = sized(scene, 2, 50);
      const body = gzipSync(
        collection(Array.from({ length: sized(scene, 5, 200) }, () => multiPointText(parts))),
      );
      await inTurn(scene, sized(scene, 2, 10), 2, () => importAreas(scene, body));
    },
  },
  {
    name: 'small imports at once',
    accounts: 1,
    asks: 'small import',
    run: (scene) => {
      const body = collection([featureText(null, 20)]);
      return atOnce(sized(scene, 5, 100), () => importAreas(scene, body));
    },
  },
  {
    name: 'receivers that hang',
    accounts: 3,
    lasts: true,
    seed: async (seeding) => {
      for (const [n, { accountId, worldId }] of seeding.accounts.entries()) {
        const urls = Array.from(
          { length: sized(seeding, 5, 100) },
          (_, e) => `${seeding.receiverUrl}/hang/${n}/${e}`,
        );
        await seedWebhooks(seeding.sql, accountId, urls);
        const firstImei = seeding.firstImei + n;
        await seedDevices(seeding.sql, worldId, { firstImei, count: 1, place: { lat: '46', lng: '11' } });
      }
    },
    run: async (scene) => {
      for (let n = 0; !scene.stopped.aborted; n++) {
        await sendTags(scene, n);
        await sleep(EVENT_EVERY_MS);
      }
    },
  },
  {
    name: 'unknown keys of one IPv6 network',
    accounts: 0,
    run: (scene) =>
      inTurn(scene, sized(scene, 100, 6_000), 16, (n) =>
        scene.call({
          url: `${scene.apiUrl}/api/v3/devices`,
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
    run: async (scene) => {
      for (let round = 0; round < sized(scene, 1, 3) && !scene.stopped.aborted; round++) {
        await atOnce(sized(scene, 3, 40), (n) =>
          scene.call({
            url: `${scene.apiUrl}/api/v1/session`,
            method: 'POST',
            headers: { ...JSON_BODY, 'X-Forwarded-For': `10.8.${round}.${n + 1}` },
            body: JSON.stringify({ email: `nobody-${round}-${n}@example.com`, password: 'guess' }),
          }),
        );
        await sleep(sized(scene, 1, ROUND_MS));
      }
    },
  },
  {
    name: 'guesses of the ingest token',
    accounts: 0,
    run: (scene) =>
      inTurn(scene, sized(scene, 50, 3_000), 16, (n) =>
        scene.call({
          url: `${scene.ingestUrl}/osmand?id=${scene.firstImei}&lat=1&lon=1&token=guess-${n}`,
          headers: { 'X-Forwarded-For': '10.7.0.1' },
        }),
      ),
  },
];

const collection = (features: readonly string[]): string =>
  `{"type":"FeatureCollection","features":[${features.join(',')}]}`;

/** Sixty at once, and again: what one key may ask in a minute. */
async function twice(scene: Scene, work: (scene: Scene, n: number) => Promise<unknown>): Promise<void> {
  const times = sized(scene, 4, 59);
  for (let round = 0; round < 2 && !scene.stopped.aborted; round++) {
    await atOnce(times, (n) => work(scene, n));
  }
}

function get(scene: Scene, path: string): Promise<number | null> {
  return scene.call({ url: scene.apiUrl + path, headers: headersOf(accountOf(scene)) });
}

function importAreas(scene: Scene, body: string | Buffer, manner?: 'unfinished'): Promise<number | null> {
  const encoding = typeof body === 'string' ? {} : { 'Content-Encoding': 'gzip' };
  return scene.call({
    url: `${scene.apiUrl}/api/v3/areas/import`,
    method: 'POST',
    headers: { ...headersOf(accountOf(scene)), ...GEOJSON, ...encoding },
    body,
    ...(manner === undefined ? {} : { manner }),
  });
}

async function seedOldDeliveries(seeding: Parameters<NonNullable<Attack['seed']>>[0]): Promise<void> {
  const { accountId } = accountOf(seeding);
  const [id = 0] = await seedWebhooks(seeding.sql, accountId, [`${seeding.receiverUrl}/old`]);
  await seedDeliveries(seeding.sql, accountId, id, sized(seeding, 500, 200_000, 1_000_000));
}

/** The id of the one endpoint of the first account. */
async function webhookOf(scene: Scene): Promise<number> {
  const response = await fetch(`${scene.apiUrl}/api/webhooks`, { headers: headersOf(accountOf(scene)) });
  const { data } = (await response.json()) as { data: { id: number }[] };
  return data[0]?.id ?? 0;
}

/** An event on the one device of each account. */
async function sendTags(scene: Scene, n: number): Promise<void> {
  const points = scene.accounts.map((_, account) => ({
    imei: String(scene.firstImei + account),
    recorded_at: Date.now(),
    latitude: 46,
    longitude: 11,
    rfid: `tag ${n}`,
  }));
  await scene.call({
    url: `${scene.ingestUrl}/positions`,
    method: 'POST',
    headers: { ...JSON_BODY, 'X-Ingest-Token': scene.token },
    body: JSON.stringify(points),
  });
}
