import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { type Pod, type Reply, startPod } from '../pod.ts';
import { type Admin, adminOf } from '../postgres/admin.ts';
import { createDatabase } from '../postgres/postgres.ts';
import { started } from '../started.ts';
import { type WebhookApi, webhookApi, webhookEnv } from './webhooks.ts';

/** One pod that delivers nothing, and the owner of endpoints on it. */
export interface WebhookOwner {
  readonly url: string;
  readonly pod: Pod;
  readonly sql: Sql;
  readonly admin: Admin;
  readonly owner: WebhookApi;
  /** The webhook routes as the key of another account sees them; in the organization, when one is named. */
  newOwner(organization?: string): Promise<WebhookApi>;
  end(): Promise<void>;
}

/** Starts one for the tests of the file or suite that calls this, and stops it after them. */
export const webhookOwner = (): WebhookOwner => started(startWebhookOwner, ({ end }) => end());

async function startWebhookOwner(): Promise<WebhookOwner> {
  const { url } = await createDatabase();
  const admin = adminOf(url);
  const pod = await startPod(url, {
    env: { ...webhookEnv(60_000), WEBHOOK_ALLOW_NETS: '', ROLES: 'api,ingest' },
  });
  let accounts = 0;
  const newOwner = async (organization?: string): Promise<WebhookApi> => {
    const email = accounts++ === 0 ? 'owner@example.com' : `owner${accounts}@example.com`;
    await admin.account(email, organization === undefined ? {} : { organization });
    return webhookApi(pod.api, (await admin.key(email)).key);
  };
  const owner = await newOwner('Acme');
  const sql = openSql(url, { maxConnections: 2, name: 'test' });
  const end = async (): Promise<void> => {
    await sql.end();
    await pod.stop();
  };
  return { url, pod, sql, admin, owner, newOwner, end };
}

/** `field CODE` for each detail of a 422. */
export function detailsOf({ body }: Reply): string[] {
  return body.error.details.map(
    (detail: { field: string | null; code: string }) => `${detail.field} ${detail.code}`,
  );
}

/** `status CODE`. */
export function denial({ status, body }: Reply): string {
  return `${status} ${body.error.code}`;
}
