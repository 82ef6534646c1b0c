import type { TestContext } from 'node:test';
import { dropNotifications } from './http/dropNotifications.ts';
import { NO_LIMITS, type Pod, startPod } from './pod.ts';
import { createDatabase } from './postgres/postgres.ts';
import { startRedis, type TestRedis } from './redis.ts';

/** Two pods on one Postgres and one Redis. */
export interface PodPair {
  readonly url: string;
  readonly redis: TestRedis;
  readonly pods: readonly [Pod, Pod];
}

export interface PodPairOptions {
  /** Variables of their limits; without them there is none. */
  readonly limits?: typeof NO_LIMITS;
  readonly withNotifications?: boolean;
}

export async function startPodPair(
  t: TestContext,
  { limits = NO_LIMITS, withNotifications = true }: PodPairOptions = {},
): Promise<PodPair> {
  const { url } = await createDatabase(t);
  const redis = await startRedis(t);
  if (!withNotifications) await dropNotifications(url, redis.url);
  const env = { ...limits, REDIS_URL: redis.url };
  const pods = await Promise.all([startPod(url, { t, env }), startPod(url, { t, env })]);
  return { url, redis, pods };
}
