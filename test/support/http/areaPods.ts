import type { TestContext } from 'node:test';
import { NO_LIMITS, startPod } from '../pod.ts';
import { type Admin, adminOf } from '../postgres/admin.ts';
import { createDatabase } from '../postgres/postgres.ts';
import { startRedis, type TestRedis } from '../redis.ts';
import { type AreaApi, areaApi } from './areas.ts';
import { dropNotifications } from './dropNotifications.ts';

/** Two pods on one Postgres and one Redis, and the area routes of each as one account sees them. */
export interface AreaPods {
  readonly url: string;
  readonly redis: TestRedis;
  readonly admin: Admin;
  readonly apis: readonly [AreaApi, AreaApi];
}

export async function startAreaPods(t: TestContext, { withNotifications = true } = {}): Promise<AreaPods> {
  const { url } = await createDatabase(t);
  const redis = await startRedis(t);
  if (!withNotifications) await dropNotifications(url, redis.url);
  const admin = adminOf(url, redis.url);
  await admin.account('owner@example.com', { organization: 'Haulage' });
  const { key } = await admin.key('owner@example.com');
  const env = { ...NO_LIMITS, REDIS_URL: redis.url };
  const pods = await Promise.all([0, 1].map(() => startPod(url, { t, env })));
  return { url, redis, admin, apis: pods.map((pod) => areaApi(pod, key)) as [AreaApi, AreaApi] };
}
