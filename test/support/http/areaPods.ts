import type { TestContext } from 'node:test';
import { type PodPair, type PodPairOptions, startPodPair } from '../podPair.ts';
import { type Admin, adminOf } from '../postgres/admin.ts';
import { type AreaApi, areaApi } from './areas.ts';

/** Two pods, and the area routes of each as one account sees them. */
export interface AreaPods extends Omit<PodPair, 'pods'> {
  readonly admin: Admin;
  readonly apis: readonly [AreaApi, AreaApi];
}

export async function startAreaPods(t: TestContext, options?: PodPairOptions): Promise<AreaPods> {
  const { url, redis, pods } = await startPodPair(t, options);
  const admin = adminOf(url, redis.url);
  await admin.account('owner@example.com', { organization: 'Haulage' });
  const { key } = await admin.key('owner@example.com');
  return { url, redis, admin, apis: pods.map((pod) => areaApi(pod, key)) as [AreaApi, AreaApi] };
}
