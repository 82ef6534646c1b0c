import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RoadArea } from '../support/ingest/road.ts';
import { checkRecord } from './checkRecord.ts';
import type {
  Loss,
  RecordedCall,
  RecordedDelivery,
  RecordedPage,
  RecordedPoints,
  RecordedPositions,
  RecordedRead,
  RecordedWrite,
  RestEvent,
  Rule,
  RunRecord,
} from './record.ts';

const [CAR, PROBE] = ['350000000000001', '350000000000002'];
const FIXED = 7;
const MOVING = 8;
const YARD: RoadArea = {
  reach: [3, 4],
  dwellSeconds: 0,
  body: { name: 'Yard', type: 'point', center: { lat: 0, lng: 0 } },
};
/** Of points, in GPS time. */
const SECOND_MS = 1_000;

const call = (beginMs: number, endMs: number, process: number | null = 0, status: number | null = 200) => ({
  what: 'call',
  beginMs,
  endMs,
  process,
  status,
});

const points = (
  batch: number,
  beginMs: number,
  imei: string,
  places: Readonly<Record<number, number>>,
  more: Partial<RecordedPoints> = {},
): RecordedPoints => ({
  kind: 'points',
  ...call(beginMs, beginMs + 10),
  batch,
  points: Object.entries(places).map(([second, place]) => ({
    imei,
    atMs: Number(second) * SECOND_MS,
    place,
  })),
  rejected: [],
  ...more,
});

const write = (
  beginMs: number,
  register: string,
  value: string,
  status: number | null = 200,
): RecordedWrite => ({
  kind: 'write',
  ...call(beginMs, beginMs + 10, 0, status),
  sets: [{ register, value }],
});

const read = (beginMs: number, register: string, value: string, process = 1): RecordedRead => ({
  kind: 'read',
  ...call(beginMs, beginMs + 10, process),
  finds: [{ register, value }],
});

const position = (beginMs: number, process: number, imei: string, second: number | null) =>
  ({
    kind: 'positions',
    ...call(beginMs, beginMs + 10, process),
    finds: [{ imei, atMs: second === null ? null : second * SECOND_MS }],
  }) satisfies RecordedPositions;

const page = (
  feed: RecordedPage['feed'],
  beginMs: number,
  items: Partial<Pick<RecordedPage, 'events' | 'points' | 'devices' | 'isLast'>>,
): RecordedPage => ({
  kind: 'page',
  ...call(beginMs, beginMs + 10),
  feed,
  follower: 'one',
  events: [],
  points: [],
  devices: [],
  isLast: false,
  ...items,
});

const at = (imei: string, second: number) => ({ imei, atMs: second * SECOND_MS });

const event = (
  id: number,
  imei: string,
  areaId: number,
  kind: string,
  second: number,
  since = second,
): RestEvent => ({
  id,
  imei,
  areaId,
  event: kind,
  occurredAtMs: second * SECOND_MS,
  enteredAtMs: since * SECOND_MS,
});

const delivery = (
  fleetEventId: number,
  beginMs: number,
  more: Partial<RecordedDelivery> = {},
): RecordedDelivery => ({
  endpoint: '/hook',
  deliveryId: `dlv_${fleetEventId}`,
  attempt: 1,
  timestamp: '1',
  connection: 1,
  idempotencyKey: `1:evt_${fleetEventId}`,
  eventId: `evt_${fleetEventId}`,
  fleetEventId,
  body: `{"id":"evt_${fleetEventId}"}`,
  beginMs,
  endMs: beginMs + 10,
  status: 200,
  ...more,
});

/** A car drives into the yard and out again, with a batch that was given up and came late; a moving area comes to a probe. */
const CALLS = {
  first: points(1, 100, CAR, { 10: 1, 20: 3 }),
  /** Given up, and stored only after the next batch. */
  givenUp: points(2, 200, CAR, { 30: 5 }, { status: null }),
  tried: points(3, 220, CAR, { 40: 4 }, { status: null }),
  repeated: points(3, 240, CAR, { 40: 4 }, { process: 1 }),
  last: points(4, 300, CAR, { 50: 6 }),
  created: write(50, 'area 8 place', '1', 201),
  probed: points(5, 100, PROBE, { 10: 2 }),
  moved: write(150, 'area 8 place', '2'),
  met: points(6, 200, PROBE, { 20: 2 }),
  /** Nobody knows whether it has happened. */
  lost: write(300, 'area 8 place', '5', null),
  during: read(155, 'area 8 place', '1'),
  after: read(200, 'area 8 place', '2'),
  maybe: read(320, 'area 8 place', '2'),
  position: position(130, 0, CAR, 20),
  other: position(135, 1, CAR, null),
  restarted: position(360, 2, CAR, 50),
  events: page('events', 200, { events: [1, 2] }),
  moreEvents: page('events', 400, { events: [3] }),
  points: page('points', 400, {
    points: [at(CAR, 10), at(CAR, 20), at(CAR, 40), at(CAR, 30), at(CAR, 50), at(PROBE, 10), at(PROBE, 20)],
  }),
  devices: page('devices', 120, { devices: [at(CAR, 20), at(PROBE, 10)], isLast: true }),
  moreDevices: page('devices', 400, { devices: [at(CAR, 50), at(PROBE, 20)], isLast: true }),
} satisfies Record<string, RecordedCall>;

const EVENTS = [
  event(1, CAR, FIXED, 'entry', 20),
  event(2, PROBE, MOVING, 'entry', 20),
  event(3, CAR, FIXED, 'exit', 50, 20),
];
const RECEIVED = [
  delivery(1, 100, { status: 503 }),
  delivery(2, 120),
  delivery(1, 140, { attempt: 2 }),
  delivery(3, 160),
];

interface Parts {
  readonly calls: Readonly<Record<keyof typeof CALLS, RecordedCall>>;
  readonly received: readonly RecordedDelivery[];
  readonly losses: readonly Loss[];
  readonly rest: RunRecord['rest'];
}

const GOOD: Parts = {
  calls: CALLS,
  received: RECEIVED,
  losses: [],
  rest: {
    points: CALLS.points.points,
    events: EVENTS,
    positions: [0, 1, 2].map((process) => ({ process, devices: [at(CAR, 50), at(PROBE, 20)] })),
    deliveries: EVENTS.map(({ id }) => ({
      endpoint: '/hook',
      id: `dlv_${id}`,
      eventId: `evt_${id}`,
      status: 'delivered',
    })),
  },
};

const recordOf = ({ calls, received, losses, rest }: Parts): RunRecord => ({
  processes: [
    { process: 0, pod: 0, startedAtMs: 0 },
    { process: 1, pod: 1, startedAtMs: 0 },
    { process: 2, pod: 0, startedAtMs: 350 },
  ],
  losses,
  calls: Object.values(calls),
  deliveries: received,
  fixedAreas: [{ id: FIXED, area: YARD }],
  movingAreas: [{ id: MOVING, register: 'area 8 place', imei: PROBE, place: 2 }],
  rest,
});

const withCalls = (calls: Partial<Parts['calls']>): Parts => ({ ...GOOD, calls: { ...CALLS, ...calls } });
const withRest = (rest: Partial<Parts['rest']>): Parts => ({ ...GOOD, rest: { ...GOOD.rest, ...rest } });
const withReceived = (...received: readonly RecordedDelivery[]): Parts => ({ ...GOOD, received });
const loss = (of: Loss['of']): Loss => ({ of, pod: 1, beginMs: 140, endMs: 210 });
const stored = GOOD.rest.points;

/** What went wrong, the record of it, and the promises that it shows to be broken. */
const VIOLATIONS: readonly (readonly [string, Parts, readonly Rule[]])[] = [
  [
    'a call fails',
    withCalls({ met: { ...CALLS.met, status: 500 }, after: { ...CALLS.after, status: 500, finds: [] } }),
    ['every call is answered as described', 'every call is answered as described'],
  ],
  [
    'a cursor expires',
    withCalls({ moreEvents: { ...CALLS.moreEvents, status: 410, code: 'CURSOR_EXPIRED' } }),
    ['every call is answered as described', 'a feed has no gap'],
  ],
  [
    'a point of a known device is refused',
    withCalls({ first: { ...CALLS.first, rejected: [0] } }),
    ['every call is answered as described'],
  ],
  [
    'an acknowledged point is lost',
    withRest({ points: stored.filter(({ atMs }) => atMs !== 40 * SECOND_MS) }),
    ['an acknowledged point is stored once', 'nothing is stored that nobody sent'],
  ],
  [
    'a point is there twice',
    withRest({ points: [...stored, at(CAR, 40)] }),
    ['an acknowledged point is stored once'],
  ],
  [
    'a point is there that nobody sent',
    withRest({ points: [...stored, at(CAR, 45)] }),
    ['nothing is stored that nobody sent', 'a feed has no gap'],
  ],
  [
    'an event is missing, with its webhook',
    {
      ...withCalls({ moreEvents: page('events', 400, {}) }),
      received: RECEIVED.slice(0, 3),
      rest: { ...GOOD.rest, events: EVENTS.slice(0, 2), deliveries: GOOD.rest.deliveries.slice(0, 2) },
    },
    ['events are those of a naive replay'],
  ],
  [
    'an entry has the time of a later point',
    withRest({ events: [event(1, CAR, FIXED, 'entry', 40), ...EVENTS.slice(1)] }),
    ['events are those of a naive replay'],
  ],
  [
    'a point is evaluated against the place of an area before its last change',
    withRest({
      events: EVENTS.map((each) => (each.id === 2 ? { ...each, occurredAtMs: 10 * SECOND_MS } : each)),
    }),
    ['a point is evaluated against the areas of its time'],
  ],
  [
    'a device enters a moving area twice',
    withRest({
      events: EVENTS.map((each) => (each.id === 3 ? event(3, PROBE, MOVING, 'entry', 20) : each)),
    }),
    ['events are those of a naive replay', 'events are those of a naive replay'],
  ],
  [
    'a poll is older than an acknowledged write',
    withCalls({ after: read(200, 'area 8 place', '1') }),
    ['an acknowledged write holds from the next call on'],
  ],
  [
    'a poll is older than an acknowledged write, and its pod had lost only Postgres',
    { ...withCalls({ after: read(200, 'area 8 place', '1') }), losses: [loss('postgres')] },
    ['an acknowledged write holds from the next call on'],
  ],
  [
    'a poll is older than an acknowledged write, and its pod had lost only Redis',
    { ...withCalls({ after: read(200, 'area 8 place', '1') }), losses: [loss('redis')] },
    ['an acknowledged write holds from the next call on'],
  ],
  [
    'a poll is older than an acknowledged write, and another pod had lost both',
    { ...withCalls({ after: read(200, 'area 8 place', '1', 0) }), losses: [loss('postgres'), loss('redis')] },
    ['an acknowledged write holds from the next call on'],
  ],
  [
    'a poll shows a value that is written only later',
    withCalls({ during: read(100, 'area 8 place', '2') }),
    ['an acknowledged write holds from the next call on'],
  ],
  [
    'a refused write holds',
    withCalls({ moved: write(150, 'area 8 place', '2', 422), during: read(155, 'area 8 place', '1') }),
    [
      'every call is answered as described',
      'a point is evaluated against the areas of its time',
      'an acknowledged write holds from the next call on',
      'an acknowledged write holds from the next call on',
    ],
  ],
  [
    'a write without an answer is seen, overwritten, and seen again',
    withCalls({
      lost: write(210, 'area 8 place', '5', null),
      during: read(230, 'area 8 place', '5'),
      other: write(250, 'area 8 place', '2'),
      maybe: read(320, 'area 8 place', '5'),
    }),
    ['an acknowledged write holds from the next call on'],
  ],
  [
    'a pod does not show a point that it has taken',
    withCalls({ position: position(130, 0, CAR, 10) }),
    ['a pod shows the points that it took, and never goes back'],
  ],
  [
    'a pod that starts does not show what was acknowledged before',
    withCalls({ restarted: position(360, 2, CAR, 40) }),
    ['a pod shows the points that it took, and never goes back'],
  ],
  [
    'a position goes back on a pod',
    withCalls({ other: position(200, 1, CAR, 20), after: position(230, 1, CAR, 10) }),
    ['a pod shows the points that it took, and never goes back'],
  ],
  [
    'a pod never hears of a point of another',
    withRest({
      positions: [{ process: 1, devices: [at(CAR, 40), at(PROBE, 20)] }],
    }),
    ['all pods show the same in the end'],
  ],
  [
    'a feed of events leaves one out',
    withCalls({ moreEvents: page('events', 400, {}) }),
    ['a feed has no gap'],
  ],
  [
    'a feed of events repeats one',
    withCalls({ moreEvents: page('events', 400, { events: [2, 3] }) }),
    ['a feed repeats nothing'],
  ],
  [
    'a feed tells the events of a device in another order',
    withCalls({
      events: page('events', 200, { events: [3, 2] }),
      moreEvents: page('events', 400, { events: [1] }),
    }),
    ['a feed keeps the order of a device'],
  ],
  [
    'a feed of points leaves out a late one',
    withCalls({
      points: page('points', 400, { points: stored.filter(({ atMs }) => atMs !== 30 * SECOND_MS) }),
    }),
    ['a feed has no gap'],
  ],
  [
    'a feed of points repeats one',
    withCalls({ points: page('points', 400, { points: [...stored, at(CAR, 40)] }) }),
    ['a feed repeats nothing'],
  ],
  [
    'the last page of devices lacks what its pod has taken',
    withCalls({ devices: page('devices', 120, { devices: [at(CAR, 20)], isLast: true }) }),
    ['a feed of devices is as new as its pod and never goes back'],
  ],
  [
    'a feed of devices goes back',
    withCalls({ moreDevices: page('devices', 400, { devices: [at(CAR, 10), at(PROBE, 20)] }) }),
    ['a feed of devices is as new as its pod and never goes back'],
  ],
  [
    'a feed of devices never has the last state',
    withCalls({ moreDevices: page('devices', 200, { devices: [at(CAR, 50)] }) }),
    ['a feed has no gap'],
  ],
  [
    'a webhook never comes',
    {
      ...withReceived(...RECEIVED.slice(0, 3)),
      rest: { ...GOOD.rest, deliveries: GOOD.rest.deliveries.slice(0, 2) },
    },
    ['a webhook is delivered at least once'],
  ],
  [
    'a delivery is said to have been taken that was refused',
    withReceived(delivery(1, 100, { status: 503 }), ...RECEIVED.slice(1, 2), ...RECEIVED.slice(3)),
    ['a webhook is delivered at least once', 'a webhook is delivered at least once'],
  ],
  [
    'a delivery is given up though its receiver would have taken it',
    withRest({
      deliveries: GOOD.rest.deliveries.map((each) => ({
        ...each,
        status: each.id === 'dlv_3' ? 'exhausted' : each.status,
      })),
    }),
    ['a webhook is delivered at least once'],
  ],
  [
    'a repeated delivery has other bytes',
    withReceived(...RECEIVED, delivery(1, 200, { attempt: 3, body: '{}' })),
    ['a delivery keeps its ids and bytes'],
  ],
  [
    'an event has two deliveries',
    withReceived(...RECEIVED, delivery(1, 200, { deliveryId: 'dlv_9' })),
    ['a delivery keeps its ids and bytes'],
  ],
  [
    'two webhooks have one event',
    withReceived(...RECEIVED, delivery(1, 200, { deliveryId: 'dlv_9', eventId: 'evt_9' })),
    ['a delivery keeps its ids and bytes'],
  ],
  [
    'a repeated delivery has another idempotency key',
    withReceived(...RECEIVED, delivery(1, 200, { attempt: 3, idempotencyKey: '2:evt_1' })),
    ['a delivery keeps its ids and bytes'],
  ],
  [
    'the number of an attempt falls',
    withReceived(...RECEIVED, delivery(1, 200)),
    ['attempts are numbered in order'],
  ],
  [
    'two attempts have one number',
    withReceived(...RECEIVED, delivery(3, 200, { timestamp: '2' })),
    ['attempts are numbered in order'],
  ],
  [
    'an attempt is sent three times',
    withReceived(...RECEIVED, delivery(3, 200), delivery(3, 220)),
    ['attempts are numbered in order'],
  ],
  [
    'an endpoint is asked twice at once',
    withReceived(...RECEIVED, delivery(3, 165, { attempt: 2 })),
    ['an endpoint is asked one at a time'],
  ],
];

describe('the checker of a record', () => {
  test('finds nothing in one that keeps every promise', () => {
    assert.deepEqual(checkRecord(recordOf(GOOD)), []);
  });

  test('lets a pod that has lost Postgres and Redis answer as of then', () => {
    const late = {
      ...withCalls({ after: read(200, 'area 8 place', '1') }),
      losses: [loss('postgres'), loss('redis')],
    };
    assert.deepEqual(checkRecord(recordOf(late)), []);
    const during = late.losses.map((each) => ({ ...each, beginMs: 205 }));
    assert.deepEqual(checkRecord(recordOf({ ...late, losses: during })), []);
  });

  test('lets a pod that is sent a batch again be behind the one that has stored it', () => {
    const behind = position(260, 1, CAR, 20);
    assert.deepEqual(checkRecord(recordOf(withCalls({ other: behind }))), []);
    const tried = { ...CALLS.tried, process: 1 };
    assert.deepEqual(
      checkRecord(recordOf(withCalls({ other: behind, tried }))).map(({ rule }) => rule),
      ['a pod shows the points that it took, and never goes back'],
    );
  });

  test('lets a batch that was given up be stored after the next one, which is older than its last point', () => {
    const replayed = (exitAt: number): Rule[] => {
      const givenUp = points(2, 200, CAR, { 40: 6, 45: 6 }, { status: null });
      const tried = points(3, 220, CAR, { 42: 4 }, { status: null });
      const repeated = { ...tried, beginMs: 240, endMs: 250, status: 200 };
      const rest = {
        ...GOOD.rest,
        points: [10, 20, 40, 42, 45, 50].map((second) => at(CAR, second)),
        events: [event(1, CAR, FIXED, 'entry', 20), event(2, CAR, FIXED, 'exit', exitAt, 20)],
      };
      const calls = { ...CALLS, givenUp, tried, repeated };
      const found = checkRecord(recordOf({ ...GOOD, calls, rest })).map(({ rule }) => rule);
      return found.filter((rule) => rule === 'events are those of a naive replay');
    };
    assert.deepEqual(replayed(45), []);
    assert.deepEqual(replayed(42), ['events are those of a naive replay']);
  });

  test('lets a batch that was given up be evaluated together with the next one', () => {
    const replayed = (entryAt: number): Rule[] => {
      const givenUp = points(2, 200, CAR, { 35: 6, 45: 4 }, { status: null });
      const tried = points(3, 220, CAR, { 40: 3 }, { status: null });
      const calls = {
        ...CALLS,
        givenUp,
        tried,
        repeated: { ...tried, beginMs: 240, endMs: 250, status: 200 },
      };
      const rest = {
        ...GOOD.rest,
        points: [10, 20, 35, 40, 45, 50].map((second) => at(CAR, second)),
        events: [
          event(1, CAR, FIXED, 'entry', 20),
          event(2, CAR, FIXED, 'exit', 35, 20),
          event(3, CAR, FIXED, 'entry', entryAt),
          event(4, CAR, FIXED, 'exit', 50, entryAt),
        ],
      };
      const found = checkRecord(recordOf({ ...GOOD, calls, rest })).map(({ rule }) => rule);
      return found.filter((rule) => rule === 'events are those of a naive replay');
    };
    assert.deepEqual(replayed(40), []);
    assert.deepEqual(replayed(41), ['events are those of a naive replay']);
  });

  for (const [name, parts, rules] of VIOLATIONS)
    test(`names it: ${name}`, () => {
      const found = checkRecord(recordOf(parts));
      assert.deepEqual(
        found.map(({ rule }) => rule),
        rules,
        JSON.stringify(found, null, 2),
      );
    });
});
