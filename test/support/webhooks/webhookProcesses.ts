import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { startPod } from '../pod.ts';
import { adminOf } from '../postgres/admin.ts';
import { type ServiceProcess, serviceEnv, startProcess } from '../service.ts';
import { IS_TORTURE } from '../torture.ts';
import { auditDeliveries } from './deliveryProof.ts';
import { type Receiver, startReceiver, trustedCertificate } from './receiver.ts';
import { type WebhookApi, webhookApi, webhookEnv } from './webhooks.ts';

const OWNER = 'owner@example.com';

/** Variables of processes that trust receivers and send to the loopback, with minutes of that length. */
export async function deliveringEnv(
  t: TestContext,
  url: string,
  minuteMs: number,
  others: Readonly<Record<string, string>> = {},
): Promise<Record<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-webhooks-'));
  t.after(() => rm(folder, { recursive: true }));
  const pemFile = join(folder, 'receiver.pem');
  await writeFile(pemFile, (await trustedCertificate()).certificatePem);
  return {
    ...serviceEnv(url),
    WEBHOOK_ALLOW_NETS: '127.0.0.0/8',
    WEBHOOK_MINUTE_MS: String(minuteMs),
    NODE_EXTRA_CA_CERTS: pemFile,
    ROLES: 'ingest,delivery',
    ...others,
  };
}

/** An owner with devices, a pod that only manages endpoints, a receiver, and an audit of all deliveries. */
export async function startAuditedOwner(
  t: TestContext,
  url: string,
  imeis: readonly string[],
  redisUrl?: string,
): Promise<{ readonly sql: Sql; readonly api: WebhookApi; readonly receiver: Receiver }> {
  const admin = adminOf(url, redisUrl);
  await admin.account(OWNER);
  for (const imei of imeis) await admin.device(OWNER, imei);
  const receiver = await startReceiver(t);
  const redis = redisUrl === undefined ? {} : { REDIS_URL: redisUrl };
  const manager = await startPod(url, { t, env: webhookEnv(1, { ROLES: 'api', ...redis }) });
  const sql = openSql(url, { maxConnections: 2, name: 'test' });
  t.after(() => sql.end());
  await auditDeliveries(sql);
  return { sql, api: webhookApi(manager.api, (await admin.key(OWNER)).key), receiver };
}

/** The last of a row of processes, which is not killed: in the short form it is a pod in this process. */
export function startLast(
  t: TestContext,
  env: Readonly<Record<string, string>>,
): Pick<ServiceProcess, 'listening'> {
  return IS_TORTURE ? startProcess(t, env) : { listening: startPod(env['DATABASE_URL'] ?? '', { t, env }) };
}

/** Ends the leases of processes that were killed, which nobody renews. */
export const endLeases = (sql: Sql) =>
  sql`update webhook set leased_until = clock_timestamp() where leased_until is not null`;

/** Ids of all events so far. */
export async function eventIdsOf(sql: Sql): Promise<number[]> {
  return (await sql<{ id: number }[]>`select id from fleet_event order by id`).map(({ id }) => id);
}
