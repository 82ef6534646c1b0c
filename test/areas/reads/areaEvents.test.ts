import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { areaApi, gist } from '../../support/http/areas.ts';
import { ownerPod } from '../../support/ownerPod.ts';
import type { Reply } from '../../support/pod.ts';

// Which visits become events, and who reads them, is played through the listeners in geofenceEvents.slow.test.ts.

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
  const owner = ownerPod({ devices: [{ imei: VAN }, { imei: BUS }] });
  const { pod, admin } = owner;
  let depot: number;
  const make = (body: object): Promise<number> => areaApi(pod, owner.key).make(body);
  before(async () => {
    await admin.account('other@example.com');
    await admin.device('other@example.com', FOREIGN);
    depot = await make(DEPOT);
    // Another area over the same place, so that the list of one is not the list of all.
    await make({ ...DEPOT, name: 'Depot too' });
    for (const events of [VAN_EVENTS, BUS_EVENTS])
      await pod.points(events.map(([second, imei, event]) => point(imei, second, event === 'entry')));
    await pod.points([point(FOREIGN, 20, true)]);
  });

  const get = (query = '', id = depot): Promise<Reply> =>
    pod.get(`/api/v3/areas/${id}/events${query}`, owner.key);
  const shown = ({ body }: Reply): Shown[] =>
    body.data.map((event: Record<string, unknown>) => [
      (Date.parse(String(event['timestamp'])) - START_MS) / 1_000,
      event['device'],
      event['event'],
    ]);

  test('shows every documented field of an event, and no other', async () => {
    const [event] = (await get('?limit=1')).body.data;
    assert.deepEqual(event, {
      id: event.id,
      area_id: depot,
      device: VAN,
      event: 'exit',
      position: { lat: 41.95, lng: 12.5 },
      timestamp: at(10 + 2 * VISITS - 1),
    });
  });

  const filters: [query: string, expected: Shown[]][] = [
    ['event=entry', ALL.filter(([, , event]) => event === 'entry')],
    ['event=exit', ALL.filter(([, , event]) => event === 'exit')],
    ['event=%20&from=&to=&type=alarm&areaId=1', ALL],
    [`device=${BUS}`, BUS_EVENTS.toReversed()],
    [`device=${FOREIGN}`, []],
    [`from=${at(240)}`, ALL.filter(([second]) => second >= 240)],
    [`to=${at(20)}`, ALL.filter(([second]) => second <= 20)],
    [`from=${at(20)}&to=${at(20)}`, ALL.filter(([second]) => second === 20)],
    [`from=${at(25)}&to=${at(20)}`, []],
    [`from=${at(20)}&to=${at(25)}&event=exit&device=${BUS}`, BUS_EVENTS.slice(1)],
  ];
  for (const [query, expected] of filters) {
    test(`shows ${expected.length} events for ${query}`, async () => {
      const pages = [await get(`?${query}&limit=200`), await get(`?${query}&limit=200&offset=200`)];
      assert.deepEqual(pages.flatMap(shown), expected);
    });
  }

  test('refuses a filter that it cannot read with 400, whether there is such an area or not', async () => {
    for (const [query, code] of [
      ['event=enter', 'BAD_REQUEST'],
      ['event=entry&event=exit', 'BAD_REQUEST'],
      ['device=', 'IMEI_REQUIRED'],
      ['device=123', 'BAD_REQUEST'],
      ['from=x', 'BAD_REQUEST'],
      ['to=2026-02-30', 'BAD_REQUEST'],
    ] as const) {
      for (const id of [depot, 999_999]) assert.equal(gist(await get(`?${query}`, id)), `400 ${code}`, query);
    }
  });
});
