import type { TestContext } from 'node:test';
import { dropNotifications } from './http/dropNotifications.ts';
import { NO_LIMITS, type Pod, startPod } from './pod.ts';
import { createDatabase } from './postgres/postgres.ts';
import { startRedis, type TestRedis } from './redis.ts';
import { started } from './started.ts';

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

/** Starts them for the tests of the suite that calls this, and stops them after it. */
export const podPair = (options?: PodPairOptions): PodPair =>
  started(
    () => startPodPair(undefined, options),
    async ({ pods, redis }) => {
      await Promise.all(pods.map((pod) => pod.stop()));
      await redis.stop();
    },
  );

export async function startPodPair(
  t?: TestContext,
  { limits = NO_LIMITS, withNotifications = true }: PodPairOptions = {},
): Promise<PodPair> {
  const { url } = await createDatabase(t);
  const redis = await startRedis(t);
  if (!withNotifications) await dropNotifications(url, redis.url);
  const options = { ...(t && { t }), env: { ...limits, REDIS_URL: redis.url } };
  const pods = await Promise.all([startPod(url, options), startPod(url, options)]);
  return { url, redis, pods };
}
