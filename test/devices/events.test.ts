import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { readBothVersions } from '../support/http/readBothVersions.ts';
import { ownerPod } from '../support/ownerPod.ts';
import type { Reply } from '../support/pod.ts';

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

describe('GET /events', () => {
  const owner = ownerPod({
    scopes: 'read_events',
    devices: [
      { imei: VAN, name: 'Van 12', plate: 'XY 999' },
      { imei: BUS, plate: 'AB 123' },
      { imei: TRUCK },
    ],
  });
  const { pod, admin } = owner;
  before(async () => {
    await admin.account('other@example.com');
    await admin.device('other@example.com', FOREIGN);
    await pod.points(VAN_TRACE.toReversed());
    await pod.points([point(BUS, 5, { rfid: 'B' })]);
    await pod.points([point(TRUCK, 20, { alarm: `"{}\\'` }), point(FOREIGN, 20, { alarm: 'sos' })]);
  });

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

  const get = (query = ''): Promise<Reply> => readBothVersions(pod, `/events${query}`, owner.key);

  test('shows every type of device event with its message and data, newest first', async () => {
    const reply = await get();
    assert.deepEqual(shown(reply), ALL);
    assert.deepEqual(reply.body.meta, { pagination: { limit: 50, offset: 0, count: ALL.length } });
    for (const event of reply.body.data) {
      const { type, message, device_imei, data, occurred_at } = event;
      assert.deepEqual(event, { id: event.id, type, message, device_imei, data, read: false, occurred_at });
      assert.ok(Number.isSafeInteger(event.id));
    }
  });

  const ofType = (...types: string[]): Event[] => ALL.filter(([, type]) => types.includes(type));
  const TYPES = [...new Set(ALL.map(([, type]) => type))];
  const filters: [query: string, expected: Event[]][] = [
    ...TYPES.map((type): [string, Event[]] => [`type=${type}`, ofType(type)]),
    ['type=geofence', []],
    ['type=%20&from=&to=&read=true', ALL],
    [`device=${BUS}`, OTHER_EVENTS.slice(0, 1)],
    [`device=${VAN}&type=alarm`, ofType('alarm').filter(([, , imei]) => imei === VAN)],
    [`device=${FOREIGN}`, []],
    ['device=350000000000099', []],
    [`from=${at(30)}`, ALL.filter(([second]) => second >= 30)],
    [`to=${at(30)}`, ALL.filter(([second]) => second <= 30)],
    [`from=${at(20)}&to=${at(20)}`, ALL.filter(([second]) => second === 20)],
    [`from=${at(300)}&to=${at(0)}`, []],
    ['from=0001-01-01&to=9999-12-31', ALL],
    [`from=${at(20)}&to=${at(300)}&device=${VAN}&type=rfid&limit=1&offset=1`, VAN_EVENTS.slice(3, 4)],
  ];
  for (const [query, expected] of filters) {
    test(`shows ${expected.length} events for ${query}`, async () => {
      assert.deepEqual(shown(await get(`?${query}`)), expected);
    });
  }

  test('refuses a filter that it cannot read with 400', async () => {
    for (const [query, code] of [
      ['type=x', 'BAD_REQUEST'],
      ['type=alarm,rfid', 'BAD_REQUEST'],
      ['type=__proto__', 'BAD_REQUEST'],
      ['device=%20', 'IMEI_REQUIRED'],
      ['device=123&type=rfid', 'BAD_REQUEST'],
      ['from=x', 'BAD_REQUEST'],
      ['to=2026-02-30', 'BAD_REQUEST'],
    ] as const) {
      const { status, body } = await get(`?${query}`);
      assert.deepEqual([status, body.error.code], [400, code], query);
    }
  });

  test('shows none of late and repeated points, and of points that change nothing', async () => {
    const before = (await pod.get('/api/v2/events', owner.key)).text;
    await pod.points(VAN_TRACE);
    await pod.points([
      point(VAN, 155, { ignition: true, alarm: 'sos', rfid: 'LATE' }),
      point(VAN, 301, { alarm: 'tamper', rfid: 'CARD 8' }),
      point(VAN, 302, { ignition: false, speed_kmh: 5 }),
    ]);
    assert.equal((await pod.get('/api/v2/events', owner.key)).text, before);
  });
});
