import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { withDeadline } from '../../src/lib/time.ts';
import { callApi, logIn, makeOwner, outcomeOf, PASSWORD, tryLogIn } from '../support/http/application.ts';
import { REDIS_STATES } from '../support/ingest/redisStates.ts';
import { patienceMs } from '../support/patience.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { type PodPair, type PodPairOptions, startPodPair } from '../support/podPair.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { skipWithoutRedis } from '../support/redis.ts';
import { runs } from '../support/torture.ts';

const skip = skipWithoutRedis();
const OWNER = 'owner@example.com';
/** No call may take longer than this, whatever has happened to Postgres. */
const ANSWER_LIMIT_MS = patienceMs(20_000);

interface TwoPods extends PodPair {
  readonly admin: Admin;
}

async function startTwoPods(t: TestContext, options?: PodPairOptions): Promise<TwoPods> {
  const pair = await startPodPair(t, options);
  const { url, redis } = pair;
  const admin = adminOf(url, redis.url);
  await makeOwner(admin, OWNER);
  return { ...pair, admin };
}

const onBoth = (pods: readonly Pod[], path: string, credentials: { token?: string; key?: string }) =>
  Promise.all(pods.map(async (pod) => outcomeOf(await callApi(pod, 'GET', path, credentials))));

const twice = (outcome: string): string[] => [outcome, outcome];

describe('what the application does on one pod holds from the very next call on both', {
  skip,
  concurrency: 2,
}, () => {
  for (const [redisState, enter, leave] of REDIS_STATES) {
    test(`${redisState}, without notifications`, async (t) => {
      const { redis, pods, admin } = await startTwoPods(t, { withNotifications: false });
      const token = await logIn(pods[0], OWNER);
      const early = await logIn(pods[1], OWNER);
      const change = async (method: string, path: string, body?: object) => {
        const reply = await callApi(pods[0], method, path, { token, ...(body && { body }) });
        assert.ok(reply.status < 300, reply.text);
        return reply.body.data;
      };
      const { id, key } = await change('POST', '/v1/keys', { name: 'N', scopes: ['read_events'] });
      const outcomes = () => onBoth(pods, '/v3/devices', { key });
      assert.deepEqual(await outcomes(), twice('403 INSUFFICIENT_SCOPE'));
      await enter(redis);
      await change('PATCH', `/v1/keys/${id}`, { scopes: ['read_devices'] });
      assert.deepEqual(await outcomes(), twice('200'));
      await change('PATCH', `/v1/keys/${id}`, { allowlist: ['192.0.2.1'] });
      assert.deepEqual(await outcomes(), twice('403 API_KEY_IP_BLOCKED'));
      await change('PATCH', `/v1/keys/${id}`, { allowlist: ['127.0.0.0/8'] });
      assert.deepEqual(await outcomes(), twice('200'));
      const made = await change('POST', '/v1/keys', { name: 'M', scopes: ['read_devices'] });
      assert.deepEqual(await onBoth(pods, '/v2/devices', { key: made.key }), twice('200'));
      await change('POST', `/v1/keys/${id}/revoke`);
      assert.deepEqual(await outcomes(), twice('403 API_KEY_REVOKED'));

      const opens = (token: string) => onBoth(pods, '/webhooks', { token });
      for (const pod of pods) {
        const token = await logIn(pod, OWNER);
        assert.deepEqual(await opens(token), twice('200'));
        assert.equal((await callApi(pods[0], 'DELETE', '/v1/session', { token })).status, 204);
        assert.deepEqual(await opens(token), twice('403 API_KEY_REQUIRED'));
      }
      assert.deepEqual(await opens(early), twice('200'));
      await admin.run('account:update', '--email', OWNER, '--password', `${PASSWORD}!`);
      assert.deepEqual(await opens(early), twice('403 API_KEY_REQUIRED'));
      for (const pod of pods) assert.equal(outcomeOf(await tryLogIn(pod, OWNER, PASSWORD)), '403 FORBIDDEN');
      const late = await logIn(pods[0], OWNER, `${PASSWORD}!`);
      await admin.run('account:deactivate', '--email', OWNER);
      assert.deepEqual(await opens(late), twice('403 API_KEY_REQUIRED'));
      await leave(redis);
      assert.deepEqual(await outcomes(), twice('403 API_KEY_REVOKED'));
      assert.deepEqual(await opens(late), twice('403 API_KEY_REQUIRED'));
    });
  }

  test('a change of a key, over and over, with calls under way at the same moment', async (t) => {
    const { pods } = await startTwoPods(t);
    const token = await logIn(pods[0], OWNER);
    for (let round = 0; round < runs(2); round++) {
      const made = await callApi(pods[0], 'POST', '/v1/keys', {
        token,
        body: { name: 'N', scopes: ['read_devices'] },
      });
      const { id, key } = made.body.data;
      let isRevoked = false;
      const callers = pods.map(async (pod) => {
        while (true) {
          const wasRevoked = isRevoked;
          const outcome = outcomeOf(await callApi(pod, 'GET', '/v2/devices', { key }));
          if (wasRevoked) return outcome;
        }
      });
      await callApi(pods[round % 2] as Pod, 'POST', `/v1/keys/${id}/revoke`, { token });
      isRevoked = true;
      assert.deepEqual(await Promise.all(callers), twice('403 API_KEY_REVOKED'));
    }
  });
});

test('without Postgres v1 answers 503 and the webhooks of a session too, and soon', async (t) => {
  const postgres = await startOwnPostgres(t);
  const admin = adminOf(postgres.url);
  await makeOwner(admin, OWNER);
  const { key } = await admin.key(OWNER);
  const pod = await startPod(postgres.url, { t });
  const token = await logIn(pod, OWNER);
  assert.deepEqual(await onBoth([pod], '/v1/keys', { key }), ['200']);
  await postgres.stop();
  const unasked = await callApi(pod, 'GET', '/v1/keys', { token: 'x' });
  assert.equal(outcomeOf(unasked), '403 API_KEY_REQUIRED', 'what cannot be a token needs no look');
  const replies = await withDeadline(
    Promise.all([
      callApi(pod, 'GET', '/v1/keys', { token }),
      callApi(pod, 'GET', '/v1/keys', { key }),
      callApi(pod, 'POST', '/v1/keys', { token, body: {} }),
      callApi(pod, 'DELETE', '/v1/session', { token }),
      callApi(pod, 'GET', '/webhooks', { token }),
      tryLogIn(pod, OWNER, PASSWORD),
      tryLogIn(pod, OWNER, 'wrong'),
    ]),
    ANSWER_LIMIT_MS,
    'an answer',
  );
  assert.deepEqual(replies.map(outcomeOf), Array(7).fill('503 SERVICE_UNAVAILABLE'));
  for (const [n, { headers }] of replies.entries()) {
    assert.equal(headers.get('sunset'), n === 4 ? null : '2027-03-08');
  }
  // Memory goes on answering, though nobody can write down that the key was used.

  assert.equal(outcomeOf(await callApi(pod, 'GET', '/v3/devices/nearest?lat=1&lng=1', { key })), '200');
});
