import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatIso, MINUTE_MS } from '../../src/lib/time.ts';
import { StreamClient } from '../support/feeds/feedReader.ts';
import { callApi, logIn, outcomeOf, setPassword } from '../support/http/application.ts';
import { manualClock } from '../support/manualClock.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { NO_LIMITS, startPod } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';

// When a key is told to have ended is decided in authorizer.test.ts, which ends it takes in keyBody.test.ts.

const VAN = '350000000000001';
const clock = manualClock(Date.now());
const owner = ownerPod({ clock, env: NO_LIMITS, devices: [{ imei: VAN }] }, ({ admin }) =>
  setPassword(admin, OWNER),
);
const { pod } = owner;

test('with its end a key is refused on every pod, its streams end and its calls wait no longer', async (t) => {
  const other = await startPod(owner.url, { t, clock, env: NO_LIMITS });
  const token = await logIn(pod, OWNER);
  const endsAtMs = clock() + MINUTE_MS;
  const make = async (expires_at: string | null) => {
    const body = { name: 'K', scopes: ['read_devices', 'read_locations'], expires_at };
    const { status, text, body: made } = await callApi(pod, 'POST', '/v1/keys', { token, body });
    assert.equal(status, 201, text);
    return made.data;
  };
  const [ending, staying] = [await make(formatIso(endsAtMs)), await make(null)];
  assert.equal(ending.expires_at, formatIso(endsAtMs));
  const follow = async (on: typeof pod, { key }: { key: string }) => {
    const { body } = await on.get('/api/v3/devices/changes', key);
    const path = `/api/v3/devices/changes?wait=25&cursor=${body.meta.cursor}`;
    const client = await StreamClient.open(on, key, 'include=devices');
    t.after(() => client.close());
    assert.equal(client.response.status, 200);
    return { client, waited: on.get(path, key) };
  };
  const ended = [await follow(pod, ending), await follow(other, ending)];
  const kept = await follow(pod, staying);
  clock.set(endsAtMs - 1);
  for (const on of [pod, other]) assert.equal((await on.get('/api/v3/devices', ending.key)).status, 200);

  clock.set(endsAtMs);
  for (const { client, waited } of ended) {
    await client.ended;
    const { status, body } = await waited;
    assert.deepEqual([status, body.data], [200, []]);
  }
  for (const on of [pod, other]) {
    for (const version of ['v1', 'v2', 'v3']) {
      const refused = await on.get(`/api/${version}/devices`, ending.key);
      assert.equal(outcomeOf(refused), '403 API_KEY_REVOKED');
      assert.equal(refused.body.error.message, `this API key ended at ${formatIso(endsAtMs)}`);
    }
  }
  assert.equal((await pod.get('/api/v3/devices', staying.key)).status, 200);
  const { body } = await callApi(pod, 'GET', '/v1/keys', { token });
  const shown = body.data.find(({ id }: { id: number }) => id === ending.id);
  assert.deepEqual([shown.revoked_at, shown.expires_at], [null, formatIso(endsAtMs)]);
  // That of the other key goes on.
  const seen = kept.client.of('device').length;
  await pod.points([{ imei: VAN, recorded_at: clock(), latitude: 1, longitude: 1 }]);
  await waitFor(() => kept.client.of('device').length > seen);
  kept.client.close();
  await kept.waited;
});
