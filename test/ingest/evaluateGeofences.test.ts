import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Stay } from '../../src/devices/stays/packedStays.ts';
import {
  EVENT_WORK,
  evaluateGeofences,
  type GeofenceEvaluation,
  type GeofenceLimits,
} from '../../src/ingest/evaluateFixes.ts';
import type { InOrderPoint } from '../../src/ingest/fix.ts';
import type { PointFacts, WatchedArea, WatchedAreas } from '../../src/ingest/geofences.ts';
import { KnownInside } from '../../src/ingest/heavyParts.ts';
import { inOneGo, Pace } from '../../src/lib/workTurns.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { spin } from '../support/spin.ts';
import { runs } from '../support/torture.ts';

const START_MS = Date.UTC(2026, 2, 14, 12);

/** An area from one degree of longitude to another. */
const area = (id: number, from: number, to: number, dwellSeconds = 0): WatchedArea => ({
  id,
  worldId: 1,
  accountId: 1,
  definition: { name: `Area ${id}`, dwellSeconds },
  shape: { contains: (_lat, lng) => lng >= from && lng <= to },
});

const watch = (...areas: readonly WatchedArea[]): WatchedAreas => ({
  deviceWorldId: 1,
  near: () => areas,
  byId: (id) => areas.find((one) => one.id === id),
  isShared: () => false,
});

const point = (deviceId: number, second: number, lng: number, eventCount = 0): InOrderPoint => ({
  point: {
    deviceId,
    fix: fixOf(String(350_000_000_000_000 + deviceId), START_MS + second * 1_000, { lat: 0, lng }),
  },
  speedKmh: 30,
  eventCount,
});

const stay = (areaId: number, second: number, confirmedSecond: number | null = second): Stay => ({
  areaId,
  insideSinceMs: START_MS + second * 1_000,
  confirmedAtMs: confirmedSecond === null ? null : START_MS + confirmedSecond * 1_000,
});

const NO_LIMITS: GeofenceLimits = { ofDevice: Number.POSITIVE_INFINITY, ofBatch: Number.POSITIVE_INFINITY };
type StaysByDevice = ReadonlyMap<number, readonly Stay[]>;

const evaluate = (
  points: readonly InOrderPoint[],
  before: StaysByDevice,
  watchOf: (deviceId: number) => WatchedAreas,
  limits = NO_LIMITS,
): GeofenceEvaluation => {
  const states = new Map([...before].map(([deviceId, stays]) => [deviceId, { stays }]));
  return inOneGo(evaluateGeofences(points, states, watchOf, limits));
};

/** The events, each as device, second, direction and area. */
const eventsOf = ({ events }: GeofenceEvaluation) =>
  events.map(({ point: { deviceId }, event }) => [
    deviceId,
    (event.occurredAtMs - START_MS) / 1_000,
    event.direction,
    event.areaId,
  ]);

describe('the points of a batch', () => {
  test('may be cut into batches anywhere: stays and events are the same', () => {
    const watched = watch(area(1, 0, 3), area(2, 2, 5), area(3, 3, 3, 20), area(4, 0, 9, 45));
    const drawn = fc.record({
      lngs: fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 0, max: 10 })), {
        minLength: 2,
        maxLength: 40,
        size: 'max',
      }),
      cut: fc.nat(40),
    });
    let events = 0;
    fc.assert(
      fc.property(drawn, ({ lngs, cut }) => {
        const points = lngs
          .map(([deviceId, lng], n) => point(deviceId, n * 10, lng))
          .sort((a, b) => a.point.deviceId - b.point.deviceId);
        const whole = evaluate(points, new Map(), () => watched);
        const first = evaluate(points.slice(0, cut), new Map(), () => watched);
        const second = evaluate(points.slice(cut), first.stays, () => watched);
        assert.deepEqual([...first.events, ...second.events], whole.events);
        assert.deepEqual(new Map([...first.stays, ...second.stays]), whole.stays);
        events += whole.events.length;
      }),
      { seed: 3, numRuns: runs(50) },
    );
    assert.ok(events > 250);
  });
});

describe('a batch with more work than the limits allow', () => {
  const many = (count: number, from = 0, to = 5) =>
    watch(...Array.from({ length: count }, (_, n) => area(n + 1, from, to)));
  /** Device 2 is in a hundred areas, the others in one. */
  const watchOf = (deviceId: number) => (deviceId === 2 ? many(100) : watch(area(1_000, 0, 5)));
  const points = [point(1, 0, 1), point(2, 0, 1), point(2, 1, 1), point(3, 0, 1)];

  test('defers whole a device that is too much by itself, and evaluates the others', () => {
    const limits = { ofDevice: 50 * EVENT_WORK, ofBatch: 1_000_000 };
    const evaluation = evaluate(points, new Map(), watchOf, limits);
    assert.deepEqual(eventsOf(evaluation), [
      [1, 0, 'entry', 1_000],
      [3, 0, 'entry', 1_000],
    ]);
    assert.deepEqual([...evaluation.deferred], [[2, { fromMs: null, isOversized: true }]]);
    assert.deepEqual([...evaluation.stays.keys()], [1, 3]);
  });

  test('defers whole a device with a point among too many areas and stays, and asks none of them', () => {
    const asked: number[] = [];
    const near = (count: number) =>
      watch(
        ...Array.from({ length: count }, (_, id) => ({
          ...area(id, 0, 9),
          shape: { contains: () => asked.push(count) > 0 },
        })),
      );
    const watches = new Map([1, 2, 3].map((deviceId) => [deviceId, near(10 * deviceId)]));
    const before = new Map([[1, [stay(0, -1)]]]);
    const limits = { ...NO_LIMITS, ofPoint: 20 };
    const devices = [point(1, 0, 5), point(2, 0, 5), point(3, 0, 5), point(3, 1, 50)];
    const evaluation = evaluate(devices, before, (deviceId) => watches.get(deviceId) as WatchedAreas, limits);
    assert.deepEqual([...evaluation.deferred], [[3, { fromMs: null, isOversized: true }]]);
    assert.deepEqual([...evaluation.stays.keys()], [1, 2]);
    assert.ok(!asked.includes(30));
  });

  test('counts the events of the device itself as work too', () => {
    const outside = [point(1, 0, 9), point(2, 0, 9, 51), point(3, 0, 9, 50)];
    const evaluation = evaluate(outside, new Map(), () => watch(), {
      ofDevice: 50 * EVENT_WORK,
      ofBatch: 1e6,
    });
    assert.deepEqual([...evaluation.deferred], [[2, { fromMs: null, isOversized: true }]]);
  });

  test('defers the rest once its work is used up, but evaluates one device at least or finds it too much', () => {
    const first = evaluate(points, new Map(), watchOf, { ofDevice: 10_000, ofBatch: 1 });
    assert.deepEqual(eventsOf(first), [[1, 0, 'entry', 1_000]]);
    assert.deepEqual(
      [...first.deferred],
      [
        [2, { fromMs: null, isOversized: false }],
        [3, { fromMs: null, isOversized: false }],
      ],
    );
    const second = evaluate(points.slice(1), new Map(), watchOf, { ofDevice: 10, ofBatch: 1 });
    assert.deepEqual([second.events, second.deferred.get(2)], [[], { fromMs: null, isOversized: true }]);
  });

  test('of its only device evaluates the first points, and in the end as much as without a limit', () => {
    const path = Array.from({ length: 40 }, (_, n) => point(7, n, n % 2 === 0 ? 1 : 9));
    const whole = evaluate(path, new Map(), () => many(30));
    const limits = { ofDevice: null, ofBatch: 100 * EVENT_WORK };
    const events: GeofenceEvaluation['events'][number][] = [];
    let stays: StaysByDevice = new Map();
    let batches = 0;
    for (let rest = path; rest.length > 0; batches++) {
      const part = evaluate(rest, stays, () => many(30), limits);
      assert.ok(part.events.length > 0 && part.events.length <= 130, `${part.events.length} events`);
      events.push(...part.events);
      stays = new Map([...stays, ...part.stays]);
      const fromMs = part.deferred.get(7)?.fromMs ?? Number.POSITIVE_INFINITY;
      rest = rest.filter((one) => one.point.fix.recordedAtMs >= fromMs);
    }
    assert.equal(batches, 10);
    assert.deepEqual(events, whole.events);
    assert.deepEqual(stays, whole.stays);
  });

  const expensive = (count: number, pieceMs: number) =>
    watch(
      ...Array.from({ length: count }, (_, n) => ({
        ...area(n + 1, 0, 5),
        shape: {
          contains: () => {
            spin(pieceMs);
            return true;
          },
        },
      })),
    );

  test('pauses after every area that takes long, but for three at first, before their cost is known', () => {
    const steps = evaluateGeofences([point(1, 0, 1)], new Map(), () => expensive(20, 1), NO_LIMITS);
    let pauses = 0;
    while (steps.next().done !== true) pauses++;
    assert.ok(pauses >= 17, `${pauses} pauses`);
  });

  const times = { baseMs: 20, perPointMs: 0, ofBatchMs: 1e9, isOverdue: () => false };
  const timed = (more: Partial<typeof times> = {}): GeofenceLimits => ({
    ...{ ofDevice: 1e9, ofBatch: 1e9 },
    times: { ...times, ...more },
  });
  const worldOf = (deviceId: number): WatchedAreas => ({
    ...(deviceId === 2 ? expensive(100, 1) : watch(area(1_000, 0, 5))),
    deviceWorldId: deviceId <= 3 ? 1 : 2,
  });
  const four = [1, 2, 3, 4].map((deviceId) => point(deviceId, 0, 1));

  test('defers by its time a device that is too much, within its point, and the rest of its world', () => {
    const evaluation = evaluate(four, new Map(), worldOf, timed());
    assert.deepEqual(eventsOf(evaluation), [
      [1, 0, 'entry', 1_000],
      [4, 0, 'entry', 1_000],
    ]);
    assert.deepEqual(
      [...evaluation.deferred],
      [
        [2, { fromMs: null, isOversized: true }],
        [3, { fromMs: null, isOversized: false }],
      ],
    );
  });

  test('ends when others have waited for long enough, and of its only device leaves the point that takes too long', () => {
    let pauses = 0;
    const overdue = timed({ baseMs: 1e9, isOverdue: () => pauses++ > 3 });
    assert.deepEqual([...evaluate(four.slice(1), new Map(), worldOf, overdue).deferred.keys()], [2, 3, 4]);
    const alone = { ...timed(), ofDevice: null };
    const evaluation = evaluate([point(2, 0, 9), point(2, 1, 1)], new Map(), worldOf, alone);
    assert.deepEqual([...evaluation.deferred.keys()], [2]);
    assert.equal(evaluation.stays.size, 0);
  });

  test('asks no area that is known already', () => {
    const areas = expensive(100, 1);
    const one = point(2, 0, 1);
    const known = new KnownInside();
    assert.equal(inOneGo(known.find(one.point.fix, areas, new Pace(), () => false)), 100);
    const states = new Map([[2, { stays: [stay(3, -10)] }]]);
    const ask = (area: WatchedArea, fix: PointFacts) => known.contains(area, fix);
    const { events } = inOneGo(evaluateGeofences([one], states, () => areas, timed(), ask));
    assert.equal(events.length, 99);
    assert.equal(inOneGo(new KnownInside().find(one.point.fix, areas, new Pace(), () => true)), null);
  });
});
