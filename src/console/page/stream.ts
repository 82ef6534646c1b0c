import { token } from './api.ts';
import { takeServerTime } from './format.ts';

/** How a stream ended. `limited`: refused by a limit, with the sentence of the service. `expired`: begin anew. */
export type StreamEnd =
  | { readonly kind: 'ended' | 'forbidden' | 'expired' }
  | { readonly kind: 'limited'; readonly message: string };

export interface StreamReader {
  /** The stream is open. */
  opened(): void;
  take(messages: Iterable<StreamMessage>): Promise<void>;
}

/** A heartbeat comes every ten seconds. */
const SILENCE_MS = 25_000;

/** Reads the stream that a query asks for, from a cursor ('' for all) until it ends, for whatever reason. */
export async function readStream(
  asked: string,
  cursor: string,
  signal: AbortSignal,
  reader: StreamReader,
): Promise<StreamEnd> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const response = await fetch(streamPath(asked, cursor), {
      headers: { Authorization: `Bearer ${token.value}` },
      signal: AbortSignal.any([signal, silence.signal]),
    });
    takeServerTime(response);
    if (response.status === 403) return { kind: 'forbidden' };
    if (response.status === 410) return { kind: 'expired' };
    if (response.status === 429) return { kind: 'limited', message: await messageOf(response) };
    if (!response.ok || response.body === null) return { kind: 'ended' };
    reader.opened();
    const messages = new StreamMessages();
    for await (const text of bodyTexts(response.body)) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      await reader.take(messages.take(text));
    }
    return { kind: 'ended' };
  } catch {
    return { kind: 'ended' }; // cut off, silent, or unreachable: all are tried again
  } finally {
    clearTimeout(timer);
    silence.abort(); // whatever ended the reading, the line is closed
  }
}

/** Of the stream that a query asks for ('' for all of it), from a cursor or from now. */
export function streamPath(asked: string, cursor = ''): string {
  const query = [asked, cursor === '' ? '' : `cursor=${encodeURIComponent(cursor)}`].filter(
    (part) => part !== '',
  );
  return query.length === 0 ? '/api/v1/stream' : `/api/v1/stream?${query.join('&')}`;
}

async function messageOf(response: Response): Promise<string> {
  const json = await response.json().catch(() => ({}));
  return json.error?.message ?? 'too many requests';
}

/** Longer texts are kept among those that live long, and only a whole collection of garbage removes them. */
const PIECE_BYTES = 65_536;

/** The text of a body as it comes, in pieces. Rejects when the line is cut. */
export async function* bodyTexts(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  const read = readerOf(body);
  for (let bytes = await read(); bytes !== null; bytes = await read()) {
    yield decoder.decode(bytes, { stream: true });
  }
}

/** Reads the next bytes, which are gone with the next read; null at the end. */
function readerOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): () => Promise<Uint8Array | null> {
  let reader: ReadableStreamBYOBReader;
  try {
    reader = body.getReader({ mode: 'byob' });
  } catch {
    // A browser whose bodies are not byte streams: it allocates memory for each piece.
    const plain = body.getReader();
    return async () => (await plain.read()).value ?? null;
  }
  let memory = new ArrayBuffer(PIECE_BYTES);
  return async () => {
    const { value, done } = await reader.read(new Uint8Array(memory));
    if (done) return null;
    memory = value.buffer;
    return value;
  };
}

/** One message of the stream. */
export interface StreamMessage {
  readonly event: string;
  /** A cursor: the stream can be resumed behind this message. */
  readonly id: string;
  readonly data: string;
}

/** Cuts a stream of server-sent events into messages (WHATWG HTML 9.2.6), however it arrives in pieces. */
export class StreamMessages {
  #rest = '';

  /**
   * The messages that are complete with this piece, each cut out when it is asked for. Blocks without data are left out.
   * The next piece may come when all of them were taken.
   */
  *take(piece: string): Generator<StreamMessage, void> {
    const text = this.#rest + piece;
    let at = 0;
    for (;;) {
      const end = text.indexOf('\n\n', at);
      if (end === -1) break;
      const message = messageIn(text, at, end);
      at = end + 2;
      if (message !== null) yield message;
    }
    this.#rest = text.slice(at);
  }
}

/** The message whose lines are there in the text; null without data. */
function messageIn(text: string, from: number, to: number): StreamMessage | null {
  let event = 'message';
  let id = '';
  let data: string | null = null;
  for (let at = from; at < to; ) {
    const newline = text.indexOf('\n', at);
    const end = newline === -1 || newline > to ? to : newline;
    if (text.startsWith('data:', at)) data = fieldValue(text, at + 5, end);
    else if (text.startsWith('event:', at)) event = fieldValue(text, at + 6, end);
    else if (text.startsWith('id:', at)) id = fieldValue(text, at + 3, end);
    at = end + 1;
  }
  return data === null ? null : { event, id, data };
}

function fieldValue(text: string, from: number, to: number): string {
  return text.slice(text[from] === ' ' ? from + 1 : from, to);
}
