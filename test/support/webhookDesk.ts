import { openSql, type Sql } from '../../src/store/sql.ts';
import { type Admin, adminOf } from './admin.ts';
import { type Pod, type Reply, startPod } from './pod.ts';
import { createDatabase } from './postgres.ts';
import { type WebhookApi, webhookApi, webhookEnv } from './webhooks.ts';

/** One pod that delivers nothing, and the owner of endpoints on it. */
export interface WebhookDesk {
  readonly url: string;
  readonly pod: Pod;
  readonly sql: Sql;
  readonly admin: Admin;
  readonly owner: WebhookApi;
  end(): Promise<void>;
}

export async function startWebhookDesk(): Promise<WebhookDesk> {
  const { url } = await createDatabase();
  const admin = adminOf(url);
  const pod = await startPod(url, {
    env: { ...webhookEnv(60_000), WEBHOOK_ALLOW_NETS: '', ROLES: 'api,ingest' },
  });
  await admin.account('owner@example.com');
  const owner = webhookApi(pod.api, (await admin.key('owner@example.com')).key);
  const sql = openSql(url, { maxConnections: 2, name: 'test' });
  const end = async (): Promise<void> => {
    await sql.end();
    await pod.stop();
  };
  return { url, pod, sql, admin, owner, end };
}

/** `field CODE` for each detail of a 422. */
export function detailsOf({ body }: Reply): string[] {
  return body.error.details.map(
    (detail: { field: string | null; code: string }) => `${detail.field} ${detail.code}`,
  );
}

/** `status CODE`. */
export function refusal({ status, body }: Reply): string {
  return `${status} ${body.error.code}`;
}
