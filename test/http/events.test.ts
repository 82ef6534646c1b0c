import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { adminOf } from '../support/admin.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const VAN = '350000000000001';
const BUS = '350000000000002';
const TRUCK = '350000000000003';
const FOREIGN = '350000000000009';
const START_MS = Date.now() - 3_600_000;

type Event = [second: number, type: string, imei: string, message: string, data: Record<string, unknown>];

const at = (second: number): string => new Date(START_MS + second * 1_000).toISOString();
const point = (imei: string, second: number, values: object = {}) => ({
  imei,
  recorded_at: at(second),
  latitude: 41.9 + second / 1e4,
  longitude: 12.5,
  speed_kmh: 30,
  ...values,
});
const position = (second: number) => ({ position: { lat: 41.9 + second / 1e4, lng: 12.5 } });

/** Sent in one batch, in another order than time's. */
const VAN_TRACE = [
  point(VAN, 0, { ignition: false }),
  point(VAN, 10, { ignition: true }),
  point(VAN, 20, { alarm: 'sos, tampering', rfid: 'CARD 7' }),
  point(VAN, 30, { alarm: 'sos,removing', rfid: 'CARD 7' }),
  point(VAN, 40, { speed_kmh: 4.9 }),
  point(VAN, 159, { speed_kmh: 0 }),
  point(VAN, 160, { speed_kmh: 0, ignition: false }),
  point(VAN, 300, { speed_kmh: 5, alarm: 'tamper', rfid: 'CARD 8' }),
];

/** In the order of production, oldest first. */
const VAN_EVENTS: Event[] = [
  [10, 'ignition_on', VAN, 'Van 12 switched its ignition on', { ...position(10), ignition: true }],
  [20, 'alarm', VAN, 'Van 12 raised an alarm: sos', { ...position(20), alarm: 'sos' }],
  [20, 'tamper_alert', VAN, 'Van 12 reports tampering: tampering', { ...position(20), alarm: 'tampering' }],
  [20, 'rfid', VAN, 'Van 12 read the tag CARD 7', { ...position(20), rfid: 'CARD 7' }],
  [30, 'tamper_alert', VAN, 'Van 12 reports tampering: removing', { ...position(30), alarm: 'removing' }],
  [160, 'ignition_off', VAN, 'Van 12 switched its ignition off', { ...position(160), ignition: false }],
  [160, 'parking_start', VAN, 'Van 12 has parked', { ...position(160), parked_at: at(40) }],
  [300, 'parking_end', VAN, 'Van 12 is on its way again', { ...position(300), parked_at: at(40) }],
  [300, 'tamper_alert', VAN, 'Van 12 reports tampering: tamper', { ...position(300), alarm: 'tamper' }],
  [300, 'rfid', VAN, 'Van 12 read the tag CARD 8', { ...position(300), rfid: 'CARD 8' }],
];
/** Younger by id than the van's, older by time: a list by time is not a list by id. */
const OTHER_EVENTS: Event[] = [
  [5, 'rfid', BUS, 'AB 123 read the tag B', { ...position(5), rfid: 'B' }],
  [20, 'alarm', TRUCK, `${TRUCK} raised an alarm: "{}\\'`, { ...position(20), alarm: `"{}\\'` }],
];
const DEEP = 450;

describe('fleet events', () => {
  let pod: Pod;
  let key: string;
  let deepKey: string;

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    for (const email of ['owner@example.com', 'other@example.com', 'deep@example.com'])
      await admin.account(email);
    ({ key } = await admin.key('owner@example.com', { scopes: 'read_events' }));
    ({ key: deepKey } = await admin.key('deep@example.com'));
    await admin.importDevices('owner@example.com', [
      { imei: VAN, name: 'Van 12', plate: 'XY 999' },
      { imei: BUS, plate: 'AB 123' },
      { imei: TRUCK },
    ]);
    await admin.device('other@example.com', FOREIGN);
    await admin.importDevices('deep@example.com', [{ imei: '350000000000100' }, { imei: '350000000000200' }]);
    pod = await startPod(database.url);
    await pod.points(VAN_TRACE.toReversed());
    await pod.points([point(BUS, 5, { rfid: 'B' })]);
    await pod.points([point(TRUCK, 20, { alarm: `"{}\\'` }), point(FOREIGN, 20, { alarm: 'sos' })]);
    await pod.points(
      Array.from({ length: DEEP }, (_, n) =>
        point(n % 2 === 0 ? '350000000000100' : '350000000000200', n >> 1, { rfid: `tag ${n}` }),
      ),
    );
  });

  after(() => pod.stop());

  /** As the list shows them: newest first, of equal times the one produced last. */
  const newestFirst = (events: readonly Event[]): Event[] =>
    events
      .map((event, n) => ({ event, n }))
      .sort((a, b) => b.event[0] - a.event[0] || b.n - a.n)
      .map(({ event }) => event);
  const ALL = newestFirst([...VAN_EVENTS, ...OTHER_EVENTS]);

  const shown = ({ body }: Reply): Event[] =>
    body.data.map((event: Record<string, unknown>) => [
      (Date.parse(String(event['occurred_at'])) - START_MS) / 1_000,
      event['type'],
      event['device_imei'],
      event['message'],
      event['data'],
    ]);

  for (const version of ['v2', 'v3']) {
    const get = (query = '', reader = key): Promise<Reply> =>
      pod.get(`/api/${version}/events${query}`, reader);

    describe(`${version} 200`, () => {
      test('every type of device event, with its message and data, newest first', async () => {
        const reply = await get();
        assert.equal(reply.status, 200);
        assert.deepEqual(shown(reply), ALL);
        assert.deepEqual(reply.body.meta, { pagination: { limit: 50, offset: 0, count: ALL.length } });
      });

      test('an event shows every documented field and no other', async () => {
        for (const event of (await get()).body.data) {
          assert.deepEqual(Object.keys(event), [
            'id',
            'type',
            'message',
            'device_imei',
            'data',
            'read',
            'occurred_at',
          ]);
          assert.ok(Number.isSafeInteger(event.id));
          assert.equal(event.read, false);
        }
      });

      test('ids rise in the order of production', async () => {
        const ids = (await get(`?device=${VAN}`)).body.data.map(({ id }: { id: number }) => id);
        assert.deepEqual(
          ids,
          ids.toSorted((a: number, b: number) => b - a),
        );
      });

      const ofType = (...types: string[]): Event[] => ALL.filter(([, type]) => types.includes(type));
      const filters: [query: string, expected: Event[]][] = [
        ['type=ignition_on', ofType('ignition_on')],
        ['type=ignition_off', ofType('ignition_off')],
        ['type=parking_start', ofType('parking_start')],
        ['type=parking_end', ofType('parking_end')],
        ['type=tamper_alert', ofType('tamper_alert')],
        ['type=rfid', ofType('rfid')],
        ['type=alarm', ofType('alarm')],
        ['type=geofence', []],
        ['type=geofence_enter', []],
        ['type=geofence_entry', []],
        ['type=geofence_exit', []],
        ['type=', ALL],
        ['type=%20', ALL],
        [`device=${BUS}`, OTHER_EVENTS.slice(0, 1)],
        [`device=${VAN}&type=alarm`, ofType('alarm').filter(([, , imei]) => imei === VAN)],
        [`device=${FOREIGN}`, []],
        ['device=350000000000099', []],
        ['device=35000000000099', []],
        [`from=${at(30)}`, ALL.filter(([second]) => second >= 30)],
        [`to=${at(30)}`, ALL.filter(([second]) => second <= 30)],
        [`from=${at(20)}&to=${at(20)}`, ALL.filter(([second]) => second === 20)],
        [`from=${at(300)}&to=${at(0)}`, []],
        ['from=0001-01-01&to=9999-12-31', ALL],
        ['from=&to=', ALL],
        ['to=2001-01-01', []],
        [`from=${at(20)}&to=${at(300)}&device=${VAN}&type=rfid&limit=1&offset=1`, VAN_EVENTS.slice(3, 4)],
        ['read=true&message=x', ALL],
      ];
      for (const [query, expected] of filters) {
        test(`${query} shows ${expected.length} events`, async () => {
          const reply = await get(`?${query}`);
          assert.equal(reply.status, 200, reply.text);
          assert.deepEqual(shown(reply), expected);
        });
      }

      const pages: [query: string, limit: number, offset: number][] = [
        ['limit=3', 3, 0],
        ['limit=3&offset=4', 3, 4],
        ['limit=0', 1, 0],
        ['limit=-1', 1, 0],
        ['limit=201', 200, 0],
        ['limit=2.9&offset=1.9', 2, 1],
        ['limit=x&offset=x', 50, 0],
        ['limit=&offset=', 50, 0],
        ['offset=-5', 50, 0],
        ['offset=11', 50, 11],
        ['offset=12', 50, 12],
        ['limit=200&offset=2147483647', 200, 2_147_483_647],
        [`limit=${'9'.repeat(400)}&offset=${'9'.repeat(400)}`, 200, Number.MAX_SAFE_INTEGER],
      ];
      for (const [query, limit, offset] of pages) {
        test(`${query.slice(0, 40)} is the page of ${limit} from ${offset}`, async () => {
          const reply = await get(`?${query}`);
          assert.equal(reply.status, 200, reply.text);
          const expected = ALL.slice(offset, offset + limit);
          assert.deepEqual(shown(reply), expected);
          assert.deepEqual(reply.body.meta.pagination, { limit, offset, count: expected.length });
        });
      }

      test('pages put together are the whole list, each event once, of equal times the higher id first', async () => {
        const all: { id: number; occurred_at: string }[] = [];
        for (let offset = 0; offset < DEEP; offset += 90) {
          all.push(...(await get(`?limit=90&offset=${offset}`, deepKey)).body.data);
        }
        assert.equal(all.length, DEEP);
        const ordered = all.toSorted(
          (a, b) => Date.parse(b.occurred_at) - Date.parse(a.occurred_at) || b.id - a.id,
        );
        assert.deepEqual(all, ordered);
        assert.equal(new Set(all.map(({ id }) => id)).size, DEEP);
      });
    });

    describe(`${version} 400`, () => {
      const refused: [query: string, code: string][] = [
        ['type=x', 'BAD_REQUEST'],
        ['type=Geofence', 'BAD_REQUEST'],
        ['type=ignition', 'BAD_REQUEST'],
        ['type=alarm,rfid', 'BAD_REQUEST'],
        ['type=ping', 'BAD_REQUEST'],
        ['type=%00', 'BAD_REQUEST'],
        ['type=__proto__', 'BAD_REQUEST'],
        ['device=', 'IMEI_REQUIRED'],
        ['device=%20', 'IMEI_REQUIRED'],
        ['device=123', 'BAD_REQUEST'],
        ['device=35000000000000x', 'BAD_REQUEST'],
        ['device=350000000000001%20', 'BAD_REQUEST'],
        ['from=x', 'BAD_REQUEST'],
        ['to=2026-02-30', 'BAD_REQUEST'],
        ['device=123&type=rfid', 'BAD_REQUEST'],
      ];
      for (const [query, code] of refused) {
        test(`${query}: ${code}`, async () => {
          const { status, body } = await get(`?${query}`);
          assert.deepEqual([status, body.error.code], [400, code]);
        });
      }
    });
  }

  test('late and repeated points, and points that change nothing, produce no event', async () => {
    const before = (await pod.get('/api/v2/events', key)).text;
    await pod.points(VAN_TRACE);
    await pod.points([
      point(VAN, 155, { ignition: true, alarm: 'sos', rfid: 'LATE' }),
      point(VAN, 301, { alarm: 'tamper', rfid: 'CARD 8' }),
      point(VAN, 302, { ignition: false, speed_kmh: 5 }),
    ]);
    assert.equal((await pod.get('/api/v2/events', key)).text, before);
  });
});
