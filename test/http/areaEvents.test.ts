import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Admin, adminOf } from '../support/admin.ts';
import { areaApi, gist } from '../support/areas.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const START_MS = Date.now() - 3_600_000;
const VAN = '350000000000001';
const BUS = '350000000000002';
const FOREIGN = '350000000000009';
const DEPOT = { name: 'Depot Nord', type: 'circle', center: { lat: 41.9, lng: 12.5 }, radius_m: 300 };

const at = (second: number): string => new Date(START_MS + second * 1_000).toISOString();
const point = (imei: string, second: number, isInside: boolean) => ({
  imei,
  recorded_at: at(second),
  latitude: isInside ? 41.9001 : 41.95,
  longitude: 12.5,
  speed_kmh: 30,
});

/** What the list of the depot shows of an event, besides ids. */
type Shown = [second: number, device: string, event: 'entry' | 'exit'];

/** The van is in and out, again and again, alone. */
const VISITS = 120;
const VAN_EVENTS = Array.from(
  { length: 2 * VISITS },
  (_, n): Shown => [10 + n, VAN, n % 2 === 0 ? 'entry' : 'exit'],
);
/** Produced after the van's, and of the times of some of them. */
const BUS_EVENTS: Shown[] = [
  [20, BUS, 'entry'],
  [25, BUS, 'exit'],
];
/** Newest first; of equal times the one produced last. */
const ALL = [...VAN_EVENTS, ...BUS_EVENTS]
  .map((event, n) => ({ event, n }))
  .sort((a, b) => b.event[0] - a.event[0] || b.n - a.n)
  .map(({ event }) => event);

describe('GET /api/v3/areas/{id}/events', () => {
  let pod: Pod;
  let admin: Admin;
  let key: string;
  let foreignKey: string;
  let depot: number;
  let foreignArea: number;

  before(async () => {
    const { url } = await createDatabase();
    admin = adminOf(url);
    await admin.account('owner@example.com');
    await admin.account('other@example.com');
    ({ key } = await admin.key('owner@example.com'));
    ({ key: foreignKey } = await admin.key('other@example.com'));
    await admin.importDevices('owner@example.com', [{ imei: VAN }, { imei: BUS }]);
    await admin.device('other@example.com', FOREIGN);
    pod = await startPod(url);
    depot = await areaApi(pod, key).make(DEPOT);
    foreignArea = await areaApi(pod, foreignKey).make(DEPOT);
    // Another area over the same place, so that the list of one is not the list of all.
    await areaApi(pod, key).make({ ...DEPOT, name: 'Depot too' });
    await pod.points([
      point(VAN, 0, false),
      ...VAN_EVENTS.map(([second, , event]) => point(VAN, second, event === 'entry')),
    ]);
    await pod.points([...BUS_EVENTS.map(([second, , event]) => point(BUS, second, event === 'entry'))]);
    await pod.points([point(FOREIGN, 20, true)]);
  });

  after(() => pod.stop());

  const get = (query = '', id: number | string = depot, reader = key): Promise<Reply> =>
    pod.get(`/api/v3/areas/${id}/events${query}`, reader);
  const shown = ({ body }: Reply): Shown[] =>
    body.data.map((event: Record<string, unknown>) => [
      (Date.parse(String(event['timestamp'])) - START_MS) / 1_000,
      event['device'],
      event['event'],
    ]);

  describe('200', () => {
    test('shows every documented field and no other', async () => {
      const { body } = await get('?limit=1');
      const [event] = body.data;
      assert.ok(Number.isSafeInteger(event.id));
      assert.deepEqual(event, {
        id: event.id,
        area_id: depot,
        device: VAN,
        event: 'exit',
        position: { lat: 41.95, lng: 12.5 },
        timestamp: at(10 + 2 * VISITS - 1),
      });
    });

    test('the newest 50 without any parameter', async () => {
      const reply = await get();
      assert.equal(reply.status, 200);
      assert.deepEqual(shown(reply), ALL.slice(0, 50));
      assert.deepEqual(reply.body.meta, { pagination: { limit: 50, offset: 0, count: 50 } });
    });

    test('ids rise in the order of production and are those of the list of all events', async () => {
      const ids: number[] = (await get(`?device=${VAN}&limit=200`)).body.data.map(
        ({ id }: { id: number }) => id,
      );
      assert.deepEqual(
        ids,
        ids.toSorted((a, b) => b - a),
      );
      const { data } = (await pod.get(`/api/v3/events?type=geofence&device=${VAN}&limit=200`, key)).body;
      const ofDepot = data.filter((event: { data: { areaId: number } }) => event.data.areaId === depot);
      assert.deepEqual(
        ids.slice(0, ofDepot.length),
        ofDepot.map(({ id }: { id: number }) => id),
      );
    });

    const filters: [query: string, expected: Shown[]][] = [
      ['event=entry', ALL.filter(([, , event]) => event === 'entry')],
      ['event=exit', ALL.filter(([, , event]) => event === 'exit')],
      ['event=', ALL],
      ['event=%20', ALL],
      [`device=${BUS}`, BUS_EVENTS.toReversed()],
      [`device=${BUS}&event=exit`, BUS_EVENTS.slice(1)],
      [`device=${FOREIGN}`, []],
      ['device=35000000000099', []],
      [`from=${at(240)}`, ALL.filter(([second]) => second >= 240)],
      [`to=${at(20)}`, ALL.filter(([second]) => second <= 20)],
      [`from=${at(20)}&to=${at(20)}`, ALL.filter(([second]) => second === 20)],
      [`from=${at(25)}&to=${at(20)}`, []],
      ['from=0001-01-01&to=9999-12-31', ALL],
      ['to=2001-01-01', []],
      ['from=&to=', ALL],
      [`from=${at(20)}&to=${at(25)}&event=exit&device=${VAN}`, ALL.filter(isExitOfVanIn20To25)],
      ['type=alarm&areaId=1', ALL],
    ];
    for (const [query, expected] of filters) {
      test(`${query} shows ${expected.length} events`, async () => {
        const [first, second] = [
          await get(`?${query}&limit=200`),
          await get(`?${query}&limit=200&offset=200`),
        ];
        assert.equal(first.status, 200, first.text);
        assert.deepEqual([...shown(first), ...shown(second)], expected);
      });
    }

    const pages: [query: string, limit: number, offset: number][] = [
      ['limit=3&offset=4', 3, 4],
      ['limit=0', 1, 0],
      ['limit=-7', 1, 0],
      ['limit=200', 200, 0],
      ['limit=201', 200, 0],
      ['limit=9007199254740993', 200, 0],
      ['limit=2.9&offset=1.9', 2, 1],
      ['limit=x&offset=x', 50, 0],
      ['limit=&offset=', 50, 0],
      ['limit=1e2', 50, 0],
      ['offset=-5', 50, 0],
      [`offset=${ALL.length - 1}`, 50, ALL.length - 1],
      [`offset=${ALL.length}`, 50, ALL.length],
      [`limit=200&offset=${'9'.repeat(400)}`, 200, Number.MAX_SAFE_INTEGER],
    ];
    for (const [query, limit, offset] of pages) {
      test(`${query.slice(0, 40)} is the page of ${limit} from ${offset}`, async () => {
        const reply = await get(`?${query}`);
        assert.equal(reply.status, 200, reply.text);
        const expected = ALL.slice(offset, offset + limit);
        assert.deepEqual(shown(reply), expected);
        assert.deepEqual(reply.body.meta, { pagination: { limit, offset, count: expected.length } });
      });
    }

    test('an area where nothing has happened has an empty list', async () => {
      const id = await areaApi(pod, key).make({ ...DEPOT, center: { lat: -10, lng: 10 } });
      const { body } = await get('', id);
      assert.deepEqual(body, { data: [], meta: { pagination: { limit: 50, offset: 0, count: 0 } } });
    });

    test('entries respect the minimum stay: who only passes through is absent', async () => {
      const api = areaApi(pod, key);
      const center = { lat: -20, lng: 20 };
      const id = await api.make({ ...DEPOT, center, dwell_seconds: 60 });
      const near = (second: number, isInside: boolean) => ({
        ...point(BUS, second, isInside),
        latitude: isInside ? center.lat : center.lat + 1,
        longitude: center.lng,
      });
      await pod.points([near(1_000, true), near(1_059, true), near(1_060, false)]);
      assert.deepEqual(shown(await get('', id)), []);
      await pod.points([near(1_100, true), near(1_160, true), near(1_170, false)]);
      assert.deepEqual(shown(await get('', id)), [
        [1_170, BUS, 'exit'],
        [1_160, BUS, 'entry'],
      ]);
    });
  });

  describe('400', () => {
    const refused: [query: string, code: string][] = [
      ['event=enter', 'BAD_REQUEST'],
      ['event=Entry', 'BAD_REQUEST'],
      ['event=entry,exit', 'BAD_REQUEST'],
      ['event=geofence_enter', 'BAD_REQUEST'],
      ['event=__proto__', 'BAD_REQUEST'],
      ['event=%00', 'BAD_REQUEST'],
      ['event=entry&event=exit', 'BAD_REQUEST'],
      ['device=', 'IMEI_REQUIRED'],
      ['device=%20', 'IMEI_REQUIRED'],
      ['device=123', 'BAD_REQUEST'],
      ['device=35000000000000x', 'BAD_REQUEST'],
      ['from=x', 'BAD_REQUEST'],
      ['from=1700000000', 'BAD_REQUEST'],
      ['to=2026-02-30', 'BAD_REQUEST'],
      ['limit=1&limit=2', 'BAD_REQUEST'],
    ];
    for (const [query, code] of refused) {
      test(`${query}: ${code}, whether there is such an area or not`, async () => {
        for (const id of [depot, foreignArea, 999_999]) {
          assert.equal(gist(await get(`?${query}`, id)), `400 ${code}`);
        }
      });
    }

    for (const id of ['0', '-1', '1.5', 'x', '1e3', '0x1', '9007199254740992', '%20', `${'9'.repeat(30)}`]) {
      test(`the id ${id} is malformed`, async () => {
        assert.equal(gist(await get('', id)), '400 BAD_REQUEST');
      });
    }
  });

  describe('403 and 404', () => {
    test('a foreign area and one that is not there have the very same answer', async () => {
      const [foreign, missing, largest] = [
        await get('', foreignArea),
        await get('', 999_999),
        await get('', Number.MAX_SAFE_INTEGER),
      ];
      assert.equal(gist(foreign), '404 NOT_FOUND');
      assert.equal(foreign.text, missing.text);
      assert.equal(foreign.text, largest.text);
      assert.equal((await get('', foreignArea, foreignKey)).status, 200);
    });

    test('a deleted area has no list of events; its events stay in the list of all', async () => {
      const api = areaApi(pod, key);
      const id = await api.make({ ...DEPOT, center: { lat: 41.95, lng: 12.5 } });
      await pod.points([point(VAN, 2_000, false)]);
      const [event] = (await get('', id)).body.data;
      assert.equal(event.event, 'entry');
      await api.remove(id);
      const gone = await get('', id);
      assert.equal(gist(gone), '404 NOT_FOUND');
      assert.equal(gone.text, (await get('', 999_999)).text);
      const [newest] = (await pod.get(`/api/v2/events?from=${at(2_000)}`, key)).body.data;
      assert.deepEqual([newest.id, newest.data.geofenceId], [event.id, id]);
    });

    test('read_areas opens it, and no other permission does', async () => {
      for (const scopes of [
        'read_areas',
        'read_events,write_areas,read_devices,read_history,read_locations',
      ]) {
        const { key: reader } = await admin.key('owner@example.com', { scopes });
        const expected = scopes === 'read_areas' ? '200' : '403 INSUFFICIENT_SCOPE';
        assert.equal(gist(await get('', depot, reader)), expected);
        // Refused for the permission before anything else is looked at.
        assert.equal(
          gist(await get('?event=x', 'x', reader)).slice(0, 3),
          expected === '200' ? '400' : '403',
        );
      }
    });

    test('there is none in v2, and nothing but reading', async () => {
      assert.equal((await pod.get(`/api/v2/areas/${depot}/events`, key)).status, 404);
      const reply = await areaApi(pod, key).send('POST', `/${depot}/events`, { body: {} });
      assert.equal(gist(reply), '405 METHOD_NOT_ALLOWED');
    });
  });
});

function isExitOfVanIn20To25([second, device, event]: Shown): boolean {
  return device === VAN && event === 'exit' && second >= 20 && second <= 25;
}
