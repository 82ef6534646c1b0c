import { eventsIn, openAnswer } from '../support/feeds/feedReader.ts';
import { anyPod, type Client, rest } from './clients.ts';
import { positionOf } from './pollers.ts';
import type { RecordedPage } from './record.ts';
import { ask, facts } from './recorder.ts';

type Items = Pick<RecordedPage, 'events' | 'points' | 'devices' | 'isLast'>;
const NOTHING: Items = { events: [], points: [], devices: [], isLast: false };
/** A stopped pod accepts connections and says nothing. */
const OPEN_LIMIT_MS = 3_000;
const STAY_MAX_MS = 4_000;
const HAS_OPENED = 200;

/** Follows a feed from page to page, on any pod; an answer that does not come is asked for again with the same cursor. */
export async function followPages(client: Client, feed: RecordedPage['feed']): Promise<void> {
  const path = { events: 'events/feed', devices: 'devices/changes', points: 'history/export' }[feed];
  const query = (): string =>
    feed === 'points'
      ? 'format=ndjson'
      : `wait=${Math.floor(client.random() * 3)}&limit=${1 + Math.floor(client.random() * 50)}`;
  let cursor = '';
  while (!client.isOver()) {
    const at = cursor === '' && feed !== 'points' ? '' : `&cursor=${cursor}`;
    const asked = await ask(anyPod(client), 'api', `/api/v3/${path}?${query()}${at}`, {
      headers: { 'X-API-Key': client.world.keys.owner },
    });
    const found =
      asked.status === 200 ? (feed === 'points' ? linesOf(asked.text) : pageOf(feed, asked.body)) : null;
    // Of an export that was cut nothing counts.
    const status = asked.status === 200 && found === null ? null : asked.status;
    client.recorder.add({
      kind: 'page',
      ...facts({ ...asked, status }),
      feed,
      follower: 'pages',
      ...(found?.items ?? NOTHING),
    });
    if (found !== null) cursor = found.cursor;
    await rest(client, 20, 150);
  }
}

interface Page {
  readonly items: Items;
  readonly cursor: string;
}

// biome-ignore lint/suspicious/noExplicitAny: answers of several shapes
function pageOf(feed: RecordedPage['feed'], { data, meta }: any): Page {
  const items =
    feed === 'events'
      ? { events: data.map(({ id }: { id: number }) => id) }
      : { devices: data.map(positionOf) };
  return { items: { ...NOTHING, ...items, isLast: !meta.has_more }, cursor: meta.cursor };
}

function linesOf(text: string): Page | null {
  const lines = text.trimEnd().split('\n');
  const last = parsed(lines.pop() ?? '');
  if (typeof last?.cursor !== 'string') return null;
  const points = lines.map((line) => {
    const { imei, recorded_at } = JSON.parse(line);
    return { imei, atMs: Date.parse(recorded_at) };
  });
  return { items: { ...NOTHING, points, isLast: !last.has_more }, cursor: last.cursor };
}

function parsed(line: string): { cursor?: unknown; has_more?: boolean } | null {
  try {
    return JSON.parse(line);
  } catch {
    return null; // cut in the middle of a line
  }
}

/** Follows the stream, and goes on on another pod when it ends or after a while. */
export async function followStream(client: Client): Promise<void> {
  const { recorder, random, world } = client;
  let lastId = '';
  while (!client.isOver()) {
    const pod = anyPod(client);
    const beginMs = performance.now();
    const abort = new AbortController();
    const headers = { 'X-API-Key': world.keys.owner, ...(lastId !== '' && { 'Last-Event-ID': lastId }) };
    const opening = setTimeout(() => abort.abort(), OPEN_LIMIT_MS);
    const url = `http://127.0.0.1:${pod.lines.api.port}/api/v3/stream`;
    const answer = await openAnswer(url, headers, abort.signal).catch(() => null);
    clearTimeout(opening);
    const events: number[] = [];
    const devices: { imei: string; atMs: number | null }[] = [];
    const status = answer?.statusCode ?? null;
    if (answer !== null && status === HAS_OPENED) {
      // Without an id it would begin anew, and have missed what came meanwhile.
      const stayMs = random() ** 2 * STAY_MAX_MS;
      let leaving = lastId === '' ? undefined : setTimeout(() => abort.abort(), stayMs);
      await eventsIn(answer, ({ event, id, data }) => {
        leaving ??= setTimeout(() => abort.abort(), stayMs);
        lastId = id;
        if (event === 'fleet_event') events.push(data.id);
        if (event === 'device' && !data.removed) devices.push(positionOf(data));
      }).catch(() => undefined);
      clearTimeout(leaving);
    }
    answer?.destroy();
    const what = 'GET /api/v3/stream';
    const call = { what, beginMs, endMs: performance.now(), process: null, status };
    for (const feed of ['events', 'devices'] as const)
      recorder.add({
        kind: 'page',
        ...call,
        feed,
        follower: 'stream',
        ...NOTHING,
        [feed]: feed === 'events' ? events : devices,
      });
    await rest(client, 20, 100);
  }
}
