import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { withDeadline } from '../../src/base/deadline.ts';
import { type Admin, adminOf } from '../support/admin.ts';
import { callApi, logIn, makeOwner, outcomeOf, PASSWORD, tryLogIn } from '../support/application.ts';
import { dropBells } from '../support/bells.ts';
import { startOwnPostgres } from '../support/ownPostgres.ts';
import { NO_LIMITS, type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { skipWithoutRedis, startRedis, type TestRedis } from '../support/redis.ts';
import { WEATHERS } from '../support/weathers.ts';

const skip = skipWithoutRedis();
const OWNER = 'owner@example.com';
/** No call may take longer than this, whatever has happened to Postgres. */
const ANSWER_LIMIT_MS = 20_000;

interface Couple {
  readonly redis: TestRedis;
  readonly pods: readonly [Pod, Pod];
  readonly admin: Admin;
}

async function startCouple(t: TestContext, env = NO_LIMITS, { withBells = true } = {}): Promise<Couple> {
  const { url } = await createDatabase(t);
  const redis = await startRedis(t);
  if (!withBells) await dropBells(url, redis.url);
  const pods = await Promise.all(
    [0, 1].map(() => startPod(url, { t, env: { ...env, REDIS_URL: redis.url } })),
  );
  const admin = adminOf(url, redis.url);
  await makeOwner(admin, OWNER);
  return { redis, pods: pods as [Pod, Pod], admin };
}

const onBoth = (pods: readonly Pod[], path: string, credentials: { token?: string; key?: string }) =>
  Promise.all(pods.map(async (pod) => outcomeOf(await callApi(pod, 'GET', path, credentials))));

const twice = (outcome: string): string[] => [outcome, outcome];

describe('what the application does on one pod holds from the very next call on both', {
  skip,
  concurrency: 2,
  timeout: 120_000,
}, () => {
  for (const [weather, strike, mend] of WEATHERS) {
    for (const withBells of [true, false]) {
      test(`keys: ${weather}, ${withBells ? 'bells ring' : 'no bell rings'}`, async (t) => {
        const { redis, pods } = await startCouple(t, NO_LIMITS, { withBells });
        const token = await logIn(pods[0], OWNER);
        const settle = async (method: string, path: string, body?: object) => {
          const reply = await callApi(pods[0], method, path, { token, ...(body && { body }) });
          assert.ok(reply.status < 300, reply.text);
          return reply.body.data;
        };
        const { id, key } = await settle('POST', '/v1/keys', { name: 'N', scopes: ['read_events'] });
        const outcomes = () => onBoth(pods, '/v3/devices', { key });
        assert.deepEqual(await outcomes(), twice('403 INSUFFICIENT_SCOPE'));
        await strike(redis);
        await settle('PATCH', `/v1/keys/${id}`, { scopes: ['read_devices'] });
        assert.deepEqual(await outcomes(), twice('200'));
        await settle('PATCH', `/v1/keys/${id}`, { allowlist: ['192.0.2.1'] });
        assert.deepEqual(await outcomes(), twice('403 API_KEY_IP_BLOCKED'));
        await settle('PATCH', `/v1/keys/${id}`, { allowlist: ['127.0.0.0/8'] });
        assert.deepEqual(await outcomes(), twice('200'));
        const made = await settle('POST', '/v1/keys', { name: 'M', scopes: ['read_devices'] });
        assert.deepEqual(await onBoth(pods, '/v2/devices', { key: made.key }), twice('200'));
        await settle('POST', `/v1/keys/${id}/revoke`);
        assert.deepEqual(await outcomes(), twice('403 API_KEY_REVOKED'));
        await mend(redis);
        assert.deepEqual(await outcomes(), twice('403 API_KEY_REVOKED'));
      });
    }

    test(`sessions: ${weather}`, async (t) => {
      const { redis, pods, admin } = await startCouple(t);
      const early = await logIn(pods[1], OWNER);
      await strike(redis);
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
      await mend(redis);
      assert.deepEqual(await opens(late), twice('403 API_KEY_REQUIRED'));
    });
  }

  test('a change of a key, over and over, with calls under way at the same moment', async (t) => {
    const { pods } = await startCouple(t);
    const token = await logIn(pods[0], OWNER);
    for (let round = 0; round < 8; round++) {
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

  test('the sessions of an account get exactly 120 answers a minute over both', async (t) => {
    const { pods } = await startCouple(t, { RATE_LIMIT_IP_MINUTE: '0' });
    const tokens = [await logIn(pods[0], OWNER), await logIn(pods[1], OWNER)];
    const calls = Array.from({ length: 200 }, (_, n) =>
      callApi(pods[n % 2] as Pod, 'GET', n % 3 === 0 ? '/v1/keys' : '/webhooks', {
        token: tokens[(n >> 1) % 2],
      }),
    );
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    assert.equal(statuses.filter((status) => status === 200).length, 120);
    assert.equal(statuses.filter((status) => status === 429).length, 80);
  });
});

test('without Postgres v1 answers 503 and the webhooks of a session too, and soon', {
  timeout: 120_000,
}, async (t) => {
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
