import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { type Pod, startPod } from '../pod.ts';
import { type Admin, adminOf } from '../postgres/admin.ts';
import { createDatabase } from '../postgres/postgres.ts';
import { startRedis, type TestRedis } from '../redis.ts';
import { started } from '../started.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { EventSource, type WebhookApi, webhookApi, webhookEnv } from './webhooks.ts';

export const WEBHOOK_OWNER = 'owner@example.com';

/** Pods, an account with a device and a key, and a receiver. */
export interface WebhookSetup {
  readonly url: string;
  /** The first and the last, which may be the same. */
  readonly pod: Pod;
  readonly otherPod: Pod;
  readonly sql: Sql;
  readonly admin: Admin;
  /** The routes of these two. */
  readonly api: WebhookApi;
  readonly otherApi: WebhookApi;
  /** Null for a single pod. */
  readonly redis: TestRedis | null;
  readonly receiver: Receiver;
  readonly source: EventSource;
  end(): Promise<void>;
}

/** Starts them for the tests of the suite that calls this, with minutes of that length, and stops them after it. */
export const webhookSetup = (minuteMs: number, podCount = 1): WebhookSetup =>
  started(
    () => startWebhookSetup(minuteMs, podCount),
    ({ end }) => end(),
  );

async function startWebhookSetup(minuteMs: number, podCount: number): Promise<WebhookSetup> {
  const { url } = await createDatabase();
  const redis = podCount === 1 ? null : await startRedis();
  const admin = adminOf(url, redis?.url);
  await admin.account(WEBHOOK_OWNER);
  await admin.device(WEBHOOK_OWNER, '350000000000001', '--name', 'Van', '--plate', 'B-X 1');
  const env = webhookEnv(minuteMs, redis === null ? {} : { REDIS_URL: redis.url });
  const pods = await Promise.all(Array.from({ length: podCount }, () => startPod(url, { env })));
  const { key } = await admin.key(WEBHOOK_OWNER);
  const [pod, otherPod] = [pods.at(0) as Pod, pods.at(-1) as Pod];
  const receiver = await startReceiver();
  const sql = openSql(url, { maxConnections: 4, name: 'test' });
  return {
    url,
    pod,
    otherPod,
    sql,
    admin,
    api: webhookApi(pod.api, key),
    otherApi: webhookApi(otherPod.api, key),
    redis,
    receiver,
    source: new EventSource('350000000000001', Date.now() - 86_400_000),
    end: async () => {
      await Promise.all(pods.map((pod) => pod.stop()));
      await receiver.close();
      await sql.end();
      await redis?.stop();
    },
  };
}

/** As if the wait of everything that waits at an endpoint were over. */
export async function skipWait({ sql, api }: WebhookSetup, id: number): Promise<void> {
  await sql`
    update webhook_delivery set next_attempt_at = clock_timestamp()
    where webhook_id = ${id} and next_attempt_at is not null`;
  await api.change(id, {}); // wakes its worker
}

/** So that a test's events go to its own endpoints only. */
export async function deleteAll({ api }: WebhookSetup): Promise<void> {
  for (const { id } of (await api.call('GET', '?limit=200')).body.data) await api.call('DELETE', `/${id}`);
}

/** Minutes between the attempts of one budget, as the API document lists them. */
export function gapsOf(policy: string, budget: number): number[] {
  if (policy === 'none' || budget <= 1) return [];
  return Array.from({ length: budget - 1 }, (_, n) => (policy === 'fixed' ? 5 : 2 ** (n + 1)));
}
