import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { makeOwner } from '../http/application.ts';
import { INGEST_TOKEN, request } from '../pod.ts';
import { adminOf } from '../postgres/admin.ts';
import { makeDataDir, removeDataDir } from '../postgres/cluster.ts';
import { createDatabase } from '../postgres/postgres.ts';
import { serviceEnv, startProcess } from '../service.ts';
import { startWebhookReceive } from '../webhooks/webhookReceive.ts';

export const OWNER = 'owner@example.com';
export const VAN = '356938035643809';
export const BUS = '356938035643817';

/** A service in a process of its own, with two devices, that trusts `webhook:receive`. */
export async function serveConsole(t: TestContext) {
  const dataDir = await makeDataDir();
  t.after(() => removeDataDir(dataDir));
  const receiver = startWebhookReceive(t, dataDir, '--port', '0');
  const { url } = await createDatabase(t);
  const admin = adminOf(url);
  await makeOwner(admin, OWNER);
  await admin.device(OWNER, VAN, '--name', 'Van 12', '--plate', 'GA 731 KL');
  await admin.device(OWNER, BUS, '--name', 'Bus 3');
  const [, hook = ''] = await receiver.said(/^receiving at (\S+)$/);
  const [, file = '', nets = ''] = await receiver.said(/CERTS='(.+)' WEBHOOK_ALLOW_NETS=(\S+) npm start$/);
  const env = { ...serviceEnv(url), NODE_EXTRA_CA_CERTS: file, WEBHOOK_ALLOW_NETS: nets };
  const first = startProcess(t, env);
  const { api, ingest } = await first.listening;
  const restart = async (): Promise<void> => {
    const ports = { PORT: new URL(api).port, INGEST_PORT: new URL(ingest).port };
    await startProcess(t, { ...env, ...ports }).listening;
  };
  const send = async (imei: string, recorded_at: number, place: object): Promise<void> => {
    const { status, text } = await request(`${ingest}/positions`, {
      method: 'POST',
      headers: { 'X-Ingest-Token': INGEST_TOKEN, 'Content-Type': 'application/json' },
      body: JSON.stringify({ imei, recorded_at, speed_kmh: 20, ...place }),
    });
    assert.equal(status, 200, text);
  };
  return { api, send, dataDir, receiver, hook, kill: () => first.child.kill('SIGKILL'), restart };
}
