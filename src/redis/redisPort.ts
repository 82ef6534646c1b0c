import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { fail, ok, type Result } from '../lib/result.ts';

/** Why there is no answer: no connection; a pause after an error; too slow; or an error reply. */
export type RedisError = 'not_connected' | 'resting' | 'timed_out' | 'failed';

export type RedisEvent = { readonly kind: 'back' } | { readonly kind: 'lost'; readonly reason: string };

export interface RedisPortOptions {
  /** Called when Redis starts and stops answering. */
  readonly onEvent: (event: RedisEvent) => void;
  readonly deadlineMs?: number;
  readonly restMs?: number;
}

/** A call waits this long for Redis. A local Redis answers in well under 1 ms. */
const DEADLINE_MS = 100;
/** After an error no command is sent for this long. Then one command tries, while the others still fail at once. */
const REST_MS = 1_000;

/**
 * Commands to a Redis that may be lost at any moment. Every call settles within the deadline, with a value. A command
 * without an answer may have been executed, so it is never sent again.
 */
export class RedisPort {
  readonly #redis: Redis;
  readonly #onEvent: (event: RedisEvent) => void;
  readonly #deadlineMs: number;
  readonly #restMs: number;
  #session = 0;
  #up = false;
  #restUntilMs = 0;
  #isProbing = false;

  constructor(redis: Redis, { onEvent, deadlineMs = DEADLINE_MS, restMs = REST_MS }: RedisPortOptions) {
    this.#redis = redis;
    this.#onEvent = onEvent;
    this.#deadlineMs = deadlineMs;
    this.#restMs = restMs;
    redis.on('ready', () => this.#markUp());
    redis.on('close', () => {
      this.#session++;
      this.#markDown('connection closed');
    });
    if (redis.status === 'ready') this.#markUp();
  }

  /** False while a command would fail without being sent. */
  get isUsable(): boolean {
    if (this.#redis.status !== 'ready') return false;
    return this.#up || (!this.#isProbing && performance.now() >= this.#restUntilMs);
  }

  /** Changes with every connection. Redis may have forgotten what it confirmed on an earlier one (restart, failover). */
  get session(): number {
    return this.#session;
  }

  /** Runs a script by its hash. Sends the full text only if Redis does not know it, and then nothing has run yet. */
  run(
    script: LuaScript,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<Result<unknown, RedisError>> {
    return this.send(async (redis) => {
      try {
        return await redis.evalsha(script.sha1, keys.length, ...keys, ...args);
      } catch (error) {
        if (!isUnknownScript(error)) throw error;
        return redis.eval(script.lua, keys.length, ...keys, ...args);
      }
    });
  }

  async send<T>(command: (redis: Redis) => Promise<T>): Promise<Result<T, RedisError>> {
    if (!this.isUsable) return fail(this.#redis.status === 'ready' ? 'resting' : 'not_connected');
    const isProbe = !this.#up;
    if (isProbe) this.#isProbing = true;
    const outcome = await this.#withinDeadline(command(this.#redis));
    if (isProbe) this.#isProbing = false;
    if (outcome.ok) this.#markUp();
    else this.#markDown(outcome.error.reason);
    return outcome.ok ? outcome : fail(outcome.error.error);
  }

  #withinDeadline<T>(answer: Promise<T>): Promise<Result<T, { error: RedisError; reason: string }>> {
    return new Promise((resolve) => {
      // If this process itself stalled, the answer is waiting in the socket: read the sockets once before giving up.
      const timer = setTimeout(
        () =>
          setImmediate(() =>
            resolve(fail({ error: 'timed_out', reason: `no answer in ${this.#deadlineMs} ms` })),
          ),
        this.#deadlineMs,
      );
      answer.then(
        (value) => {
          clearTimeout(timer);
          resolve(ok(value));
        },
        (error: unknown) => {
          clearTimeout(timer);
          resolve(fail({ error: 'failed', reason: error instanceof Error ? error.message : String(error) }));
        },
      );
    });
  }

  #markUp(): void {
    if (this.#up) return;
    this.#up = true;
    this.#onEvent({ kind: 'back' });
  }

  #markDown(reason: string): void {
    this.#restUntilMs = performance.now() + this.#restMs;
    if (!this.#up) return;
    this.#up = false;
    this.#onEvent({ kind: 'lost', reason });
  }
}

export interface LuaScript {
  readonly lua: string;
  readonly sha1: string;
}

export function luaScript(lua: string): LuaScript {
  return { lua, sha1: createHash('sha1').update(lua).digest('hex') };
}

/** The first word of an error reply is its code (RESP specification, "Simple errors"). */
function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT ');
}
