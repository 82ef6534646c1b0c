import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { Redis } from 'ioredis';
import { DAY_MS } from '../../src/lib/time.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { callApi, logIn, makeOwner, outcomeOf, PASSWORD, tryLogIn } from '../support/http/application.ts';
import { dropNotifications } from '../support/http/dropNotifications.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import type { Pod } from '../support/pod.ts';
import { type PodPair, podPair } from '../support/podPair.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { holdTransaction } from '../support/postgres/holdTransaction.ts';
import { skipWithoutRedis, type TestRedis } from '../support/redis.ts';
import { IS_TORTURE, runs } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

interface State {
  readonly enter: (redis: TestRedis) => Promise<void> | void;
  readonly leave: (redis: TestRedis) => Promise<void> | void;
}

/** What befalls Redis, and what sets it right again. The last: a Redis that was restarted lets notifications through. */
const REDIS_STATES: Readonly<Record<string, State>> = {
  'Redis is there': { enter: () => undefined, leave: () => undefined },
  'Redis was just emptied': {
    enter: async ({ url }) => {
      const client = new Redis(url);
      await client.flushall();
      client.disconnect();
    },
    leave: () => undefined,
  },
  'Redis answers nothing': { enter: (redis) => redis.pause(), leave: (redis) => redis.resume() },
  'Redis is gone': { enter: (redis) => redis.stop(), leave: (redis) => redis.restart() },
};

const DEVICES = '/v3/devices';
const REVOKED = twice('403 API_KEY_REVOKED');
const NO_SESSION = twice('403 API_KEY_REQUIRED');

function twice(outcome: string): string[] {
  return [outcome, outcome];
}

function onBoth(
  pods: readonly Pod[],
  path: string,
  credentials: { token?: string; key?: string },
): Promise<string[]> {
  return Promise.all(pods.map(async (pod) => outcomeOf(await callApi(pod, 'GET', path, credentials))));
}

describe('two pods', { skip: skipWithoutRedis() }, () => {
  const notified = podPair();
  const silent = podPair({ withNotifications: false });
  const pairs = { 'with notifications': notified, 'without notifications': silent };
  /** Administrators: one who knows of Redis, and one who does not. */
  const adminsOf = ({ url, redis }: PodPair): [Admin, Admin] => [adminOf(url, redis.url), adminOf(url)];

  let accounts = 0;
  async function newOwner({ url }: PodPair): Promise<string> {
    const email = `owner${++accounts}@example.com`;
    await makeOwner(adminOf(url), email);
    return email;
  }

  describe('a point sent to one is soon nearest, and in a box, on the other', () => {
    async function newVan(pair: PodPair) {
      const email = await newOwner(pair);
      const [admin] = adminsOf(pair);
      const imei = `3500000000002${accounts}`.padEnd(15, '0');
      await admin.device(email, imei);
      const { key } = await admin.key(email);
      const drive = async (fromLng: number, rounds: number): Promise<void> => {
        for (let round = 0; round < rounds; round++) {
          const [sender, other] = round % 2 === 0 ? pair.pods : [pair.pods[1], pair.pods[0]];
          const lng = fromLng + round / 10;
          await sender.points([{ imei, recorded_at: Date.now(), latitude: 10, longitude: lng }]);
          const box = [lng - 0.05, 9.9, lng + 0.05, 10.1].join();
          const seenOn = async (pod: Pod) => {
            const [nearest, within, count] = await Promise.all(
              [
                `nearest?lat=10&lng=${lng}`,
                `within?bbox=${box}`,
                `count?bbox=${box}&max_age_seconds=600`,
              ].map((asked) => pod.get(`/api/v3/devices/${asked}`, key)),
            );
            return [
              nearest?.body.data[0]?.location.longitude,
              within?.body.meta.total,
              count?.body.data.located,
            ];
          };
          const there = [lng, 1, 1];
          assert.deepEqual(await seenOn(sender), there, 'the pod that took the point knows it at once');
          await waitFor(async () => isDeepStrictEqual(await seenOn(other), there));
        }
      };
      return { email, drive };
    }

    test('as it is', async () => (await newVan(notified)).drive(0, runs(4)));

    test('without notifications', async () => (await newVan(silent)).drive(0, runs(2)));

    test('when Redis is gone, and after it came back', async () => {
      const van = await newVan(notified);
      await notified.redis.stop();
      await van.drive(0, runs(2));
      await notified.redis.restart();
      await van.drive(1, runs(2));
    });

    test('when another transaction stays open the whole time', async (t) => {
      const van = await newVan(notified);
      const sql = openSql(notified.url, { maxConnections: 1, name: 'test' });
      t.after(() => sql.end());
      const end = await holdTransaction(sql, (tx) => tx`select pg_current_xact_id()`);
      await van.drive(0, runs(2));
      // An administrator does not wait for it either.
      await adminOf(notified.url).run('account:update', '--email', van.email, '--name', 'New name');
      await end();
      await van.drive(1, 2);
    });
  });

  test('know what an administrator makes at once: accounts, keys and devices', async () => {
    for (const [n, admin] of [...adminsOf(notified), ...adminsOf(silent)].entries()) {
      const { pods } = n < 2 ? notified : silent;
      const email = `new${n}@example.com`;
      const imei = `35000000000010${n}`;
      await admin.account(email, { organization: `Org ${n}` });
      const { key } = await admin.key(email);
      assert.deepEqual(await onBoth(pods, DEVICES, { key }), twice('200'));
      await admin.device(email, imei, ...(n % 2 === 0 ? ['--organization'] : []));
      assert.deepEqual(await onBoth(pods, `${DEVICES}/${imei}`, { key }), twice('200'));
      const point = { imei, recorded_at: Date.now(), latitude: 1, longitude: 2 };
      assert.equal((await pods[(n % 2) as 0 | 1].points([point])).accepted, 1);
    }
  });

  describe('hold a change from the very next call on', () => {
    test('a new organization opens its devices, and leaving it closes them', async () => {
      const { pods } = notified;
      const [admin] = adminsOf(notified);
      const email = await newOwner(notified);
      await admin.account('colleague@example.com', { organization: 'Acme' });
      await admin.device('colleague@example.com', '350000000000001', '--organization');
      const { key } = await admin.key(email);
      const outcomes = () => onBoth(pods, `${DEVICES}/350000000000001`, { key });
      for (const admin of [...adminsOf(notified), ...adminsOf(notified)]) {
        assert.deepEqual(await outcomes(), twice('404 DEVICE_NOT_FOUND'));
        await admin.run('account:update', '--email', email, '--organization', 'Acme');
        assert.deepEqual(await outcomes(), twice('200'));
        await admin.run('account:update', '--email', email, '--organization', 'none');
      }
    });

    test('a plan decides how far back history reads', async () => {
      const { pods } = notified;
      const email = await newOwner(notified);
      const imei = '350000000000002';
      const [admin] = adminsOf(notified);
      await admin.device(email, imei);
      const { key } = await admin.key(email);
      const recorded_at = Date.now() - 100 * DAY_MS;
      await pods[0].points([{ imei, recorded_at, latitude: 1, longitude: 2 }]);
      const counts = () =>
        Promise.all(
          pods.map(async (pod) => (await pod.get(`/api/v3/devices/${imei}/history`, key)).body.data.length),
        );
      for (const admin of adminsOf(notified)) {
        await admin.run('account:update', '--email', email, '--plan', 'basic');
        assert.deepEqual(await counts(), [0, 0]);
        await admin.run('account:update', '--email', email, '--plan', 'pro');
        assert.deepEqual(await counts(), [1, 1]);
      }
    });

    test('the end of a session: a logout, a new password, a deactivated account', async () => {
      const { pods } = silent;
      const [admin] = adminsOf(silent);
      const email = await newOwner(silent);
      const opens = (token: string) => onBoth(pods, '/webhooks', { token });
      const early = await logIn(pods[1], email);
      for (const pod of pods) {
        const token = await logIn(pod, email);
        assert.deepEqual(await opens(token), twice('200'));
        assert.equal((await callApi(pods[0], 'DELETE', '/v1/session', { token })).status, 204);
        assert.deepEqual(await opens(token), NO_SESSION);
      }
      assert.deepEqual(await opens(early), twice('200'));
      await admin.run('account:update', '--email', email, '--password', `${PASSWORD}!`);
      assert.deepEqual(await opens(early), NO_SESSION);
      assert.equal(outcomeOf(await tryLogIn(pods[1], email, PASSWORD)), '403 FORBIDDEN');
      const late = await logIn(pods[1], email, `${PASSWORD}!`);
      await admin.run('account:deactivate', '--email', email);
      assert.deepEqual(await opens(late), NO_SESSION);
    });

    test('a revocation, over and over, with calls under way at the same moment', async () => {
      const { pods } = notified;
      const email = await newOwner(notified);
      const token = await logIn(pods[0], email);
      const admins = adminsOf(notified);
      const revoke = async (round: number, id: number): Promise<unknown> =>
        round % 3 === 2
          ? callApi(pods[1], 'POST', `/v1/keys/${id}/revoke`, { token })
          : admins[(round % 3) as 0 | 1].run('key:revoke', '--id', String(id));
      for (let round = 0; round < runs(3); round++) {
        const { id, key } = await admins[0].key(email);
        let isRevoked = false;
        const callers = pods.map(async (pod) => {
          while (true) {
            const wasRevoked = isRevoked;
            const outcome = outcomeOf(await callApi(pod, 'GET', '/v2/devices', { key }));
            if (wasRevoked) return outcome;
          }
        });
        await revoke(round, id);
        isRevoked = true;
        assert.deepEqual(await Promise.all(callers), REVOKED);
      }
    });

    for (const [state, { enter, leave }] of Object.entries(REDIS_STATES)) {
      for (const [name, pair] of Object.entries(pairs)) {
        // Notifications only make it sooner: with them it is tried where least else helps.
        if (!IS_TORTURE && pair === notified && state !== 'Redis is gone') continue;
        test(`${state}, ${name}: the settings and the end of a key, whoever changes them`, async () => {
          const { pods, redis } = pair;
          const admins = adminsOf(pair);
          const email = await newOwner(pair);
          const { id, key } = await admins[0].key(email, { scopes: 'read_events' });
          const outcomes = () => onBoth(pods, DEVICES, { key });
          assert.deepEqual(await outcomes(), twice('403 INSUFFICIENT_SCOPE'));
          const token = await logIn(pods[0], email);
          const change = async (method: string, path: string, body?: object) => {
            const reply = await callApi(pods[0], method, `/v1/keys${path}`, { token, body });
            assert.ok(reply.status < 300, reply.text);
            return reply.body.data;
          };
          await enter(redis);
          for (const [settings, expected] of [
            [{ scopes: ['read_devices'] }, '200'],
            [{ allowlist: ['192.0.2.1'] }, '403 API_KEY_IP_BLOCKED'],
            [{ allowlist: ['127.0.0.0/8'] }, '200'],
          ] as const) {
            await change('PATCH', `/${id}`, settings);
            assert.deepEqual(await outcomes(), twice(expected));
          }
          await change('POST', `/${id}/revoke`);
          assert.deepEqual(await outcomes(), REVOKED);
          const made = await change('POST', '', { name: 'M', scopes: ['read_devices'] });
          for (const [n, admin] of admins.entries()) {
            const another = n === 0 ? made : await admin.key(email);
            const outcomes = () => onBoth(pods, '/v2/devices', { key: another.key });
            assert.deepEqual(await outcomes(), twice('200'));
            await admin.run('account:deactivate', '--email', email);
            assert.deepEqual(await outcomes(), twice('403 API_KEY_OWNER_INACTIVE'));
            await admin.run('account:activate', '--email', email);
            assert.deepEqual(await outcomes(), twice('200'));
            await admin.run('key:revoke', '--id', String(another.id));
            assert.deepEqual(await outcomes(), REVOKED);
          }
          await leave(redis);
          assert.deepEqual(await outcomes(), REVOKED);
        });
      }
    }
  });
});

describe('a single pod without Redis beside the commands', () => {
  const owner = ownerPod();

  for (const isNotified of [true, false]) {
    test(`refuses a key from the very next call after its revocation, ${isNotified ? 'with' : 'without'} notifications`, async () => {
      if (!isNotified) await dropNotifications(owner.url);
      for (let round = 0; round < runs(2); round++) {
        const { id, key } = await owner.admin.key(OWNER);
        assert.equal((await owner.pod.get('/api/v3/devices', key)).status, 200);
        await owner.admin.run('key:revoke', '--id', String(id));
        assert.equal(outcomeOf(await owner.pod.get('/api/v3/devices', key)), '403 API_KEY_REVOKED');
      }
    });
  }
});
