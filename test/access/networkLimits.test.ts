import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { BEHIND_PROXY, callApi, makeOwner, outcomeOf } from '../support/http/application.ts';
import { manualClock } from '../support/manualClock.ts';
import { NO_LIMITS, startPod } from '../support/pod.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const IP_MINUTE = 5;
const ACCOUNT = 'owner@example.com';
const LIMITED = '429 TOO_MANY_REQUESTS';

let url: string;
let admin: Admin;

before(async () => {
  ({ url } = await createDatabase());
  admin = adminOf(url);
  await makeOwner(admin, ACCOUNT);
});

describe('an IPv6 network of 64 bits', () => {
  test('has the limit of one address, whichever of its addresses a call comes from', async (t) => {
    const env = { ...NO_LIMITS, ...BEHIND_PROXY, RATE_LIMIT_IP_MINUTE: String(IP_MINUTE) };
    const pod = await startPod(url, { t, env, clock: manualClock(Date.now()) });
    const from = async (ip: string) => outcomeOf(await callApi(pod, 'GET', '/v3/devices', { ip }));
    for (let n = 0; n < IP_MINUTE; n++)
      assert.equal(await from(`2001:db8:1:2::${n}`), '403 API_KEY_REQUIRED');
    assert.equal(await from('2001:db8:1:2:ffff::1'), LIMITED);
    assert.equal(await from('2001:db8:1:3::1'), '403 API_KEY_REQUIRED', 'its neighbour has its own');
    assert.equal(
      await callApi(pod, 'GET', '/v1/keys', { ip: '2001:db8:1:2::9' }).then(outcomeOf),
      LIMITED,
      'calls with a session count alike',
    );
  });

  test('is not on an allowlist that names one of its addresses', async (t) => {
    const { key } = await admin.key(ACCOUNT, { allow: '2001:db8:1:2::1' });
    const pod = await startPod(url, { t, env: { ...NO_LIMITS, ...BEHIND_PROXY } });
    const from = async (ip: string) => outcomeOf(await callApi(pod, 'GET', '/v3/devices', { ip, key }));
    assert.equal(await from('2001:db8:1:2::1'), '200');
    assert.equal(await from('2001:db8:1:2::2'), '403 API_KEY_IP_BLOCKED');
  });
});
