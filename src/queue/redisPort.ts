import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { fail, ok, type Result } from '../base/result.ts';

/** Why an answer is missing: no connection; Redis is left alone after a failure; too slow; or an error reply. */
export type Loss = 'not_connected' | 'resting' | 'timed_out' | 'failed';

export type RedisEvent = { readonly kind: 'back' } | { readonly kind: 'lost'; readonly reason: string };

export interface RedisPortOptions {
  /** Called when Redis begins and ceases to answer. */
  readonly onEvent: (event: RedisEvent) => void;
  readonly deadlineMs?: number;
  readonly restMs?: number;
}

/** A call may wait this long for Redis. A local Redis answers in well under 1 ms. */
const DEADLINE_MS = 100;
/** After a failure nobody waits for Redis for this long; then one command tries it while the others go without. */
const REST_MS = 1_000;

/**
 * Commands to a Redis that may be lost at any moment: every answer comes within the deadline, as a value. A command
 * without an answer may have been executed, and is never sent again.
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

  /** False while a command would be refused without being sent. */
  get isUsable(): boolean {
    if (this.#redis.status !== 'ready') return false;
    return this.#up || (!this.#isProbing && performance.now() >= this.#restUntilMs);
  }

  /** Changes with every connection: what another one said may be forgotten (restart, failover). */
  get session(): number {
    return this.#session;
  }

  /** Runs a script by its hash. It is sent in full only to a Redis that does not know it, where nothing was run. */
  run(
    script: LuaScript,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<Result<unknown, Loss>> {
    return this.send(async (redis) => {
      try {
        return await redis.evalsha(script.sha1, keys.length, ...keys, ...args);
      } catch (error) {
        if (!isUnknownScript(error)) throw error;
        return redis.eval(script.lua, keys.length, ...keys, ...args);
      }
    });
  }

  async send<T>(command: (redis: Redis) => Promise<T>): Promise<Result<T, Loss>> {
    if (!this.isUsable) return fail(this.#redis.status === 'ready' ? 'resting' : 'not_connected');
    const isProbe = !this.#up;
    if (isProbe) this.#isProbing = true;
    const outcome = await this.#withinDeadline(command(this.#redis));
    if (isProbe) this.#isProbing = false;
    if (outcome.ok) this.#markUp();
    else this.#markDown(outcome.error.reason);
    return outcome.ok ? outcome : fail(outcome.error.loss);
  }

  #withinDeadline<T>(answer: Promise<T>): Promise<Result<T, { loss: Loss; reason: string }>> {
    return new Promise((resolve) => {
      // When this process itself was held up, the answer waits in the socket: read the sockets once before giving up.
      const timer = setTimeout(
        () =>
          setImmediate(() =>
            resolve(fail({ loss: 'timed_out', reason: `no answer in ${this.#deadlineMs} ms` })),
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
          resolve(fail({ loss: 'failed', reason: error instanceof Error ? error.message : String(error) }));
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

/** The first word of an error reply is its code (RESP specification, "Simple errors"); the rest is prose. */
function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT ');
}
