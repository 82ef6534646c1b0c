import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { type Pod, startPod } from '../pod.ts';
import { type Admin, adminOf } from '../postgres/admin.ts';
import { createDatabase } from '../postgres/postgres.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { EventSource, type WebhookApi, webhookApi, webhookEnv } from './webhooks.ts';

export const WEBHOOK_OWNER = 'owner@example.com';

/** One pod, an account with a device and a key, and a receiver. */
export interface WebhookSetup {
  readonly url: string;
  readonly pod: Pod;
  readonly sql: Sql;
  readonly admin: Admin;
  readonly api: WebhookApi;
  readonly receiver: Receiver;
  readonly source: EventSource;
  end(): Promise<void>;
}

export async function startWebhookSetup(minuteMs: number): Promise<WebhookSetup> {
  const { url } = await createDatabase();
  const admin = adminOf(url);
  await admin.account(WEBHOOK_OWNER);
  await admin.device(WEBHOOK_OWNER, '350000000000001', '--name', 'Van', '--plate', 'B-X 1');
  const pod = await startPod(url, { env: webhookEnv(minuteMs) });
  const receiver = await startReceiver();
  const sql = openSql(url, { maxConnections: 2, name: 'test' });
  return {
    url,
    pod,
    sql,
    admin,
    api: webhookApi(pod.api, (await admin.key(WEBHOOK_OWNER)).key),
    receiver,
    source: new EventSource('350000000000001', Date.now() - 86_400_000),
    end: async () => {
      await pod.stop();
      await receiver.close();
      await sql.end();
    },
  };
}

/** Minutes between the attempts of one budget, as the API document lists them. */
export function gapsOf(policy: string, budget: number): number[] {
  if (policy === 'none' || budget <= 1) return [];
  return Array.from({ length: budget - 1 }, (_, n) => (policy === 'fixed' ? 5 : 2 ** (n + 1)));
}
