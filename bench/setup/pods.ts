import { findRedisServer, startRedis } from '../../test/support/redis.ts';
import type { CaseContext } from '../benchCase.ts';
import { type Usage, usageNow } from '../measure/usage.ts';
import { openWorker, type Worker } from '../worker.ts';
import type { PodQuestion, PodReply } from '../workers/webhookPod.ts';
import { startBenchService } from './service.ts';

/** One pod in a process of its own. */
export type PodWorker = Worker<PodQuestion, PodReply>;
export const openPod = (): PodWorker => openWorker('webhookPod');

/** Two pods in their own processes, not started, and their Redis; one pod where there is no redis-server in PATH. */
export async function openTwoPods() {
  await using opened = new AsyncDisposableStack();
  const redis =
    findRedisServer() === null ? null : opened.adopt(await startRedis(), (server) => server.stop());
  const pods = Array.from({ length: redis === null ? 1 : 2 }, () => opened.use(openPod()));
  opened.defer(async () => void (await Promise.allSettled(pods.map((pod) => pod.ask({ kind: 'stop' })))));
  const all = opened.move();
  return { pods, redisUrl: redis?.url ?? null, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Pods on one Postgres: one that runs in this process and, with `--pods 2`, one in its own. */
export interface ServingPods extends AsyncDisposable {
  readonly urls: readonly string[];
  readonly ingestUrls: readonly string[];
  /** Of all pods together. */
  usage(): Promise<Usage>;
}

/** Null where they need a Redis and there is no redis-server in PATH. Two always need one. */
export async function startPods(
  { databaseUrl, pods }: CaseContext,
  needsRedis = false,
): Promise<ServingPods | null> {
  const hasRedis = needsRedis || pods > 1;
  if (hasRedis && findRedisServer() === null) return null;
  await using opened = new AsyncDisposableStack();
  const redis = hasRedis ? opened.adopt(await startRedis(), (server) => server.stop()) : null;
  const redisUrl = redis?.url ?? null;
  const own = opened.use(await startBenchService(databaseUrl, redisUrl));
  const others = Array.from({ length: pods - 1 }, () => opened.use(openPod()));
  const started = [own];
  for (const pod of others) {
    started.push({ ...own, ...(await pod.ask({ kind: 'start', databaseUrl, redisUrl })) });
    opened.defer(async () => void (await pod.ask({ kind: 'stop' })));
  }
  const all = opened.move();
  return {
    urls: started.map(({ url }) => url),
    ingestUrls: started.map(({ ingestUrl }) => ingestUrl),
    usage: async () => {
      const used = await Promise.all(others.map((pod) => pod.ask({ kind: 'usage' })));
      const add = (a: Usage, b: Usage) => ({ cpuUs: a.cpuUs + b.cpuUs, rssMb: a.rssMb + b.rssMb });
      return used.reduce(add, usageNow());
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Calls a route of webhooks. Returns `data` of the answer; throws unless it is 2xx. */
export async function callWebhooks(
  url: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  body?: object,
): Promise<{ id: number }> {
  const response = await fetch(url, {
    method,
    headers: { ...headers, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${text}`);
  return text === '' ? { id: 0 } : (JSON.parse(text) as { data: { id: number } }).data;
}
