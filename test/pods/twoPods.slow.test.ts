import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { awaitPods, type WritePorts, writeWorlds } from '../../src/changelog/writeWorlds.ts';
import { connectVersionPublisher } from '../../src/cli/session.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { dropNotifications } from '../support/http/dropNotifications.ts';
import { REDIS_STATES } from '../support/ingest/redisStates.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { type PodPair, type PodPairOptions, startPodPair } from '../support/podPair.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis } from '../support/redis.ts';
import { runs } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { newTurns } from '../support/workTurns.ts';

const skip = skipWithoutRedis();
const OWNER = 'owner@example.com';

interface TwoPods extends PodPair {
  /** Runs commands as an administrator who knows of Redis, and as one who does not. */
  readonly admins: readonly [Admin, Admin];
}

async function startTwoPods(t: TestContext, options?: PodPairOptions): Promise<TwoPods> {
  const pair = await startPodPair(t, options);
  const { url, redis } = pair;
  const admins: [Admin, Admin] = [adminOf(url, redis.url), adminOf(url)];
  await admins[0].account(OWNER);
  return { ...pair, admins };
}

const codeOf = (reply: Reply): string => `${reply.status} ${reply.body.error?.code ?? ''}`.trim();

function onBoth(pods: readonly Pod[], path: string, key: string): Promise<string[]> {
  return Promise.all(pods.map(async (pod) => codeOf(await pod.get(path, key))));
}

describe('limits over two pods', { skip }, () => {
  const statuses = async (calls: readonly Promise<Reply>[]): Promise<Record<number, number>> => {
    const counts: Record<number, number> = {};
    for (const { status } of await Promise.all(calls)) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  };

  test('one key gets exactly 120 answers a minute over both, v2 and v3 together', async (t) => {
    const { pods, admins } = await startTwoPods(t, { limits: { RATE_LIMIT_IP_MINUTE: '0' } });
    const { key } = await admins[0].key(OWNER);
    const calls = Array.from({ length: 300 }, (_, n) =>
      (pods[n % 2] as Pod).get(`/api/${n % 3 === 0 ? 'v2' : 'v3'}/devices`, key),
    );
    assert.deepEqual(await statuses(calls), { 200: 120, 429: 180 });
    const other = await admins[0].key(OWNER);
    assert.deepEqual(await onBoth(pods, '/api/v3/devices', other.key), ['200', '200']);
  });
});

describe('a change holds from the very next call on both pods', {
  skip,
  concurrency: 4,
}, () => {
  for (const [redisState, enter, leave] of REDIS_STATES) {
    for (const withNotifications of [true, false]) {
      test(`${redisState}, ${withNotifications ? 'with notifications' : 'without notifications'}`, async (t) => {
        const { pods, redis, admins } = await startTwoPods(t, { withNotifications });
        for (const admin of redisState === REDIS_STATES[0]?.[0]
          ? admins
          : [admins[withNotifications ? 0 : 1]]) {
          const { id, key } = await admins[1].key(OWNER);
          assert.deepEqual(await onBoth(pods, '/api/v3/devices', key), ['200', '200']);
          await enter(redis);
          await admin.run('account:deactivate', '--email', OWNER);
          assert.deepEqual(
            await onBoth(pods, '/api/v3/devices', key),
            Array(2).fill('403 API_KEY_OWNER_INACTIVE'),
          );
          await admin.run('account:activate', '--email', OWNER);
          assert.deepEqual(await onBoth(pods, '/api/v3/devices', key), ['200', '200']);
          await admin.run('key:revoke', '--id', String(id));
          assert.deepEqual(await onBoth(pods, '/api/v3/devices', key), Array(2).fill('403 API_KEY_REVOKED'));
          await leave(redis);
          assert.deepEqual(await onBoth(pods, '/api/v3/devices', key), Array(2).fill('403 API_KEY_REVOKED'));
        }
      });
    }
  }

  test('over and over, with a call under way at the same moment', async (t) => {
    const { pods, admins } = await startTwoPods(t);
    for (let round = 0; round < runs(3); round++) {
      const { id, key } = await (admins[round % 2] as Admin).key(OWNER);
      let isRevoked = false;
      const callers = pods.map(async (pod) => {
        const wrong: string[] = [];
        while (true) {
          const wasRevoked = isRevoked;
          const code = codeOf(await pod.get('/api/v2/devices', key));
          if (wasRevoked) {
            if (code !== '403 API_KEY_REVOKED') wrong.push(code);
            return wrong;
          }
        }
      });
      await (admins[(round >> 1) % 2] as Admin).run('key:revoke', '--id', String(id));
      isRevoked = true;
      assert.deepEqual(await Promise.all(callers), [[], []]);
    }
  });

  test('the scopes and the allowlist of a key', async (t) => {
    const { url, redis, pods, admins } = await startTwoPods(t);
    const { id, key } = await admins[0].key(OWNER);
    const sql = openSql(url, { maxConnections: 2, name: 'test' });
    t.after(() => sql.end());
    for (const redisUrl of [redis.url, null]) {
      const { versions, close } = await connectVersionPublisher(sql, redisUrl, () => undefined);
      const ports: WritePorts = {
        sql,
        turns: newTurns(),
        versions,
        awaitEverywhere: async ({ xid, published }) => void (published || (await awaitPods(sql, xid))),
      };
      const edit = (scopes: string[], allowlist: string[]) =>
        writeWorlds(ports, async ({ tx, changed }) => {
          const [row] = await tx<{ world_id: number }[]>`
            update api_key k set scopes = ${scopes}, allowlist = ${allowlist} from account a
            where k.id = ${id} and a.id = k.account_id returning a.world_id`;
          changed({ kind: 'key', worldId: row?.world_id ?? 0, entityIds: [id] });
        });
      for (let round = 0; round < runs(1); round++) {
        await edit(['read_events'], []);
        assert.deepEqual(await onBoth(pods, '/api/v3/devices', key), Array(2).fill('403 INSUFFICIENT_SCOPE'));
        await edit(['read_devices'], ['192.0.2.1']);
        assert.deepEqual(await onBoth(pods, '/api/v3/devices', key), Array(2).fill('403 API_KEY_IP_BLOCKED'));
        await edit(['read_devices'], ['127.0.0.1']);
        assert.deepEqual(await onBoth(pods, '/api/v3/devices', key), ['200', '200']);
      }
      close();
    }
  });

  test('a new organization opens its devices, and leaving it closes them', async (t) => {
    const { pods, admins } = await startTwoPods(t);
    await admins[0].account('colleague@example.com', { organization: 'Acme' });
    await admins[0].device('colleague@example.com', '350000000000001', '--organization');
    const { key } = await admins[0].key(OWNER);
    const path = '/api/v3/devices/350000000000001';
    for (const admin of [...admins, ...admins]) {
      assert.deepEqual(await onBoth(pods, path, key), Array(2).fill('404 DEVICE_NOT_FOUND'));
      await admin.run('account:update', '--email', OWNER, '--organization', 'Acme');
      assert.deepEqual(await onBoth(pods, path, key), ['200', '200']);
      await admin.run('account:update', '--email', OWNER, '--organization', 'none');
    }
  });

  test('a plan changes how far back history reads', async (t) => {
    const { pods, admins } = await startTwoPods(t);
    const imei = '350000000000002';
    await admins[0].device(OWNER, imei);
    const { key } = await admins[0].key(OWNER);
    const recordedAt = new Date(Date.now() - 100 * 86_400_000).toISOString();
    await pods[0].points([{ imei, recorded_at: recordedAt, latitude: 1, longitude: 2 }]);
    const counts = () =>
      Promise.all(
        pods.map(async (pod) => (await pod.get(`/api/v3/devices/${imei}/history`, key)).body.data.length),
      );
    for (const admin of admins) {
      await admin.run('account:update', '--email', OWNER, '--plan', 'basic');
      assert.deepEqual(await counts(), [0, 0]);
      await admin.run('account:update', '--email', OWNER, '--plan', 'pro');
      assert.deepEqual(await counts(), [1, 1]);
    }
  });
});

describe('what an administrator makes is there at once', { skip }, () => {
  test('accounts, keys and devices, on both pods', async (t) => {
    const { pods, admins } = await startTwoPods(t);
    for (let round = 0; round < runs(3); round++) {
      const admin = admins[round % 2] as Admin;
      const email = `new${round}@example.com`;
      const imei = `35000000000010${round}`;
      await admin.account(email, { organization: `Org ${round % 3}` });
      const { key } = await admin.key(email);
      assert.deepEqual(await onBoth(pods, '/api/v3/devices', key), ['200', '200']);
      await admin.device(email, imei, ...(round % 3 === 0 ? ['--organization'] : []));
      assert.deepEqual(await onBoth(pods, `/api/v3/devices/${imei}`, key), ['200', '200']);
      const [sender, other] = round % 2 === 0 ? pods : [pods[1], pods[0]];
      const point = { imei, recorded_at: Date.now(), latitude: 10, longitude: round };
      assert.equal((await sender.points([point])).accepted, 1);
      await untilNearest(other, key, imei, round);
    }
  });
});

/** Waits until the device is nearest to (10, lng) on a pod. */
function untilNearest(pod: Pod, key: string, imei: string, lng: number): Promise<void> {
  return waitFor(async () => {
    const [nearest] = (await pod.get(`/api/v3/devices/nearest?lat=10&lng=${lng}`, key)).body.data;
    return nearest?.imei === imei && nearest.location.longitude === lng;
  });
}

describe('a point sent to one pod is soon nearest on the other', {
  skip,
}, () => {
  const IMEI = '350000000000003';

  async function ready(
    t: TestContext,
    options?: { withNotifications: boolean },
  ): Promise<TwoPods & { key: string }> {
    const both = await startTwoPods(t, options);
    await both.admins[0].device(OWNER, IMEI);
    return { ...both, key: (await both.admins[0].key(OWNER)).key };
  }

  async function drive(
    { pods, key }: { pods: readonly [Pod, Pod]; key: string },
    fromLng: number,
    rounds: number,
  ) {
    for (let round = 0; round < rounds; round++) {
      const [sender, other] = round % 2 === 0 ? pods : [pods[1], pods[0]];
      const lng = fromLng + round / 10;
      await sender.points([{ imei: IMEI, recorded_at: Date.now(), latitude: 10, longitude: lng }]);
      const [here] = (await sender.get(`/api/v2/devices/nearest?lat=10&lng=${lng}`, key)).body.data;
      assert.equal(here.location.longitude, lng, 'the pod that took the point knows it at once');
      await untilNearest(other, key, IMEI, lng);
    }
  }

  test('as it is', async (t) => drive(await ready(t), 0, runs(4)));

  test('without notifications', async (t) => drive(await ready(t, { withNotifications: false }), 0, runs(2)));

  test('when Redis is gone, and after it came back', async (t) => {
    const both = await ready(t);
    await both.redis.stop();
    await drive(both, 0, runs(2));
    await both.redis.restart();
    await drive(both, 1, runs(2));
  });

  test('when another transaction stays open the whole time', async (t) => {
    const both = await ready(t);
    const sql = openSql(both.url, { maxConnections: 1, name: 'test' });
    t.after(() => sql.end());
    const { promise: isOver, resolve: end } = Promise.withResolvers<void>();
    const { promise: isOpen, resolve: opened } = Promise.withResolvers<void>();
    const open = sql.begin(async (tx) => {
      await tx`select pg_current_xact_id()`;
      opened();
      await isOver;
    });
    await isOpen;
    await drive(both, 0, runs(2));
    // An administrator does not wait for it either.
    await both.admins[1].run('account:update', '--email', OWNER, '--name', 'New name');
    end();
    await open;
    await drive(both, 1, 2);
  });
});

describe('a single pod without Redis beside the commands', () => {
  let url: string;
  let pod: Pod;
  let admin: Admin;
  before(async () => {
    url = (await createDatabase()).url;
    admin = adminOf(url);
    await admin.account(OWNER);
    pod = await startPod(url);
  });
  after(() => pod.stop());

  test('a revoked key is refused by the very next call, a new one is welcome', async () => {
    for (let round = 0; round < runs(2); round++) {
      const { id, key } = await admin.key(OWNER);
      assert.equal(codeOf(await pod.get('/api/v3/devices', key)), '200');
      await admin.run('key:revoke', '--id', String(id));
      assert.equal(codeOf(await pod.get('/api/v3/devices', key)), '403 API_KEY_REVOKED');
    }
  });

  test('the same when no NOTIFY comes through', async () => {
    await dropNotifications(url);
    for (let round = 0; round < runs(2); round++) {
      const { id, key } = await admin.key(OWNER);
      assert.equal(codeOf(await pod.get('/api/v3/devices', key)), '200');
      await sleep(0);
      await admin.run('key:revoke', '--id', String(id));
      assert.equal(codeOf(await pod.get('/api/v3/devices', key)), '403 API_KEY_REVOKED');
    }
  });
});
