import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  type DeviceState,
  evaluateBatch,
  NO_STATE,
  stepDevice,
  stepRepeat,
} from '../../src/ingest/deviceEvents.ts';
import type { BatchPoint, Fix } from '../../src/ingest/fix.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { runs } from '../support/torture.ts';

const START_MS = Date.UTC(2026, 2, 14, 12);

function pointOf(deviceId: number, second: number, values: Partial<Fix> = {}): BatchPoint {
  const fix = fixOf(String(350_000_000_000_000 + deviceId), START_MS + second * 1_000, values);
  return { deviceId, fix };
}

type States = ReadonlyMap<number, { readonly state: DeviceState }>;

/** States of devices whose newest points have these times; null: no point yet. */
const statesOf = (...devices: readonly (readonly [id: number, newestSecond: number | null])[]): States =>
  new Map(
    devices.map(([id, second]) => [
      id,
      {
        state:
          second === null
            ? NO_STATE
            : { ...NO_STATE, recordedAtMs: START_MS + second * 1_000, lat: 41.9, lng: 12.5 },
      },
    ]),
  );

test('a batch ends with the point that reaches the limit of events; the deferred points end in the same states', () => {
  const points = Array.from({ length: 60 }, (_, n) => pointOf(1 + (n % 3), n, { rfid: `tag ${n}` }));
  const before = statesOf([1, null], [2, null], [3, null]);
  const evaluate = (some: readonly BatchPoint[], states: States, eventsMax?: number) =>
    inOneGo(evaluateBatch(some, states, START_MS, eventsMax));
  const whole = evaluate(points, before);
  assert.deepEqual([whole.events.length, whole.deferred], [60, []]);
  const first = evaluate(points, before, 25);
  assert.deepEqual([first.events.length, first.deferred.length], [25, 35]);
  const rest = first.deferred.toSorted((a, b) => points.indexOf(a) - points.indexOf(b));
  const states = new Map([...before, ...[...first.moved].map(([id, state]) => [id, { state }] as const)]);
  const second = evaluate(rest, states);
  assert.deepEqual([second.late, second.repeats], [[], []]);
  assert.deepEqual(new Set([...first.events, ...second.events]), new Set(whole.events));
  assert.deepEqual(new Map([...first.moved, ...second.moved]), whole.moved);
});

describe('any batch', () => {
  const drawn = fc.record({
    rows: fc.array(
      fc.record({
        deviceId: fc.integer({ min: 1, max: 4 }),
        second: fc.integer({ min: 0, max: 12 }),
        speedKmh: fc.constantFrom(null, 0, 30),
        ignition: fc.constantFrom(null, true, false),
        rfid: fc.constantFrom(null, 'a', 'b'),
      }),
      { maxLength: 40, size: 'max' },
    ),
    newest: fc.array(fc.option(fc.integer({ min: 0, max: 12 })), { minLength: 4, maxLength: 4 }),
  });

  test('is evaluated like a naive walk over the points of each device alone', () => {
    fc.assert(
      fc.property(drawn, ({ rows, newest }) => {
        const points = rows.map(({ deviceId, second, ...values }) => pointOf(deviceId, second, values));
        const before = statesOf(...newest.map((second, n) => [n + 1, second] as const));
        const got = inOneGo(evaluateBatch(points, before, START_MS));
        for (const deviceId of [1, 2, 3, 4]) {
          const isOwn = (point: BatchPoint): boolean => point.deviceId === deviceId;
          const own = points.filter(isOwn);
          const expected = walk(own, before.get(deviceId)?.state as DeviceState);
          assert.deepEqual(
            got.inOrder.filter(({ point }) => isOwn(point)),
            expected.inOrder,
          );
          assert.deepEqual(got.late.filter(isOwn), expected.late);
          assert.deepEqual(new Set(got.repeats.filter(isOwn)), expected.repeats);
          assert.deepEqual([got.moved.get(deviceId), got.amended.get(deviceId)], expected.states);
          assert.deepEqual(
            got.events.filter(({ point }) => isOwn(point)).map(({ event }) => event),
            expected.events,
          );
        }
      }),
      { seed: 2, numRuns: runs(75) },
    );
  });

  /** What a batch of one device does, looked up rather than sorted. */
  function walk(points: readonly BatchPoint[], before: DeviceState) {
    const isEqual = (a: BatchPoint, b: BatchPoint) => a.fix.recordedAtMs === b.fix.recordedAtMs;
    const isNew = ({ fix }: BatchPoint) => fix.recordedAtMs > (before.recordedAtMs ?? -1);
    const firsts = points.filter((point, n) => !points.slice(0, n).some((other) => isEqual(point, other)));
    firsts.sort((a, b) => a.fix.recordedAtMs - b.fix.recordedAtMs);
    let state = before;
    const events: unknown[] = [];
    const repeatNewest = (except: BatchPoint | null): void => {
      for (const point of points) {
        if (point === except || point.fix.recordedAtMs !== state.recordedAtMs) continue;
        const step = stepRepeat(state, point.fix);
        state = step.state;
        events.push(...step.events);
      }
    };
    repeatNewest(null);
    const inOrder = firsts.filter(isNew).map((point) => {
      const step = stepDevice(state, point.fix);
      state = step.state;
      events.push(...step.events);
      repeatNewest(point);
      return { point, speedKmh: step.state.speedKmh, eventCount: step.events.length };
    });
    const isAmended = inOrder.length === 0 && state !== before;
    return {
      inOrder,
      late: firsts.filter((point) => !isNew(point)),
      repeats: new Set(points.filter((point) => !firsts.includes(point))),
      states: [inOrder.length > 0 ? state : undefined, isAmended ? state : undefined],
      events,
    };
  }
});
