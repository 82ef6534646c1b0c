import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { pruneChanges } from '../../src/changelog/changes.sql.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import { openMemoryPod } from '../coherence/memoryPod.ts';
import { ApiPlayer } from '../support/http/apiPlayer.ts';
import { type AreaPods, startAreaPods } from '../support/http/areaPods.ts';
import { type AreaApi, areaApi } from '../support/http/areas.ts';
import { dropNotifications } from '../support/http/dropNotifications.ts';
import { registerTraces } from '../support/http/registerTraces.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { NO_LIMITS, type Pod, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { runs } from '../support/torture.ts';
import { expectedEvents } from './traces/expectedEvents.ts';
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
    const { url } = await createDatabase(t);
    const redis = await startRedis(t);
    const all = await registerTraces(url, TRACES);
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
    const players = TRACES.map((trace, n) => new ApiPlayer(trace, all[n] as (typeof all)[number], ports));
    const half = (player: ApiPlayer): number => player.trace.steps.length >> 1;
    await Promise.all(players.map((player) => player.play(0, half(player))));
    await Promise.all(pods.map((pod) => pod.stop()));
    pods = await start();
    await Promise.all(players.map((player) => player.play(half(player))));
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
    /** The events of an area since the last call, oldest first. */
    news(areaId: number): Promise<string[]>;
  }

  async function openSetup(
    t: TestContext,
    { withNotifications }: { withNotifications: boolean },
  ): Promise<Setup> {
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
      news: async (areaId) => {
        const [{ pod, key }] = both.apis;
        const { data } = (await pod.get('/api/v3/events?type=geofence&limit=200', key)).body;
        const fresh = data.filter(
          (event: { id: number; data: { areaId: number } }) =>
            event.id > reported && event.data.areaId === areaId,
        );
        reported = Math.max(reported, ...data.map((event: { id: number }) => event.id));
        return fresh.toReversed().map((event: { data: { event: string } }) => event.data.event);
      },
    };
  }

  for (const withNotifications of [true, false]) {
    const how = withNotifications ? '' : ' without notifications and polling';
    test(`creation, change, threshold and deletion, over and over, both ways${how}`, async (t) => {
      const setup = await openSetup(t, { withNotifications });
      for (let round = 0; round < runs(2); round++) {
        const [writer, sender] = round % 2 === 0 ? setup.apis : [setup.apis[1], setup.apis[0]];
        const id = await writer.make(DEPOT);
        await setup.point(sender, 1, HERE);
        assert.deepEqual(await setup.news(id), ['entry'], 'created');
        await writer.patch(id, { center: ELSEWHERE });
        await setup.point(sender, 1, HERE);
        assert.deepEqual(await setup.news(id), ['exit'], 'moved away');
        await writer.patch(id, { center: HERE, dwell_seconds: 300 });
        await setup.point(sender, 1, HERE);
        await writer.patch(id, { dwell_seconds: 60 });
        await setup.point(sender, 59, HERE);
        assert.deepEqual(await setup.news(id), [], 'pending');
        await writer.patch(id, { dwell_seconds: 59 });
        await setup.point(sender, 0.001, HERE);
        assert.deepEqual(await setup.news(id), ['entry'], 'threshold lowered');
        await writer.remove(id);
        await setup.point(sender, 1, ELSEWHERE);
        assert.deepEqual(await setup.news(id), [], 'deleted');
      }
    });

    test(`sharing and unsharing, joining and leaving${how}`, async (t) => {
      const setup = await openSetup(t, { withNotifications });
      const [, sender] = setup.apis;
      const { admin } = setup;
      await admin.account('colleague@example.com', { organization: 'Haulage' });
      const { key } = await admin.key('colleague@example.com');
      const id = await areaApi(setup.apis[0].pod, key).make(DEPOT);
      await setup.point(sender, 1, HERE);
      assert.deepEqual(await setup.news(id), [], 'private to the colleague');
      for (let round = 0; round < runs(2); round++) {
        await admin.run('area:share', '--id', String(id));
        await setup.point(sender, 1, HERE);
        assert.deepEqual(await setup.news(id), ['entry'], 'shared');
        if (round % 2 === 0) await admin.run('area:unshare', '--id', String(id));
        else await admin.run('account:update', '--email', 'owner@example.com', '--organization', 'none');
        await setup.point(sender, 1, HERE);
        await setup.point(sender, 1, ELSEWHERE);
        assert.deepEqual(await setup.news(id), [], 'out of sight');
        if (round % 2 === 1) {
          await admin.run('account:update', '--email', 'owner@example.com', '--organization', 'Haulage');
        }
      }
    });
  }

  test('all areas of an import at once', async (t) => {
    const setup = await openSetup(t, { withNotifications: false });
    const [writer, sender] = setup.apis;
    const feature = (n: number) => ({
      type: 'Feature',
      properties: { name: `Area ${n}`, radius: 100 + n, type: 'circle' },
      geometry: { type: 'Point', coordinates: [HERE.lng, HERE.lat] },
    });
    const features = Array.from({ length: 50 }, (_, n) => feature(n));
    const { body } = await writer.import({ type: 'FeatureCollection', features });
    await setup.point(sender, 1, HERE);
    const events = (await writer.pod.get('/api/v3/events?type=geofence_entry&limit=200', writer.key)).body
      .data;
    assert.deepEqual(
      events.map((event: { data: { areaId: number } }) => event.data.areaId).toReversed(),
      body.data.created.map(({ id }: { id: number }) => id),
    );
  });
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
