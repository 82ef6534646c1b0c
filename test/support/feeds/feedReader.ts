import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import type { Pod, Reply } from '../pod.ts';
import { waitFor } from '../waitFor.ts';

/** An item of GET /devices/changes. */
export interface ChangedItem {
  readonly imei: string;
  readonly removed?: true;
  /** Of a view: it is shown no longer. */
  readonly left?: true;
  readonly name: string | null;
  readonly groups: readonly string[];
  readonly status: string;
  readonly ignition: boolean | null;
  readonly location: {
    readonly latitude: number;
    readonly longitude: number;
    readonly speed_kmh: number;
    readonly recorded_at: string;
    readonly heading: number;
    readonly altitude_m: number;
  } | null;
}

/** Follows a feed with a key, as an integrator does: from page to page, on whichever pod. */
abstract class FeedReader<Item> {
  readonly #path: string;
  readonly #key: string;
  cursor: string | null = null;
  pages = 0;

  constructor(path: string, key: string) {
    this.#path = path;
    this.#key = key;
  }

  protected abstract take(items: readonly Item[]): void;

  /** One page; its items are taken over. */
  async page(pod: Pod, query = ''): Promise<Reply> {
    const at = this.cursor === null ? '' : `&cursor=${this.cursor}`;
    const reply = await pod.get(`/api/v3/${this.#path}?${query}${at}`, this.#key);
    assert.equal(reply.status, 200, reply.text);
    this.pages++;
    this.take(reply.body.data);
    assert.ok(reply.body.meta.cursor.length <= 500);
    this.cursor = reply.body.meta.cursor;
    return reply;
  }

  /** Everything that is new; returns its items. */
  async follow(pod: Pod, query = ''): Promise<Item[]> {
    const items: Item[] = [];
    for (;;) {
      const { body } = await this.page(pod, query);
      items.push(...body.data);
      if (!body.meta.has_more) return items;
    }
  }

  /** Follows until nothing comes twice any more: then this pod has followed what it has sent of its own commits. */
  async settle(pod: Pod): Promise<void> {
    await waitFor(async () => (await this.follow(pod)).length === 0);
  }
}

export class DeviceReader extends FeedReader<ChangedItem> {
  readonly devices = new Map<string, ChangedItem>();

  constructor(key: string) {
    super('devices/changes', key);
  }

  protected override take(items: readonly ChangedItem[]): void {
    assert.equal(new Set(items.map(({ imei }) => imei)).size, items.length, 'a device stands once on a page');
    for (const item of items) {
      if (item.removed) this.devices.delete(item.imei);
      else this.devices.set(item.imei, item);
    }
  }
}

export class EventReader extends FeedReader<{ readonly id: number; readonly type: string }> {
  /** In the order in which they came. */
  readonly ids: number[] = [];

  constructor(key: string) {
    super('events/feed', key);
  }

  protected override take(items: readonly { readonly id: number }[]): void {
    for (const { id } of items) this.ids.push(id);
  }
}

/** A message of the stream. */
export interface StreamMessage {
  readonly event: string;
  readonly id: string;
  // biome-ignore lint/suspicious/noExplicitAny: items of several shapes
  readonly data: any;
}

/**
 * The beginning of an answer that a test may not take to its end. Not by `fetch`: after an aborted one it keeps a
 * connection without a request, for which a pod that stops waits.
 */
export async function openAnswer(
  url: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const [answer] = await once(get(url, { agent: false, headers, signal }), 'response');
  return answer;
}

/** Reads a stream. */
export class StreamClient {
  readonly #abort: AbortController;
  readonly messages: StreamMessage[] = [];
  /** What came beside messages, such as retry. */
  readonly others: string[] = [];
  readonly response: Response;
  /** Resolves when the stream has ended. */
  readonly ended: Promise<void>;

  private constructor(abort: AbortController, answer: IncomingMessage) {
    this.#abort = abort;
    const { statusCode: status = 0, headers } = answer;
    this.response = new Response(null, { status, headers: headers as Record<string, string> });
    this.ended = eventsIn(
      answer,
      (message) => this.messages.push(message),
      (block) => this.others.push(block),
    ).catch(() => undefined);
  }

  static async open(
    pod: Pod,
    key: string,
    query = '',
    headers: Record<string, string> = {},
    version: 'v1' | 'v3' = 'v3',
  ): Promise<StreamClient> {
    const abort = new AbortController();
    const sent = { ...(key !== '' && { 'X-API-Key': key }), ...headers };
    const url = `${pod.api}/api/${version}/stream?${query}`;
    return new StreamClient(abort, await openAnswer(url, sent, abort.signal));
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
}

/** Gives each message of a stream to `take`, and what else comes to `other`, until it ends. */
export async function eventsIn(
  body: AsyncIterable<Uint8Array>,
  take: (message: StreamMessage) => void,
  other: (block: string) => void = () => undefined,
): Promise<void> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
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
