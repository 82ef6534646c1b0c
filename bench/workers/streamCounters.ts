import { connect, type Socket } from 'node:net';
import { Latencies } from '../measure/latencies.ts';
import { cpuUs } from '../measure/usage.ts';
import { answerQuestions } from '../worker.ts';

export type CountersQuestion =
  /** Opens streams with `path`, `perKey` with each key. One in `readEvery` is read, beginning with the first. */
  | {
      readonly kind: 'open';
      readonly port: number;
      readonly path: string;
      readonly keys: readonly string[];
      readonly perKey: number;
      readonly readEvery: number;
    }
  | { readonly kind: 'count' }
  | { readonly kind: 'close' };

/** What came since streams were opened when there were none. */
export interface Counted {
  /** Of all streams together, with the heads of their answers. */
  readonly bytes: number;
  /** How often a socket had something to read. */
  readonly reads: number;
  /** Messages of the stream with the fewest, heartbeats included. */
  readonly fewestMessages: number;
  /** The streams that are read: their messages of devices. */
  readonly read: readonly { readonly devices: number; readonly bytes: number }[];
  /** Encoded Latencies of these messages, from the time of the point to their receipt. */
  readonly latencies: string;
  /** Of this process. */
  readonly cpuUs: number;
}

const OPENINGS = 50;
const READ_BYTES = 256 * 1024;
const END = '\n\n';
const NEW_LINE = '\n'.charCodeAt(0);
const DEVICE = /event: device\nid: [^\n]*\ndata: [^\n]*"recorded_at":"([^"]+)"[^\n]*\n\n/g;

// A worker: readers of very many streams, which count bytes and messages and look into a few.
const buffer = Buffer.alloc(READ_BYTES);
const totals = { bytes: 0, reads: 0 };
let latencies = new Latencies();
let streams: CountedStream[] = [];

/** One stream, of which messages are counted by their ends. */
class CountedStream {
  readonly socket: Socket;
  readonly isRead: boolean;
  readonly #opened = Promise.withResolvers<void>();
  #hasBegun = false;
  #endsLine = false;
  /** Of a stream that is read: the message that has begun. */
  #text = '';
  messages = 0;
  devices = 0;
  bytes = 0;

  constructor({ port, path }: CountersQuestion & { kind: 'open' }, key: string, isRead: boolean) {
    this.isRead = isRead;
    const callback = (count: number, into: Uint8Array): boolean => {
      this.#take((into as Buffer).subarray(0, count));
      return true;
    };
    // A read ends before the next begins, so one buffer does for all.
    this.socket = connect({ port, host: '127.0.0.1', onread: { buffer, callback } });
    this.socket.on('error', this.#opened.reject);
    this.socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: ${key}\r\n\r\n`);
  }

  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  #take(bytes: Buffer): void {
    totals.bytes += bytes.length;
    totals.reads++;
    this.bytes += bytes.length;
    if (!this.#hasBegun) this.#begin(bytes);
    if (this.#endsLine && bytes[0] === NEW_LINE) this.messages++;
    for (let at = bytes.indexOf(END); at !== -1; at = bytes.indexOf(END, at + 2)) this.messages++;
    this.#endsLine = bytes.at(-1) === NEW_LINE && bytes.at(-2) !== NEW_LINE;
    if (this.isRead) this.#read(bytes);
  }

  #begin(bytes: Buffer): void {
    this.#hasBegun = true;
    if (bytes.toString('latin1', 0, 12) === 'HTTP/1.1 200') this.#opened.resolve();
    else this.#opened.reject(new Error(`a stream is answered with ${bytes.toString('latin1')}`));
  }

  #read(bytes: Buffer): void {
    this.#text += bytes.toString('latin1');
    const end = this.#text.lastIndexOf(END);
    if (end === -1) return;
    const nowMs = Date.now();
    for (const [, recordedAt = ''] of this.#text.slice(0, end + END.length).matchAll(DEVICE)) {
      this.devices++;
      latencies.add(nowMs - Date.parse(recordedAt));
    }
    this.#text = this.#text.slice(end + END.length);
  }
}

answerQuestions(async (question: CountersQuestion): Promise<Counted> => {
  if (question.kind === 'open') await open(question);
  const counted = {
    ...totals,
    fewestMessages: streams.reduce((fewest, { messages }) => Math.min(fewest, messages), Infinity),
    read: streams.filter(({ isRead }) => isRead).map(({ devices, bytes }) => ({ devices, bytes })),
    latencies: latencies.encoded(),
    cpuUs: cpuUs(),
  };
  if (question.kind === 'close') {
    for (const { socket } of streams) socket.destroy();
    streams = [];
  }
  return counted;
});

async function open(question: CountersQuestion & { kind: 'open' }): Promise<void> {
  if (streams.length === 0) {
    latencies = new Latencies();
    Object.assign(totals, { bytes: 0, reads: 0 });
  }
  const keys = question.keys.flatMap((key) => Array.from({ length: question.perKey }, () => key));
  for (let at = 0; at < keys.length; at += OPENINGS) {
    const some = keys
      .slice(at, at + OPENINGS)
      .map((key, n) => new CountedStream(question, key, (at + n) % question.readEvery === 0));
    await Promise.all(some.map(({ opened }) => opened));
    streams.push(...some);
  }
}
