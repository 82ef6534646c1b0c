import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LIVE_SECONDS } from '../../src/changelog/pods.sql.ts';
import { request } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { serviceEnv, startProcess } from '../support/service.ts';

const OWNER = 'owner@example.com';
const IMEI = '350000000000001';

/** A service with a device, and a way to call it with keys. */
async function startSetup(t: TestContext) {
  const { url } = await createDatabase(t);
  const admin = adminOf(url);
  await admin.account(OWNER);
  await admin.device(OWNER, IMEI);
  const { child, listening } = startProcess(t, serviceEnv(url));
  const { api } = await listening;
  const call = (key: string) => request(`${api}/api/v3/devices/${IMEI}`, { headers: { 'X-API-Key': key } });
  return { admin, child, call };
}

test('a pod that stood still looks before it answers', async (t) => {
  const { admin, child, call } = await startSetup(t);
  /** Seconds between its stop and the command: it is waited for at first, and later no more. */
  for (const seconds of [0, LIVE_SECONDS + 0.5]) {
    await t.test(
      `what was acknowledged while it stood, ${seconds} s after its stop, holds from its very next call`,
      async () => {
        const [revoked, kept] = [await admin.key(OWNER), await admin.key(OWNER)];
        for (const { key } of [revoked, kept]) assert.equal((await call(key)).status, 200);
        child.kill('SIGSTOP');
        await sleep(seconds * 1_000);
        await admin.run('key:revoke', '--id', String(revoked.id));
        // They wait in its sockets, to be read the moment it goes on.
        const calls = [revoked, kept, revoked, kept].map(({ key }) => call(key));
        await sleep(50);
        child.kill('SIGCONT');
        const replies = await Promise.all(calls);
        assert.deepEqual(
          replies.map(({ status, body }) => body.error?.code ?? status),
          ['API_KEY_REVOKED', 200, 'API_KEY_REVOKED', 200],
        );
      },
    );
  }
});
