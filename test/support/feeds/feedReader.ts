import assert from 'node:assert/strict';
import type { Pod, Reply } from '../pod.ts';
import { waitFor } from '../waitFor.ts';

/** An item of GET /devices/changes. */
export interface ChangedItem {
  readonly imei: string;
  readonly removed?: true;
  readonly name: string | null;
  readonly ignition: boolean | null;
  readonly location: {
    readonly latitude: number;
    readonly longitude: number;
    readonly recorded_at: string;
    readonly heading: number;
    readonly altitude_m: number;
  } | null;
}

/** Follows the devices of a key, as an integrator does: from page to page, on whichever pod. */
export class DeviceReader {
  readonly #key: string;
  readonly devices = new Map<string, ChangedItem>();
  cursor: string | null = null;
  pages = 0;

  constructor(key: string) {
    this.#key = key;
  }

  /** One page; its items are taken over. */
  async page(pod: Pod, query = ''): Promise<Reply> {
    const at = this.cursor === null ? '' : `&cursor=${this.cursor}`;
    const reply = await pod.get(`/api/v3/devices/changes?${query}${at}`, this.#key);
    if (reply.status === 200) this.#take(reply);
    return reply;
  }

  /** Everything that is new; returns its items. */
  async follow(pod: Pod, query = ''): Promise<ChangedItem[]> {
    const items: ChangedItem[] = [];
    for (;;) {
      const { status, body, text } = await this.page(pod, query);
      assert.equal(status, 200, text);
      items.push(...body.data);
      if (!body.meta.has_more) return items;
    }
  }

  /** Follows until nothing comes twice any more: then this pod has followed what it has sent of its own commits. */
  async settle(pod: Pod): Promise<void> {
    await waitFor(async () => (await this.follow(pod)).length === 0);
  }

  #take({ body }: Reply): void {
    this.pages++;
    const imeis = new Set<string>();
    for (const item of body.data as ChangedItem[]) {
      assert.ok(!imeis.has(item.imei), 'a device stands once on a page');
      imeis.add(item.imei);
      if (item.removed) this.devices.delete(item.imei);
      else this.devices.set(item.imei, item);
    }
    assert.ok(body.meta.cursor.length <= 500);
    this.cursor = body.meta.cursor;
  }
}

/** Follows the events of a key. */
export class EventReader {
  readonly #key: string;
  /** In the order in which they came. */
  readonly ids: number[] = [];
  cursor: string | null = null;

  constructor(key: string) {
    this.#key = key;
  }

  async page(pod: Pod, query = ''): Promise<Reply> {
    const at = this.cursor === null ? '' : `&cursor=${this.cursor}`;
    const reply = await pod.get(`/api/v3/events/feed?${query}${at}`, this.#key);
    assert.equal(reply.status, 200, reply.text);
    for (const { id } of reply.body.data) this.ids.push(id);
    assert.ok(reply.body.meta.cursor.length <= 500);
    this.cursor = reply.body.meta.cursor;
    return reply;
  }

  /** Everything that is new. */
  async follow(pod: Pod, query = ''): Promise<{ readonly id: number; readonly type: string }[]> {
    const events: { id: number; type: string }[] = [];
    for (;;) {
      const { body } = await this.page(pod, query);
      events.push(...body.data);
      if (!body.meta.has_more) return events;
    }
  }
}

/** A message of the stream. */
export interface StreamMessage {
  readonly event: string;
  readonly id: string;
  // biome-ignore lint/suspicious/noExplicitAny: items of several shapes
  readonly data: any;
}

/** Reads a stream as a browser's fetch would. */
export class StreamClient {
  readonly #abort = new AbortController();
  readonly messages: StreamMessage[] = [];
  /** What came beside messages, such as retry. */
  readonly others: string[] = [];
  readonly response: Response;
  /** Resolves when the stream has ended. */
  readonly ended: Promise<void>;

  private constructor(response: Response, abort: AbortController) {
    this.response = response;
    this.#abort = abort;
    this.ended = this.#read().catch(() => undefined);
  }

  static async open(
    pod: Pod,
    key: string,
    query = '',
    headers: Record<string, string> = {},
    version: 'v1' | 'v3' = 'v3',
  ): Promise<StreamClient> {
    const abort = new AbortController();
    const response = await fetch(`${pod.api}/api/${version}/stream?${query}`, {
      headers: { ...(key !== '' && { 'X-API-Key': key }), ...headers },
      signal: abort.signal,
    });
    return new StreamClient(response, abort);
  }

  get lastId(): string {
    return this.messages.at(-1)?.id ?? '';
  }

  of(event: string): StreamMessage[] {
    return this.messages.filter((message) => message.event === event);
  }

  close(): void {
    this.#abort.abort();
  }

  #read(): Promise<void> {
    return eventsIn(
      this.response,
      (message) => this.messages.push(message),
      (block) => this.others.push(block),
    );
  }
}

/** Gives each message of a stream to `take`, and what else comes to `other`, until it ends. */
export async function eventsIn(
  response: Response,
  take: (message: StreamMessage) => void,
  other: (block: string) => void = () => undefined,
): Promise<void> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const block = text.slice(0, end);
      text = text.slice(end + 2);
      const fields = new Map(block.split('\n').map((line) => line.split(/: (.*)/s, 2) as [string, string]));
      const data = fields.get('data');
      const id = fields.get('id') ?? '';
      if (data === undefined) other(block);
      else {
        assert.ok(id.length > 0 && id.length <= 500, `an id of ${id.length} characters`);
        take({ event: fields.get('event') ?? '', id, data: JSON.parse(data) });
      }
    }
  }
}
