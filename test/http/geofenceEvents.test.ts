import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { expectedTelling } from '../engine/traces/telling.ts';
import { TRACES } from '../engine/traces/traces.ts';
import { type Admin, adminOf } from '../support/admin.ts';
import { ApiStage, type WireEvent } from '../support/apiStage.ts';
import { areaApi, gist } from '../support/areas.ts';
import { castTraces } from '../support/cast.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const START_MS = Date.now() - 3 * 86_400_000;
const VERSIONS = ['v2', 'v3'] as const;
const ALIASES = { geofence_enter: 'entry', geofence_entry: 'entry', geofence_exit: 'exit' } as const;

const byTime = (events: readonly WireEvent[]): WireEvent[] =>
  events.toSorted((a, b) => Date.parse(b.occurred_at) - Date.parse(a.occurred_at) || b.id - a.id);

describe('the stories of the engine, played through the listeners', () => {
  let pod: Pod;
  let stages: readonly ApiStage[];

  before(async () => {
    const { url } = await createDatabase();
    const casts = await castTraces(url, TRACES);
    pod = await startPod(url);
    const ports = { nextPod: () => pod, admin: adminOf(url), startMs: START_MS };
    stages = TRACES.map((trace, n) => new ApiStage(trace, casts[n] as (typeof casts)[number], ports));
    await Promise.all(stages.map((stage) => stage.play()));
  });

  after(() => pod.stop());

  for (const [n, trace] of TRACES.entries()) {
    test(trace.name, async () => {
      assert.deepEqual(await stages[n]?.told(), expectedTelling(trace, START_MS), trace.rule);
    });
  }

  /** Every account of every story. */
  async function forEachReader(prove: (stage: ApiStage, account: string) => Promise<void>): Promise<void> {
    const readers = stages.flatMap((stage) =>
      [...stage.cast.keys.keys()].map((name) => [stage, name] as const),
    );
    await Promise.all(readers.map(([stage, account]) => prove(stage, account)));
  }

  test('lists show the newest first, of equal times the one produced last', async () => {
    await forEachReader(async (stage, account) => {
      const events = await stage.events(account, 'v3', '');
      assert.deepEqual(events, byTime(events));
    });
  });

  test('v2 shows what v3 shows, with geofenceId in the place of areaId', async () => {
    await forEachReader(async (stage, account) => {
      const [v2, v3] = await Promise.all(VERSIONS.map((v) => stage.events(account, v, 'type=geofence')));
      const translated = v3?.map(({ data: { areaId, ...rest }, ...event }) => {
        assert.ok(Number.isSafeInteger(areaId));
        return { ...event, data: { ...rest, geofenceId: areaId } };
      });
      assert.deepEqual(v2, translated);
    });
  });

  for (const version of VERSIONS) {
    test(`every alias of the type filter works on ${version}`, async () => {
      let shown = 0;
      await forEachReader(async (stage, account) => {
        const all = await stage.events(account, version, 'type=geofence');
        for (const [alias, direction] of Object.entries(ALIASES)) {
          const events = await stage.events(account, version, `type=${alias}`);
          assert.deepEqual(
            events,
            all.filter((event) => event.data['event'] === direction),
            alias,
          );
          shown += events.length;
        }
      });
      assert.ok(shown > 100);
    });
  }

  test('an event has every documented field and no other, and says in words what it is', async () => {
    await forEachReader(async (stage, account) => {
      for (const event of await stage.events(account, 'v3', 'type=geofence')) {
        const { data, device_imei: imei, id, message, occurred_at: occurredAt } = event;
        const [device] = [...stage.cast.imeis].find(([, known]) => known === imei) ?? [];
        const isExit = data['event'] === 'exit';
        assert.deepEqual(Object.keys(event), [
          'id',
          'type',
          'message',
          'device_imei',
          'data',
          'read',
          'occurred_at',
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

  test('the list of an area shows the same events under the same ids; that of a deleted or foreign area is 404', async () => {
    let listed = 0;
    let gone = 0;
    await forEachReader(async (stage, account) => {
      const events = await stage.events(account, 'v3', 'type=geofence');
      const visible = await stage.api(account).ids();
      for (const { id } of stage.areas.values()) {
        const ofArea = events.filter((event) => event.data['areaId'] === id);
        const reply = await stage.api(account).get(`/${id}/events?limit=200`);
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
    assert.ok(listed > 100 && gone > 0);
  });
});

describe('what a geofence event says', () => {
  const OWNER = 'owner@example.com';
  const NAMED = '350000000000001';
  const PLATED = '350000000000002';
  const BARE = '350000000000003';
  let pod: Pod;
  let admin: Admin;
  let key: string;
  let areaId: number;

  const send = (imei: string, second: number, isInside: boolean, values: object = {}) =>
    pod.points([
      {
        imei,
        recorded_at: START_MS + second * 1_000,
        latitude: isInside ? 41.9 : 41.95,
        longitude: 12.5,
        speed_kmh: 30,
        ...values,
      },
    ]);
  const messages = async (imei: string): Promise<string[]> =>
    (await pod.get(`/api/v2/events?device=${imei}`, key)).body.data.map(
      ({ message }: { message: string }) => message,
    );

  before(async () => {
    const { url } = await createDatabase();
    admin = adminOf(url);
    await admin.account(OWNER);
    ({ key } = await admin.key(OWNER));
    await admin.importDevices(OWNER, [
      { imei: NAMED, name: 'Van 12', plate: 'XY 999' },
      { imei: PLATED, plate: 'AB 123' },
      { imei: BARE },
    ]);
    pod = await startPod(url);
    areaId = await areaApi(pod, key).make({
      name: 'Depot Nord',
      type: 'circle',
      center: { lat: 41.9, lng: 12.5 },
      radius_m: 300,
    });
  });

  after(() => pod.stop());

  test('names the device, or its plate or IMEI when it has no name', async () => {
    for (const imei of [NAMED, PLATED, BARE]) {
      await send(imei, 0, true);
      await send(imei, 1, false);
    }
    assert.deepEqual(await messages(NAMED), ['Van 12 left Depot Nord', 'Van 12 entered Depot Nord']);
    assert.deepEqual(await messages(PLATED), ['AB 123 left Depot Nord', 'AB 123 entered Depot Nord']);
    assert.deepEqual(await messages(BARE), [`${BARE} left Depot Nord`, `${BARE} entered Depot Nord`]);
  });

  test('by the names of that moment; what was told is not rewritten', async () => {
    await admin.importDevices(OWNER, [{ imei: NAMED, name: 'Lorry "7"' }]);
    await send(NAMED, 10, true);
    await areaApi(pod, key).patch(areaId, { name: 'Depot ‘Süd’' });
    await send(NAMED, 20, false);
    assert.deepEqual(await messages(NAMED), [
      'Lorry "7" left Depot ‘Süd’',
      'Lorry "7" entered Depot Nord',
      'Van 12 left Depot Nord',
      'Van 12 entered Depot Nord',
    ]);
    await areaApi(pod, key).patch(areaId, { name: 'Depot Nord' });
  });

  test('comes after what the same point tells of the device alone', async () => {
    await send(PLATED, 100, false, { ignition: false });
    await send(PLATED, 110, true, { ignition: true, rfid: 'card' });
    await send(PLATED, 120, false, { ignition: false, alarm: 'sos' });
    const { data } = (await pod.get(`/api/v3/events?device=${PLATED}&limit=6`, key)).body;
    assert.deepEqual(
      data
        .toSorted((a: WireEvent, b: WireEvent) => a.id - b.id)
        .map((event: WireEvent) => [event.type, event.data['event'] ?? null]),
      [
        ['ignition_on', null],
        ['rfid', null],
        ['geofence', 'entry'],
        ['ignition_off', null],
        ['alarm', null],
        ['geofence', 'exit'],
      ],
    );
    assert.deepEqual(data, byTime(data));
  });

  for (const version of VERSIONS) {
    test(`is found by every filter at once on ${version}`, async () => {
      const at = (second: number): string => new Date(START_MS + second * 1_000).toISOString();
      const ids = async (query: string): Promise<number[]> =>
        (await pod.get(`/api/${version}/events?${query}`, key)).body.data.map(({ id }: WireEvent) => id);
      const all = await ids(`type=geofence&device=${NAMED}`);
      assert.equal(all.length, 4);
      const window = `from=${at(1)}&to=${at(10)}`;
      assert.deepEqual(await ids(`type=geofence&device=${NAMED}&${window}`), all.slice(1, 3));
      assert.deepEqual(await ids(`type=geofence_exit&device=${NAMED}&${window}`), all.slice(2, 3));
      assert.deepEqual(
        await ids(`type=geofence&device=${NAMED}&${window}&limit=1&offset=1`),
        all.slice(2, 3),
      );
      assert.deepEqual(await ids(`type=geofence_enter&device=${NAMED}&offset=1`), all.slice(3));
    });
  }

  test('outlives its area in the list of events, and the area’s own list is gone', async () => {
    const api = areaApi(pod, key);
    const before = (await pod.get('/api/v3/events?type=geofence', key)).text;
    assert.equal((await api.get(`/${areaId}/events`)).status, 200);
    await api.remove(areaId);
    assert.equal((await pod.get('/api/v3/events?type=geofence', key)).text, before);
    assert.equal(gist(await api.get(`/${areaId}/events`)), '404 NOT_FOUND');
  });
});
