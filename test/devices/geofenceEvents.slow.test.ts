import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { expectedEvents } from '../ingest/traces/expectedEvents.ts';
import { TRACES } from '../ingest/traces/traces.ts';
import { ApiPlayer, inLanes, type WireEvent } from '../support/http/apiPlayer.ts';
import { areaApi, gist } from '../support/http/areas.ts';
import { registerTraces } from '../support/http/registerTraces.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { runs } from '../support/torture.ts';

const START_MS = Date.now() - 3 * 86_400_000;
const VERSIONS = ['v2', 'v3'] as const;
const ALIASES = { geofence_enter: 'entry', geofence_entry: 'entry', geofence_exit: 'exit' } as const;

describe('the traces of the engine, sent to the listeners, show', () => {
  let pod: Pod;
  let players: readonly ApiPlayer[];

  before(async () => {
    const { url } = await createDatabase();
    const all = await registerTraces(url, TRACES);
    pod = await startPod(url);
    const ports = { nextPod: () => pod, admin: adminOf(url), startMs: START_MS };
    players = TRACES.map((trace, n) => new ApiPlayer(trace, all[n] as (typeof all)[number], ports));
    await inLanes(players, (player) => player.play());
  });

  after(() => pod.stop());

  for (const [n, trace] of TRACES.entries()) {
    test(trace.name, async () => {
      assert.deepEqual(await players[n]?.reportedEvents(), expectedEvents(trace, START_MS), trace.rule);
    });
  }

  /** Every account of every story, or of the first ones. */
  async function forEachReader(
    prove: (player: ApiPlayer, account: string) => Promise<void>,
    stories = players,
  ): Promise<void> {
    const readers = stories.flatMap((player) =>
      [...player.tenants.keys.keys()].map((name) => [player, name] as const),
    );
    await Promise.all(readers.map(([player, account]) => prove(player, account)));
  }

  const read = new Map<string, Promise<WireEvent[]>>();
  /** What an account sees of the areas. Nothing is added any more, so it is asked for once. */
  function geofenceEvents(
    player: ApiPlayer,
    account: string,
    version: (typeof VERSIONS)[number],
  ): Promise<WireEvent[]> {
    const name = `${players.indexOf(player)} ${account} ${version}`;
    const events = read.get(name) ?? player.events(account, version, 'type=geofence');
    read.set(name, events);
    return events;
  }

  test('on v2 what they show on v3, with geofenceId in the place of areaId', async () => {
    await forEachReader(async (player, account) => {
      const [v2, v3] = await Promise.all(VERSIONS.map((v) => geofenceEvents(player, account, v)));
      const translated = v3?.map(({ data: { areaId, ...rest }, ...event }) => {
        assert.ok(Number.isSafeInteger(areaId));
        return { ...event, data: { ...rest, geofenceId: areaId } };
      });
      assert.deepEqual(v2, translated);
    });
  });

  for (const version of VERSIONS) {
    test(`entries and exits alone for every alias of the type filter on ${version}`, async () => {
      let shown = 0;
      await forEachReader(
        async (player, account) => {
          const all = await geofenceEvents(player, account, version);
          for (const [alias, direction] of Object.entries(ALIASES)) {
            const events = await player.events(account, version, `type=${alias}`);
            assert.deepEqual(
              events,
              all.filter((event) => event.data['event'] === direction),
              alias,
            );
            shown += events.length;
          }
        },
        players.slice(0, runs(12)),
      );
      assert.ok(shown > 20, `${shown} events`);
    });
  }

  test('every documented field of an event and no other, and in words what it is', async () => {
    await forEachReader(async (player, account) => {
      for (const event of await geofenceEvents(player, account, 'v3')) {
        const { data, device_imei: imei, id, message, occurred_at: occurredAt } = event;
        const [device] = [...player.tenants.imeis].find(([, known]) => known === imei) ?? [];
        const isExit = data['event'] === 'exit';
        assert.deepEqual(Object.keys(event), [
          ...['id', 'type', 'message', 'device_imei', 'data', 'read', 'occurred_at'],
        ]);
        assert.deepEqual(
          Object.keys(data).sort(),
          [
            ...['areaId', 'areaName', 'dwellSeconds', 'enteredAt', 'event', 'position'],
            ...(isExit ? ['staySeconds'] : []),
          ].sort(),
        );
        assert.ok(Number.isSafeInteger(id) && id > 0);
        assert.equal(message, `${device} ${isExit ? 'left' : 'entered'} ${data['areaName']}`);
        assert.deepEqual([event.type, event.read], ['geofence', false]);
        assert.equal(new Date(occurredAt).toISOString(), occurredAt);
      }
    });
  });

  test('the same events under the same ids in the list of their area; that of a deleted or foreign area is a 404', async () => {
    let listed = 0;
    let gone = 0;
    await forEachReader(async (player, account) => {
      const events = await geofenceEvents(player, account, 'v3');
      const visible = await player.api(account).ids();
      for (const { id } of player.areas.values()) {
        const ofArea = events.filter((event) => event.data['areaId'] === id);
        const reply = await player.api(account).get(`/${id}/events?limit=200`);
        if (!visible.includes(id)) {
          assert.equal(gist(reply), '404 NOT_FOUND');
          gone += ofArea.length;
          continue;
        }
        assert.deepEqual(
          reply.body.data,
          ofArea.map((event) => ({
            id: event.id,
            area_id: id,
            device: event.device_imei,
            event: event.data['event'],
            position: event.data['position'],
            timestamp: event.occurred_at,
          })),
        );
        listed += ofArea.length;
      }
    });
    assert.ok(listed > 50 && gone > 0, `${listed} listed, ${gone} gone`);
  });
});

describe('a geofence event', () => {
  const OWNER = 'owner@example.com';
  const VAN = '350000000000001';
  let pod: Pod;
  let admin: Admin;
  let key: string;
  let areaId: number;

  before(async () => {
    const { url } = await createDatabase();
    admin = adminOf(url);
    await admin.account(OWNER);
    ({ key } = await admin.key(OWNER));
    await admin.importDevices(OWNER, [{ imei: VAN, name: 'Van 12' }]);
    pod = await startPod(url);
    const circle = { type: 'circle', center: { lat: 41.9, lng: 12.5 }, radius_m: 300 };
    areaId = await areaApi(pod, key).make({ ...circle, name: 'Depot Nord' });
  });
  after(() => pod.stop());

  const send = (second: number, isInside: boolean) => {
    const place = { latitude: isInside ? 41.9 : 41.95, longitude: 12.5 };
    return pod.points([{ imei: VAN, recorded_at: START_MS + second * 1_000, ...place }]);
  };
  const eventsOf = async (version: string, query: string): Promise<WireEvent[]> =>
    (await pod.get(`/api/${version}/events?${query}`, key)).body.data;

  test('has the names of its device and its area at that moment', async () => {
    await send(0, true);
    await send(1, false);
    await admin.importDevices(OWNER, [{ imei: VAN, name: 'Lorry "7"' }]);
    await send(10, true);
    await areaApi(pod, key).patch(areaId, { name: 'Depot ‘Süd’' });
    await send(20, false);
    assert.deepEqual(
      (await eventsOf('v2', `device=${VAN}`)).map(({ message }) => message),
      [
        'Lorry "7" left Depot ‘Süd’',
        'Lorry "7" entered Depot Nord',
        'Van 12 left Depot Nord',
        'Van 12 entered Depot Nord',
      ],
    );
  });
});
