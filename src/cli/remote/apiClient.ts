import { setTimeout as sleep } from 'node:timers/promises';
import { isJsonObject, type JsonObject } from '../../lib/parseText.ts';

/** A call did not succeed, and why: a sentence for the operator. */
export class ApiFailure extends Error {
  override name = 'ApiFailure';
  /** The call may have been carried out although its answer was lost. */
  readonly mayHaveHappened: boolean;

  constructor(message: string, mayHaveHappened = false) {
    super(message);
    this.mayHaveHappened = mayHaveHappened;
  }
}

interface ApiClientPorts {
  /** Of the service, without `/api/v3`. */
  readonly url: string;
  readonly key: string;
  say(line: string): void;
  readonly interrupted: AbortSignal;
  /** Between attempts; a test makes it short. */
  readonly pauseMs?: number;
}

export interface ApiReply {
  readonly status: number;
  readonly body: JsonObject;
}

/** Longer than the service takes for any answer. */
const ANSWER_LIMIT_MS = 150_000;
/** Attempts of a call that a pod does not answer, or says that it cannot now. */
const ATTEMPTS = 4;
/** Between attempts; it doubles up to PAUSE_MAX_MS. */
const PAUSE_MS = 500;
const PAUSE_MAX_MS = 30_000;

/**
 * Calls v3 of a running service with an API key. A call beyond a limit waits until it may be made, for an hour where that is
 * the limit. Once the service has answered, a call that gets no answer is made again some times: another pod may take it.
 */
export class ApiClient {
  readonly #ports: ApiClientPorts;
  readonly #base: string;
  #hasAnswered = false;

  constructor(ports: ApiClientPorts) {
    this.#ports = ports;
    let { url } = ports;
    while (url.endsWith('/')) url = url.slice(0, -1);
    this.#base = `${url}/api/v3`;
  }

  /** An answer of the service with one of these statuses; rejects with ApiFailure for any other, and when interrupted. */
  async call(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    expected: readonly number[],
    body?: string,
  ): Promise<ApiReply> {
    const { say, interrupted, pauseMs = PAUSE_MS } = this.#ports;
    let attempts = 0;
    let waitMs = pauseMs;
    for (let isLimited = false; ; ) {
      if (interrupted.aborted) throw new ApiFailure('interrupted');
      const reply = await this.#attempt(method, path, body).catch((error: unknown) => error as Error);
      if (reply instanceof Error || reply.status === 503) {
        const reason = reply instanceof Error ? reasonOf(reply) : messageOf(reply);
        if (!this.#hasAnswered || ++attempts === ATTEMPTS)
          throw new ApiFailure(`${this.#ports.url} does not answer: ${reason}`, writes(method, path));
        say(`no answer (${reason}); trying again`);
      } else if (reply.status === 429) {
        if (!isLimited) say(`waiting: ${messageOf(reply)}`);
        isLimited = true;
      } else {
        this.#hasAnswered = true;
        if (expected.includes(reply.status)) return reply;
        throw new ApiFailure(this.#refusal(reply));
      }
      const sentMs = reply instanceof Error ? null : reply.retryAfterMs;
      await sleep(sentMs ?? waitMs, undefined, { signal: interrupted }).catch(() => undefined);
      waitMs = Math.min(2 * waitMs, PAUSE_MAX_MS);
    }
  }

  async #attempt(method: string, path: string, body: string | undefined) {
    const { key } = this.#ports;
    const headers = { 'X-API-Key': key, ...(body !== undefined && { 'Content-Type': 'application/json' }) };
    const response = await fetch(`${this.#base}${path}`, {
      method,
      headers,
      // The key must not follow to another place.
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
      ...(body !== undefined && { body }),
    });
    const seconds = Number(response.headers.get('Retry-After') ?? Number.NaN);
    const text = await response.text();
    return {
      status: response.status,
      body: text === '' ? {} : jsonObjectOf(text),
      retryAfterMs: seconds >= 0 ? 1000 * seconds : null,
    };
  }

  #refusal({ status, body }: ApiReply): string {
    const { url } = this.#ports;
    const { error } = body;
    if (!isJsonObject(error)) return `${url} is not the address of this service (it answers ${status})`;
    return `${url} answers ${status} ${String(error['code'])}: ${String(error['message'])}`;
  }
}

function writes(method: string, path: string): boolean {
  return method !== 'GET' && !path.endsWith('dry_run=true');
}

/** The object that a body holds. Empty when it holds none: then something else than this service has answered. */
function jsonObjectOf(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

function messageOf({ status, body: { error } }: ApiReply): string {
  return isJsonObject(error) ? String(error['message']) : String(status);
}

/** fetch says what has happened in the cause only. */
function reasonOf(error: Error): string {
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return 'code' in cause && cause.message === '' ? String(cause.code) : cause.message;
}
