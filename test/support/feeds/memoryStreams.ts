import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { KeyState } from '../../../src/access/credentials.ts';
import type { EventReader } from '../../../src/feeds/readEvents.ts';
import { type StreamRequest, Streams } from '../../../src/feeds/streams/streams.ts';
import type { DeviceView } from '../../../src/feeds/streams/viewer.ts';
import type { LiveChunk, StreamSink } from '../../../src/http/answer.ts';
import { SHARED_WORLD } from './changingFleet.ts';
import { MemoryEvents } from './memoryEvents.ts';
import { MemoryFeed, WORLD } from './memoryFeed.ts';

interface ShownItem {
  readonly location: { readonly latitude: number; readonly longitude: number } | null;
}

/** What is on the other side of a stream: it takes everything at once, or nothing until it does again. */
export class FakeReader implements StreamSink {
  readonly #shown = new Map<string, ShownItem>();
  readonly #ids: string[] = [];
  /** What was written and is not read yet. */
  #unread: Buffer[] = [];
  bytes = 0;
  /** All that was written. */
  text = '';
  mostPendingBytes = 0;
  pendingBytes = 0;
  isSlow = false;
  isEnded = false;
  #whenDrained: (() => void)[] = [];

  write({ framed, payload: bytes }: LiveChunk): void {
    const frame = [`${bytes.length.toString(16)}\r\n`, '\r\n'].map((text) => Buffer.from(text)) as [
      Buffer,
      Buffer,
    ];
    assert.ok(framed.equals(Buffer.concat([frame[0], bytes, frame[1]])), 'a chunk of HTTP/1.1');
    this.bytes += bytes.length;
    this.text += bytes.toString();
    this.#unread.push(bytes);
    if (this.isSlow) this.pendingBytes += bytes.length;
    this.mostPendingBytes = Math.max(this.mostPendingBytes, this.pendingBytes);
  }

  /** What the messages have told it to show, by IMEI. */
  get shown(): ReadonlyMap<string, ShownItem> {
    this.#read();
    return this.#shown;
  }

  /** Of all messages. */
  get ids(): readonly string[] {
    this.#read();
    return this.#ids;
  }

  #read(): void {
    const blocks = Buffer.concat(this.#unread.splice(0)).toString().split('\n\n').filter(Boolean);
    for (const block of blocks) {
      const [event, id = '', data = ''] = block.split('\n').map((line) => line.slice(line.indexOf(': ') + 2));
      this.#ids.push(id);
      if (event !== 'device') continue;
      const item = JSON.parse(data);
      if (item.left === true || item.removed === true) this.#shown.delete(item.imei);
      else this.#shown.set(item.imei, item);
    }
  }

  onDrained(listener: () => void): void {
    this.#whenDrained.push(listener);
    if (!this.isSlow) this.takeAll();
  }

  takeAll(): void {
    this.isSlow = false;
    this.pendingBytes = 0;
    for (const listener of this.#whenDrained.splice(0)) listener();
  }

  end(): void {
    this.isEnded = true;
  }

  destroy(): void {
    this.isEnded = true;
  }
}

/** The streams of a pod over a memory that a test moves on, without Postgres. Timers are mocked. */
export class MemoryStreams extends MemoryFeed {
  readonly streams: Streams;
  readonly events = new MemoryEvents(() => this.ports.follower.applied);
  readonly #t: TestContext;

  constructor(t: TestContext, devices = 0) {
    super(devices);
    this.#t = t;
    t.mock.timers.reset();
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    const keyring = { onDropped: () => undefined };
    const log = { warn: (fields: object) => assert.fail(`${JSON.stringify(fields)}`) };
    const reader = this.events as unknown as EventReader;
    this.streams = new Streams({ ...this.ports, reader, keyring, log });
  }

  async open(
    view: DeviceView | null,
    {
      accountId = 1,
      keyId = accountId,
      ...request
    }: Partial<StreamRequest> & { accountId?: number; keyId?: number } = {},
  ): Promise<{ reader: FakeReader; close(): void }> {
    const caller = { id: keyId, accountId, worldIds: [WORLD, SHARED_WORLD] } as unknown as KeyState;
    const asked = { cursor: null, withSnapshot: true, devices: true, events: false, view, ...request };
    const opened = await this.streams.open(caller, asked);
    assert.ok(typeof opened === 'object', `${String(opened)}`);
    const reader = new FakeReader();
    const { close } = opened.attach(reader);
    return { reader, close };
  }

  /** Lets the timers run that are due until then, and everything that they set off. */
  async run(forMs: number): Promise<void> {
    await this.settle();
    this.#t.mock.timers.tick(forMs);
    await this.settle();
  }

  /** Until every stream has been sent everything. */
  async catchUp(): Promise<void> {
    for (let n = 0; n < 6; n++) await this.run(600);
  }
}
