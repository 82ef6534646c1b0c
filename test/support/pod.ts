import type { TestContext } from 'node:test';
import { type Logger, pino } from 'pino';
import { type Env, readConfig } from '../../src/config.ts';
import { invariant } from '../../src/lib/errors.ts';
import { type Clock, systemClock } from '../../src/lib/time.ts';
import { startService } from '../../src/wiring.ts';
import { checkDescribed } from './http/describedAnswer.ts';

export const INGEST_TOKEN = 'token-for-all-tests';

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON; undefined without a body. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
  readonly text: string;
}

/** A pod, wherever it runs. */
export interface PodAddress {
  readonly api: string;
  readonly ingest: string;
  get(path: string, key?: string, headers?: Record<string, string>): Promise<Reply>;
  /** Sends points and returns the summary; throws unless the answer is 200. */
  // biome-ignore lint/suspicious/noExplicitAny: see Reply
  points(points: readonly object[]): Promise<any>;
}

/** A wired pod in this process, with its listeners on free ports. */
export interface Pod extends PodAddress {
  stop(): Promise<void>;
}

/** Variables that let tests call as often as they like. */
export const NO_LIMITS: Env = {
  RATE_LIMIT_KEY_MINUTE: '0',
  RATE_LIMIT_KEY_HOUR: '0',
  RATE_LIMIT_IP_MINUTE: '0',
};

export interface PodOptions {
  readonly env?: Env;
  readonly clock?: Clock;
  readonly t?: TestContext;
  /** Calls are refused while the event loop is late. Here it is late whenever the test itself computes. */
  readonly sheds?: boolean;
  /** Where the pod's log goes; nowhere unless FLEET_TEST_LOG names a level. */
  readonly log?: Logger;
}

const testLog = (): Logger => pino({ level: process.env['FLEET_TEST_LOG'] ?? 'silent' });

/** Starts a pod on a database; it stops after the test `t`, or by `stop`. */
export async function startPod(
  databaseUrl: string,
  { env = NO_LIMITS, clock = systemClock, t, sheds = false, log = testLog() }: PodOptions = {},
): Promise<Pod> {
  const config = readConfig({
    DATABASE_URL: databaseUrl,
    INGEST_TOKEN,
    SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    PORT: '0',
    INGEST_PORT: '0',
    ...env,
  });
  invariant(config.ok, config.ok ? '' : config.error.join('; '));
  const service = await startService(config.value, log, { clock, callsSoon: false, sheds });
  let stopped: Promise<void> | null = null;
  const stop = () => {
    stopped ??= service.stop();
    return stopped;
  };
  t?.after(stop);
  const api = `http://127.0.0.1:${service.port}`;
  const ingest = `http://127.0.0.1:${service.ingestPort}`;
  return { ...podAt({ api, ingest }), stop };
}

/** A pod that listens there. */
export function podAt({ api, ingest }: Pick<PodAddress, 'api' | 'ingest'>): PodAddress {
  return {
    api,
    ingest,
    get: (path, key, headers = {}) =>
      request(`${api}${path}`, {
        headers: key === undefined ? headers : { 'X-API-Key': key, ...headers },
      }),
    points: async (points) => {
      const reply = await request(`${ingest}/positions`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': INGEST_TOKEN },
        body: JSON.stringify(points),
      });
      if (reply.status !== 200) throw new Error(`/positions answered ${reply.status}: ${reply.text}`);
      return reply.body.data;
    },
  };
}

/** Calls a service; rejects when the answer is not as the description of the API says. */
export async function request(url: string, init: RequestInit = {}): Promise<Reply> {
  const reply = await bareRequest(url, init);
  const { status, headers, text } = reply;
  const { pathname: target } = new URL(url);
  checkDescribed({ method: init.method ?? 'GET', target, status, header: (name) => headers.get(name), text });
  return reply;
}

/** Calls what is not the described API, such as an app around the routes of a test. */
export async function bareRequest(url: string, init: RequestInit = {}): Promise<Reply> {
  const response = await fetch(url, init);
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === '' ? undefined : parsedOrText(text, response.headers),
    text,
  };
}

function parsedOrText(text: string, headers: Headers): unknown {
  return /[/+]json\b/.test(headers.get('content-type') ?? '') ? (JSON.parse(text) as unknown) : text;
}
