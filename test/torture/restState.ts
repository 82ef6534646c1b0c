import { setTimeout as sleep } from 'node:timers/promises';
import { DAY_MS } from '../../src/lib/time.ts';
import { positionOf } from './pollers.ts';
import type { RestEvent, RestState } from './record.ts';
import { type Asked, ask } from './recorder.ts';
import type { SimulatedPod, Site } from './site.ts';
import type { World } from './world.ts';

const PAGE = 200;
const RETRY_MS = 100;

/** What the API says now. All pods run, and nothing harms them. */
export async function readRest(site: Site, world: World): Promise<RestState> {
  const [pod] = site.pods as readonly [SimulatedPod];
  const get = (path: string, from = pod): Promise<Asked> => answered(from, path, world.keys.owner);
  const { text } = await get(
    `/api/v3/history/export?format=ndjson&from=${new Date(Date.now() - 2 * DAY_MS).toISOString()}`,
  );
  const points = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
    .map(({ imei, recorded_at }) => ({ imei, atMs: Date.parse(recorded_at) }));
  const events = (await pages(get, '/api/v3/events')).map(
    // biome-ignore lint/suspicious/noExplicitAny: an event as the API shows it
    ({ id, device_imei: imei, occurred_at, data }: any): RestEvent => ({
      id,
      imei,
      areaId: data.areaId,
      event: data.event,
      occurredAtMs: Date.parse(occurred_at),
      enteredAtMs: Date.parse(data.enteredAt),
    }),
  );
  const positions = [];
  for (const each of site.pods) {
    const { body } = await get('/api/v3/devices?limit=200', each);
    positions.push({ process: each.process ?? -1, devices: body.data.map(positionOf) });
  }
  const deliveries = [];
  for (const { id: endpoint, path } of world.endpoints)
    for (const { id, event_id: eventId, status } of await pages(get, `/api/webhooks/${endpoint}/deliveries`))
      deliveries.push({ endpoint: path, id, eventId, status });
  return { points, events: events.reverse(), positions, deliveries };
}

/** Asks until it is answered with 200: a pod may need a moment after it was harmed, and miss that a caller has left. */
async function answered(pod: SimulatedPod, path: string, key: string): Promise<Asked> {
  for (;;) {
    const asked = await ask(pod, 'api', path, { headers: { 'X-API-Key': key } });
    if (asked.status === 200) return asked;
    if (![null, 429, 503].includes(asked.status))
      throw new Error(`${asked.what}: ${asked.status} ${asked.text}`);
    await sleep(RETRY_MS);
  }
}

// biome-ignore lint/suspicious/noExplicitAny: items of several shapes
async function pages(get: (path: string) => Promise<Asked>, path: string): Promise<any[]> {
  const items = [];
  for (;;) {
    const { body } = await get(`${path}?limit=${PAGE}&offset=${items.length}`);
    items.push(...body.data);
    if (body.data.length < PAGE) return items;
  }
}
