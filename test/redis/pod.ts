import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { LimitRequest, RateLimits } from '../../src/redis/rateLimiter.ts';
import {
  type ConnectionLog,
  connectRedis,
  type RedisEvent,
  type RedisKeys,
  RedisPort,
  redisKeys,
} from '../../src/redis/redisConnection.ts';
import { RedisRateLimiter, RedisWorldVersions } from '../../src/redis/redisRateLimiter.ts';
import { patienceMs } from '../support/patience.ts';

/** So long that a busy machine does not lose a Redis that is there. */
const PATIENT_MS = 5_000;
/** Short, so that a test of a lost Redis is short; none of them depends on the figures. */
export const HASTY_MS = 300;
const REST_MS = 50;
const EVENTUALLY_MS = 10_000;
const POLL_MS = 10;

export const SILENT: ConnectionLog = { info: () => {}, warn: () => {} };
export const LIMITS: RateLimits = { ipMinute: 120, keyMinute: 120, keyHour: 1000 };

/** What one process holds of Redis. */
export interface TestPod {
  readonly redis: Redis;
  readonly port: RedisPort;
  readonly limiter: RedisRateLimiter;
  readonly versions: RedisWorldVersions;
  readonly names: RedisKeys;
  readonly events: RedisEvent[];
}

export interface TestPodOptions {
  readonly limits?: RateLimits;
  /** For pods that belong together. */
  readonly namespace?: string;
  readonly catchUp?: () => Promise<void>;
  readonly onCatchUpFailed?: (error: unknown) => void;
  /** HASTY_MS for tests in which Redis falls silent. */
  readonly deadlineMs?: number;
}

let pods = 0;

/**
 * A connected pod whose memory has caught up. It is disconnected after the test. Unless a namespace is given it has one of
 * its own, so that pods of different tests may share a Redis.
 */
export async function startPod(t: TestContext, url: string, options: TestPodOptions = {}): Promise<TestPod> {
  const namespace = options.namespace ?? `test${++pods}`;
  const redis = connectRedis(url, SILENT, namespace);
  t.after(() => redis.disconnect());
  await once(redis, 'ready');
  const events: RedisEvent[] = [];
  const port = new RedisPort(redis, {
    onEvent: (event) => events.push(event),
    deadlineMs: options.deadlineMs ?? patienceMs(PATIENT_MS),
    restMs: REST_MS,
  });
  const names = redisKeys(namespace, url);
  const limiter = new RedisRateLimiter(port, names, {
    limits: options.limits ?? LIMITS,
    catchUp: options.catchUp ?? (async () => {}),
    onCatchUpFailed: options.onCatchUpFailed ?? (() => {}),
  });
  // The first call makes the limiter ask for the catching up.
  await limiter.check(asks({ verified: true }), 0);
  return { redis, port, limiter, versions: new RedisWorldVersions(port, names), names, events };
}

/** A request that asks for nothing but what is given. */
export function asks(given: Partial<LimitRequest>): LimitRequest {
  return { ip: null, keyId: null, refundIp: null, worldIds: [], versions: [], verified: false, ...given };
}

/** Waits for something that another process does; the test fails when it does not happen for very long. */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const untilMs = Date.now() + patienceMs(EVENTUALLY_MS); Date.now() < untilMs; await sleep(POLL_MS)) {
    if (await holds()) return;
  }
  throw new Error(`never happened: ${what}`);
}

/** Fails a test whose call hangs; how long it takes otherwise does not matter. */
export async function answers<T>(call: T | Promise<T>): Promise<T> {
  const abort = new AbortController();
  const tooLate = sleep(patienceMs(EVENTUALLY_MS), undefined, { signal: abort.signal }).then(() => {
    throw new Error('the call hangs');
  });
  try {
    return await Promise.race([call, tooLate]);
  } finally {
    abort.abort();
    tooLate.catch(() => {});
  }
}
