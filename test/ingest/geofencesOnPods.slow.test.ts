import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { pruneChanges } from '../../src/changelog/changes.sql.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import { openMemoryPod } from '../coherence/memoryPod.ts';
import { ApiPlayer, inLanes } from '../support/http/apiPlayer.ts';
import { type AreaPods, startAreaPods } from '../support/http/areaPods.ts';
import { type AreaApi, areaApi } from '../support/http/areas.ts';
import { dropNotifications } from '../support/http/dropNotifications.ts';
import { registerTraces } from '../support/http/registerTraces.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { NO_LIMITS, type Pod, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { IS_TORTURE, runs } from '../support/torture.ts';
import { EDIT_TRACES } from './traces/editTraces.ts';
import { expectedEvents } from './traces/expectedEvents.ts';
import { TENANCY_TRACES } from './traces/tenancyTraces.ts';
import { TRACES } from './traces/traces.ts';

const skip = skipWithoutRedis();
const IMEI = '350000000000001';
const HERE = { lat: 41.9, lng: 12.5 };
const ELSEWHERE = { lat: 45, lng: 9 };
const DEPOT = { name: 'Depot', type: 'circle', center: HERE, radius_m: 300 };

/** Pods of this process no longer look at the feed by themselves: they learn what they ask for, and nothing else. */
function stopPolling(t: TestContext): void {
  t.mock.timers.enable({ apis: ['setInterval'] });
}

describe('the stories, with every call on another pod', { skip }, () => {
  test('three pods without notifications report them as the engine alone does, and a restart of all in between changes nothing', async (t) => {
    // Each is played on one pod, too. In the short form those whose areas and members change in between are enough.
    const traces = IS_TORTURE ? TRACES : [...EDIT_TRACES, ...TENANCY_TRACES];
    const { url } = await createDatabase(t);
    const redis = await startRedis(t);
    const all = await registerTraces(url, traces);
    await dropNotifications(url, redis.url);
    stopPolling(t);
    const start = (): Promise<Pod[]> =>
      Promise.all([0, 1, 2].map(() => startPod(url, { t, env: { ...NO_LIMITS, REDIS_URL: redis.url } })));
    let pods = await start();
    let calls = 0;
    const ports = {
      nextPod: () => pods[calls++ % pods.length] as Pod,
      admin: adminOf(url, redis.url),
      startMs: Date.now() - 3 * DAY_MS,
    };
    const players = traces.map((trace, n) => new ApiPlayer(trace, all[n] as (typeof all)[number], ports));
    const half = (player: ApiPlayer): number => player.trace.steps.length >> 1;
    await inLanes(players, (player) => player.play(0, half(player)));
    await Promise.all(pods.map((pod) => pod.stop()));
    pods = await start();
    await inLanes(players, (player) => player.play(half(player)));
    for (const player of players) {
      const { trace } = player;
      assert.deepEqual(await player.reportedEvents(), expectedEvents(trace, ports.startMs), trace.name);
    }
  });
});

describe('what was acknowledged on one pod decides on the very next point on the other', {
  skip,
}, () => {
  interface Setup extends AreaPods {
    /** Sends the device's next point to the pod of a side, some seconds after the last one. */
    point(side: AreaApi, afterSeconds: number, place: { lat: number; lng: number }): Promise<void>;
    /** The areas and events of all areas since the last call, oldest first. */
    news(): Promise<string[]>;
  }

  async function openSetup(t: TestContext, withNotifications: boolean): Promise<Setup> {
    if (!withNotifications) stopPolling(t);
    const both = await startAreaPods(t, { withNotifications });
    await both.admin.device('owner@example.com', IMEI);
    let clockMs = Date.now() - DAY_MS;
    let reported = 0;
    return {
      ...both,
      point: async ({ pod }, afterSeconds, { lat, lng }) => {
        clockMs += afterSeconds * 1_000;
        await pod.points([{ imei: IMEI, recorded_at: clockMs, latitude: lat, longitude: lng }]);
      },
      news: async () => {
        const [{ pod, key }] = both.apis;
        const { data } = (await pod.get('/api/v3/events?type=geofence&limit=200', key)).body;
        const events: { id: number; data: { areaId: number; event: string } }[] = data;
        const fresh = events.filter(({ id }) => id > reported);
        reported = Math.max(reported, ...fresh.map(({ id }) => id));
        return fresh.toReversed().map(({ data: { areaId, event } }) => `${areaId} ${event}`);
      },
    };
  }

  /** Creation, change, threshold and deletion. */
  async function edit({ point, news }: Setup, writer: AreaApi, sender: AreaApi): Promise<void> {
    const id = await writer.make(DEPOT);
    await point(sender, 1, HERE);
    assert.deepEqual(await news(), [`${id} entry`], 'created');
    await writer.patch(id, { center: ELSEWHERE });
    await point(sender, 1, HERE);
    assert.deepEqual(await news(), [`${id} exit`], 'moved away');
    await writer.patch(id, { center: HERE, dwell_seconds: 300 });
    await point(sender, 1, HERE);
    await writer.patch(id, { dwell_seconds: 60 });
    await point(sender, 59, HERE);
    assert.deepEqual(await news(), [], 'pending');
    await writer.patch(id, { dwell_seconds: 59 });
    await point(sender, 0.001, HERE);
    assert.deepEqual(await news(), [`${id} entry`], 'threshold lowered');
    await writer.remove(id);
    await point(sender, 1, ELSEWHERE);
    assert.deepEqual(await news(), [], 'deleted');
  }

  /** Sharing and unsharing, leaving and joining, of an area that is a colleague's. */
  async function share({ admin, apis, point, news }: Setup): Promise<void> {
    const [{ pod }, sender] = apis;
    await admin.account('colleague@example.com', { organization: 'Haulage' });
    const { key } = await admin.key('colleague@example.com');
    const id = await areaApi(pod, key).make(DEPOT);
    const move = (organization: string) =>
      admin.run('account:update', '--email', 'owner@example.com', '--organization', organization);
    await point(sender, 1, HERE);
    assert.deepEqual(await news(), [], 'private to the colleague');
    for (const hide of [() => admin.run('area:unshare', '--id', String(id)), () => move('none')]) {
      await admin.run('area:share', '--id', String(id));
      await point(sender, 1, HERE);
      assert.deepEqual(await news(), [`${id} entry`], 'shared');
      await hide();
      await point(sender, 1, HERE);
      await point(sender, 1, ELSEWHERE);
      assert.deepEqual(await news(), [], 'out of sight');
    }
    await move('Haulage');
  }

  async function importMany({ apis, point, news }: Setup): Promise<void> {
    const [writer, sender] = apis;
    const feature = (n: number) => ({
      type: 'Feature',
      properties: { name: `Area ${n}`, radius: 100 + n, type: 'circle' },
      geometry: { type: 'Point', coordinates: [HERE.lng, HERE.lat] },
    });
    const features = Array.from({ length: 50 }, (_, n) => feature(n));
    const { body } = await writer.import({ type: 'FeatureCollection', features });
    await point(sender, 1, HERE);
    const ids: number[] = body.data.created.map(({ id }: { id: number }) => id);
    assert.deepEqual(
      (await news()).filter((event) => ids.includes(Number.parseInt(event, 10))),
      ids.map((id) => `${id} entry`),
    );
  }

  for (const withNotifications of [true, false]) {
    test(`edits both ways, shares and imports${withNotifications ? '' : ', without notifications and polling'}`, async (t) => {
      const setup = await openSetup(t, withNotifications);
      const [one, other] = setup.apis;
      for (let round = 0; round < runs(1); round++) {
        await edit(setup, one, other);
        await edit(setup, other, one);
      }
      await share(setup);
      await importMany(setup);
    });
  }
});

describe('a pod that was away for longer than the feed is kept', () => {
  test('evaluates the first point that it takes by the areas of now', async (t) => {
    const { url, drop } = await createDatabase();
    const admin = adminOf(url);
    await admin.account('owner@example.com');
    const { key } = await admin.key('owner@example.com');
    await admin.device('owner@example.com', IMEI);
    stopPolling(t);
    const away = openMemoryPod(url);
    await away.follower.start();
    const present = await startPod(url);
    t.after(async () => {
      await away.close();
      await present.stop();
      await drop();
    });
    const id = await areaApi(present, key).make(DEPOT);
    await away.sql`update change set at = at - interval '1 hour'`;
    while ((await pruneChanges(away.sql)) > 0);
    await away.ingest.store([fixOf(IMEI, Date.now(), HERE)]);
    const { data } = (await present.get(`/api/v3/areas/${id}/events`, key)).body;
    assert.deepEqual(
      data.map(({ event }: { event: string }) => event),
      ['entry'],
    );
  });
});
