import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { patienceMs } from '../patience.ts';
import { bareRequest, type Reply, request } from '../pod.ts';
import { IS_TORTURE } from '../torture.ts';
import { type ChangedItem, eventsIn, openAnswer, type StreamMessage } from './feedReader.ts';

/** A stopped pod accepts connections and says nothing: a caller gives up and asks another. */
const PATIENCE_MS = 8_000;
const RETRY_MS = 20;
/** Between calls: in the short form the processor belongs to the restarts. */
const PAUSE_MS = IS_TORTURE ? 0 : 100;

/** Where a follower asks next: a pod that runs, or did a moment ago. */
export type AnyPod = () => string;

type Part = 'devices' | 'events';

/** What a reader has collected. */
export class Collected {
  /** In the order in which they came, since the reader began or began anew. */
  events: number[] = [];
  devices = new Map<string, ChangedItem>();
  /** How often each part was begun: it has a cursor then. More than once means that the cursor had expired. */
  readonly begun = { devices: 0, events: 0 };
  /** Calls, pages or messages that brought something. */
  taken = 0;
  /** Devices that a view was told to be shown no longer. */
  left = 0;

  clear(part: Part): void {
    if (part === 'devices') this.devices = new Map();
    else this.events = [];
  }

  hasBegun(times: number): boolean {
    return this.begun.devices === times && this.begun.events === times;
  }

  takeDevice(item: ChangedItem): void {
    this.taken++;
    if (item.left) this.left++;
    if (item.removed || item.left) {
      this.devices.delete(item.imei);
      return;
    }
    const before = this.devices.get(item.imei);
    if (before !== undefined) proveNotOlder(item, before);
    this.devices.set(item.imei, item);
  }

  takeEvent(id: number): void {
    this.taken++;
    this.events.push(id);
  }
}

/** No answer is older than its cursor: names of tests are numbered in the order of their writing. */
function proveNotOlder(item: ChangedItem, before: ChangedItem): void {
  const [now, was] = [item, before].map(({ name }) => Number(name?.slice(1) ?? 0)) as [number, number];
  assert.ok(now >= was, `${item.imei} was ${before.name} and is ${item.name}`);
  const [at, wasAt] = [item, before].map(({ location }) => location?.recorded_at ?? '') as [string, string];
  const isMadeAnew = item.location === null && now > was;
  assert.ok(at >= wasAt || isMadeAnew, `${item.imei} was at ${wasAt} and is at ${at}`);
}

/** Follows everything that a key sees, hopping from pod to pod, until it is stopped. */
export interface Follower {
  readonly name: string;
  readonly collected: Collected;
  run(): Promise<void>;
  stop(): void;
}

/** Follows both feeds by calls, with `wait` or without. */
export class PageFollower implements Follower {
  readonly name: string;
  readonly collected = new Collected();
  readonly #key: string;
  readonly #pod: AnyPod;
  readonly #query: () => string;
  readonly #isOver = Promise.withResolvers<void>();
  #isStopped = false;

  constructor(name: string, key: string, pod: AnyPod, query: () => string) {
    this.name = name;
    this.#key = key;
    this.#pod = pod;
    this.#query = query;
  }

  stop(): void {
    this.#isStopped = true;
    this.#isOver.resolve();
  }

  async run(): Promise<void> {
    await Promise.all([
      this.#follow('devices', 'devices/changes', (item) => this.collected.takeDevice(item as ChangedItem)),
      this.#follow('events', 'events/feed', (item) => this.collected.takeEvent((item as { id: number }).id)),
    ]);
  }

  async #follow(part: Part, path: string, take: (item: unknown) => void): Promise<void> {
    let cursor = '';
    while (!this.#isStopped) {
      const at = cursor === '' ? '' : `&cursor=${cursor}`;
      const reply = await this.#ask(`/api/v3/${path}?${this.#query()}${at}`);
      if (reply?.status === 410) {
        this.collected.clear(part);
        cursor = '';
      } else if (reply === null) await Promise.race([sleep(RETRY_MS), this.#isOver.promise]);
      else {
        if (cursor === '') this.collected.begun[part]++;
        for (const item of reply.body.data) take(item);
        cursor = reply.body.meta.cursor;
        await sleep(PAUSE_MS);
      }
    }
  }

  /** An answer; null where the pod was killed, or cannot ask Postgres. */
  async #ask(path: string): Promise<Reply | null> {
    const signal = AbortSignal.timeout(patienceMs(PATIENCE_MS));
    const reply = await request(`${this.#pod()}${path}`, {
      headers: { 'X-API-Key': this.#key },
      signal,
    }).catch(noAnswer);
    if (reply === null || reply.status === 503) return null;
    assert.ok(reply.status === 200 || reply.status === 410, `${this.name}: ${reply.status} ${reply.text}`);
    return reply;
  }
}

/** A part of the fleet that a stream is asked for. */
export interface FollowedView {
  readonly query: string;
  /** Where its events begin. */
  readonly cursor: string;
  /** Throws where a device is shown that is not part of it. */
  prove(item: ChangedItem): void;
}

/** Follows the stream; leaves each pod after a while for the next, if that does not end it before. */
export class StreamFollower implements Follower {
  readonly name: string;
  readonly collected = new Collected();
  readonly #key: string;
  readonly #pod: AnyPod;
  readonly #stayMs: () => number;
  readonly #view: FollowedView | null;
  #abort = new AbortController();
  #isStopped = false;
  /** Streams that were opened. */
  opened = 0;

  constructor(
    name: string,
    key: string,
    pod: AnyPod,
    stayMs: () => number,
    view: FollowedView | null = null,
  ) {
    this.name = name;
    this.#key = key;
    this.#pod = pod;
    this.#stayMs = stayMs;
    this.#view = view;
  }

  /** Its connection is lost. */
  drop(): void {
    this.#abort.abort();
  }

  stop(): void {
    this.#isStopped = true;
    this.#abort.abort();
  }

  async run(): Promise<void> {
    let lastId = this.#view?.cursor ?? '';
    while (!this.#isStopped) {
      this.#abort = new AbortController();
      const headers = { 'X-API-Key': this.#key, ...(lastId === '' ? {} : { 'Last-Event-ID': lastId }) };
      const opening = setTimeout(() => this.#abort.abort(), patienceMs(PATIENCE_MS));
      const url = `${this.#pod()}/api/v3/stream?${this.#view?.query ?? ''}`;
      const answer = await openAnswer(url, headers, this.#abort.signal).catch(noAnswer);
      clearTimeout(opening);
      const status = answer?.statusCode ?? 0;
      if (answer === null || status !== 200) {
        const said = answer === null ? '' : await text(answer).catch(noAnswer);
        assert.ok([0, 410, 503].includes(status), `${this.name}: ${status} ${said}`);
        if (status === 410) {
          for (const part of ['devices', 'events'] as const) this.collected.clear(part);
          lastId = '';
        }
        await sleep(RETRY_MS);
        continue;
      }
      this.opened++;
      // A view begins with all that it shows.
      if (this.#view !== null) this.collected.clear('devices');
      const leaving = setTimeout(() => this.#abort.abort(), this.#stayMs());
      await eventsIn(answer, (message) => {
        this.#take(message, lastId === '');
        lastId = message.id;
      }).catch(noAnswer);
      clearTimeout(leaving);
    }
  }

  #take({ event, data }: StreamMessage, isFirst: boolean): void {
    if (isFirst) for (const part of ['devices', 'events'] as const) this.collected.begun[part]++;
    if (event === 'device') {
      if (!data.removed && !data.left) this.#view?.prove(data);
      this.collected.takeDevice(data);
    }
    if (event === 'fleet_event') this.collected.takeEvent(data.id);
  }
}

/** Connections that are cut off are what such a test is about; anything else is a mistake. */
function noAnswer(error: unknown): null {
  const isCut =
    error instanceof Error &&
    (/Abort|Timeout/.test(error.name) || /^ECONN|^EPIPE/.test(String((error as NodeJS.ErrnoException).code)));
  if (isCut || error instanceof TypeError) return null;
  throw error;
}

/** What a follower sees of a cursor that it kept: the code, or null where the call is answered. */
export async function errorOf(pod: string, key: string, path: string): Promise<string | null> {
  const { status, body } = await bareRequest(`${pod}/api/v3/${path}`, { headers: { 'X-API-Key': key } });
  return status === 200 ? null : `${status} ${body?.error?.code}`;
}
