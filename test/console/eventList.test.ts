import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { FleetEvent } from '../../src/console/page/types.ts';
import {
  EVENT_TYPES,
  EVENTS_PAGE,
  type EventFilters,
  eventFiltersIn,
  eventQuery,
  eventsPath,
  NO_EVENT_FILTERS,
  passesEvent,
  typesBeside,
} from '../../src/console/page/views/eventFilters.ts';
import { EventList, LISTED_MAX, listedEvent, messageOf } from '../../src/console/page/views/eventList.ts';
import { EVENT_TYPE_FILTERS } from '../../src/events/fleetEvent.ts';

const START_MS = Date.UTC(2026, 2, 2);
const MINUTE_MS = 60_000;

const entry = (id: number, second: number, areaId = 7): FleetEvent => ({
  id,
  type: 'geofence',
  message: `Van entered ${areaId}`,
  device_imei: '35',
  data: {
    position: { lat: 0, lng: 0 },
    areaId,
    areaName: 'Depot',
    event: 'entry',
    enteredAt: isoAt(second),
    dwellSeconds: 0,
  },
  read: false,
  occurred_at: isoAt(second),
});

const isoAt = (second: number): string => new Date(START_MS + second * 1_000).toISOString();

describe('the filters of events', () => {
  const someFilters: fc.Arbitrary<EventFilters> = fc
    .record(
      {
        type: fc.constantFrom('', ...Object.keys(EVENT_TYPES)),
        device: fc.constantFrom('', '352093081234501'),
        areaId: fc.option(fc.nat(), { nil: null }),
        fromMs: fc.option(fc.integer({ min: START_MS, max: 2 * START_MS }), { nil: null }),
        toMs: fc.option(fc.integer({ min: START_MS, max: 2 * START_MS }), { nil: null }),
      },
      { noNullPrototype: true },
    )
    .filter((asked) => asked.type === '' || typesBeside(asked).includes(asked.type));

  test('an address keeps them, beside those of vehicles', () => {
    fc.assert(
      fc.property(someFilters, (asked) => {
        assert.deepEqual(eventFiltersIn(`#events?status=moving&${eventQuery(asked)}`), asked);
      }),
    );
    assert.equal(eventQuery(NO_EVENT_FILTERS), '');
  });

  test('what an address cannot mean is left out', () => {
    for (const query of [
      '',
      '?type=constructor&device=van&area=1e3&from=soon&to=2026-99-01',
      '?area=&type=',
      '?from=12',
    ])
      assert.deepEqual(eventFiltersIn(`#events${query}`), NO_EVENT_FILTERS, query);
    assert.equal(eventFiltersIn('#events?area=4&type=alarm').type, '', 'an area has no alarms');
  });

  test('the service knows every type that can be chosen', () => {
    for (const type of Object.keys(EVENT_TYPES)) assert.ok(EVENT_TYPE_FILTERS.includes(type), type);
  });

  test('are asked of the list of an area, or of all; the last minute counts as a whole', () => {
    const asked = { ...NO_EVENT_FILTERS, type: 'geofence_exit', device: '35', toMs: START_MS };
    assert.equal(
      eventsPath(asked, null),
      '/api/v1/events?type=geofence_exit&device=35&to=2026-03-02T00%3A00%3A59.999Z&limit=50',
    );
    assert.equal(
      eventsPath({ ...asked, areaId: 4 }, { at: isoAt(-1), held: 2 }),
      '/api/v1/areas/4/events?event=exit&device=35&to=2026-03-01T23%3A59%3A59.000Z&offset=2&limit=50',
    );
  });

  test('hold for what happens now', () => {
    const event = entry(1, 59);
    for (const [change, expected] of [
      [{}, true],
      [{ type: 'geofence' }, true],
      [{ type: 'geofence_enter', areaId: 7, device: '35' }, true],
      [{ type: 'geofence_exit' }, false],
      [{ areaId: 8 }, false],
      [{ device: '36' }, false],
      [{ fromMs: START_MS, toMs: START_MS }, true],
      [{ fromMs: START_MS + MINUTE_MS }, false],
      [{ toMs: START_MS - MINUTE_MS }, false],
    ] as const)
      assert.equal(passesEvent({ ...NO_EVENT_FILTERS, ...change }, event), expected, JSON.stringify(change));
  });
});

describe('the list of events', () => {
  test('has each event once, wherever pages begin, and whatever is told while they are read', () => {
    const seconds = fc.array(fc.nat(6), { maxLength: 4 * EVENTS_PAGE, size: 'max' });
    fc.assert(
      fc.property(seconds, seconds, (before, told) => {
        const all = before.map((second, id) => entry(id, second));
        const list = new EventList();
        for (let page = 0; !list.isComplete; page++) {
          assert.ok(page < 20, 'it comes to an end');
          const query = new URL(eventsPath(NO_EVENT_FILTERS, list.before), 'http://x').searchParams;
          list.addPage(answerTo(all, query).map(listedEvent));
          const second = told[page];
          if (second === undefined) continue;
          const late = entry(all.length, second);
          all.push(late);
          list.add([listedEvent(late)]);
        }
        assert.deepEqual(
          list.listed.map(({ id }) => id),
          inOrder(all).map(({ id }) => id),
        );
      }),
    );
  });

  test('keeps the newest of very many', () => {
    const list = new EventList();
    for (let id = 0; id < 5 * LISTED_MAX; id++) list.add([listedEvent(entry(id, id))]);
    assert.equal(list.listed.length, LISTED_MAX);
    assert.equal(list.listed[0]?.id, 5 * LISTED_MAX - 1);
    assert.ok(list.isFull);
  });

  test('says of an entry of an area what the list of all says of it', () => {
    const { id } = entry(3, 0);
    const position = { lat: 0, lng: 0 };
    const line = listedEvent({ id, area_id: 7, device: '35', event: 'entry', position, timestamp: isoAt(0) });
    assert.equal(messageOf(line, 'Van', '7'), messageOf(listedEvent(entry(3, 0)), 'Van', '7'));
    assert.deepEqual({ ...line, event: null }, { ...listedEvent(entry(3, 0)), event: null });
  });
});

/** As the service answers: newest first, equal times by their ids. */
function answerTo(all: readonly FleetEvent[], query: URLSearchParams): FleetEvent[] {
  const toMs = Date.parse(query.get('to') ?? '9999-01-01');
  const from = Number(query.get('offset'));
  const wanted = inOrder(all).filter(({ occurred_at }) => Date.parse(occurred_at) <= toMs);
  return wanted.slice(from, from + Number(query.get('limit')));
}

function inOrder(all: readonly FleetEvent[]): FleetEvent[] {
  return all.toSorted((a, b) => b.occurred_at.localeCompare(a.occurred_at) || b.id - a.id);
}
