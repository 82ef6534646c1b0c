import { takeServerTime, token } from './api.ts';
import { bodyTexts } from './stream/bodyTexts.ts';
import { type StreamMessage, StreamMessages } from './stream/streamMessages.ts';

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

/** Reads the stream of the account from a cursor ('' for all) until it ends, for whatever reason. */
export async function readStream(
  cursor: string,
  signal: AbortSignal,
  reader: StreamReader,
): Promise<StreamEnd> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const query = cursor === '' ? '' : `?cursor=${encodeURIComponent(cursor)}`;
    const response = await fetch(`/api/v1/stream${query}`, {
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

async function messageOf(response: Response): Promise<string> {
  const json = await response.json().catch(() => ({}));
  return json.error?.message ?? 'too many requests';
}
