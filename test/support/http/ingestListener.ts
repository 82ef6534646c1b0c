import { type IncomingMessage, request } from 'node:http';
import type { TestContext } from 'node:test';
import { parseCidrs } from '../../../src/access/ipAddress.ts';
import { SenderAuthorizer } from '../../../src/access/senderAuthorizer.ts';
import type { CallTraces } from '../../../src/http/dispatcher.ts';
import { createHttpServer } from '../../../src/http/server.ts';
import type { Fix } from '../../../src/ingest/fix.ts';
import type { Ingest } from '../../../src/ingest/ingest.ts';
import {
  BODY_SLOTS,
  IngestBodies,
  ingestListener as listenerOf,
} from '../../../src/ingest/positions.routes.ts';
import { FairSemaphore } from '../../../src/lib/fairSemaphore.ts';
import { WorkTurns } from '../../../src/lib/workTurns.ts';
import { serve } from './serve.ts';

export const TOKENS = ['token-for-all-tests', 'another-token-for-tests'] as const;

export interface ListenerAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
  readonly text: string;
}

export interface Sending {
  /** As from this address; the listener trusts whoever connects. */
  readonly from?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string | number>>;
  /** null: none in the header. */
  readonly token?: string | null;
}

/** The ingest listener alone, on a store that takes everything unless the test says otherwise. */
export async function ingestListener(
  t: TestContext,
  {
    store = async (fixes) => fixes.map(() => 'accepted' as const),
    places = BODY_SLOTS,
    logged = [],
    traces = null,
  }: {
    store?: (fixes: readonly Fix[]) => ReturnType<Ingest['store']>;
    places?: ConstructorParameters<typeof FairSemaphore>[0];
    /** Gets the levels of what is logged. */
    logged?: string[];
    traces?: CallTraces | null;
  } = {},
) {
  const semaphore = new FairSemaphore<string>(places);
  const forms = new FairSemaphore<string>(places);
  const proxies = parseCidrs('127.0.0.1');
  if (!proxies.ok) throw new Error('the network of this machine is none');
  const server = createHttpServer(
    listenerOf({
      ingest: { store } as unknown as Ingest,
      senders: new SenderAuthorizer(TOKENS, Date.now),
      bodies: new IngestBodies(new WorkTurns(3), { known: semaphore, forms }),
      trustedProxies: proxies.value,
      longestHistoryDays: 730,
      clock: Date.now,
      probes: {
        loaded: () => true,
        canAnswer: () => true,
        degradations: () => [],
        writeTrouble: async () => null,
        lastWriteTrouble: () => null,
      },
      onDamaged: () => undefined,
      traces,
      metrics: {
        exposition: async () => ({ contentType: 'text/plain', text: '' }),
        countRejected: () => undefined,
        observeRequest: () => undefined,
      },
      log: { error: () => void logged.push('error'), warn: () => void logged.push('warn') },
    }),
  );
  const { port } = await serve(t, server);

  /** A request that is open: its body is still to be written. */
  const open = ({
    from = '192.0.2.1',
    path = '/positions',
    headers = {},
    token = TOKENS[0],
  }: Sending = {}) => {
    const sent = request({
      host: '127.0.0.1',
      port,
      path,
      method: 'POST',
      agent: false,
      headers: {
        'X-Forwarded-For': from,
        ...(token === null ? {} : { 'X-Ingest-Token': token }),
        ...headers,
      },
    });
    const answer = new Promise<ListenerAnswer>((resolve, reject) => {
      sent.once('response', (response) => readAnswer(response).then(resolve, reject));
      sent.once('error', reject);
    });
    answer.catch(() => undefined); // whoever hangs up does not ask
    return { sent, answer };
  };
  const send = (body: string | Buffer, sending: Sending = {}): Promise<ListenerAnswer> => {
    const isChunked = sending.headers?.['Transfer-Encoding'] !== undefined;
    const headers = {
      ...(isChunked ? {} : { 'Content-Length': Buffer.byteLength(body) }),
      ...sending.headers,
    };
    const { sent, answer } = open({ ...sending, headers });
    sent.end(body);
    return answer;
  };
  return { open, send, semaphore, forms };
}

async function readAnswer(response: IncomingMessage): Promise<ListenerAnswer> {
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  const text = Buffer.concat(pieces).toString();
  return { status: response.statusCode ?? 0, text, body: text === '' ? undefined : JSON.parse(text) };
}

/** One point as /positions takes it. */
export const wire = (n = 0, values: object = {}): string =>
  JSON.stringify({
    imei: String(350_000_000_000_000 + n),
    recorded_at: Date.now() - 60_000,
    latitude: 1,
    longitude: 1,
    ...values,
  });
