import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type DeviceTrack, NO_TRACK, stepDevice, stepRepeat } from '../../src/engine/deviceEvents.ts';
import { type BatchEntry, evaluateBatch } from '../../src/engine/evaluateBatch.ts';
import type { Fix } from '../../src/engine/fix.ts';

const START_MS = Date.UTC(2026, 2, 14, 12);

function entry(deviceId: number, second: number, values: Partial<Fix> = {}): BatchEntry {
  const fix: Fix = {
    imei: String(350_000_000_000_000 + deviceId),
    recordedAtMs: START_MS + second * 1_000,
    sentAtMs: null,
    lat: 41.9,
    lng: 12.5,
    altitudeM: 0,
    speedKmh: 30,
    heading: 0,
    satellites: 0,
    odometerKm: null,
    ignition: null,
    alarms: [],
    rfid: null,
    ...values,
  };
  return { deviceId, fix };
}

const tracks = (
  ...devices: (readonly [id: number, newestSecond: number | null])[]
): Map<number, DeviceTrack> =>
  new Map(
    devices.map(([id, second]) => [
      id,
      second === null
        ? NO_TRACK
        : { ...NO_TRACK, recordedAtMs: START_MS + second * 1_000, lat: 41.9, lng: 12.5 },
    ]),
  );

describe('a batch', () => {
  test('is evaluated in time order per device, whatever its own order, and who came first is first', () => {
    const entries = [entry(2, 5), entry(1, 9), entry(2, 1), entry(1, 3), entry(2, 3)];
    const { ahead, behind, repeats } = evaluateBatch(entries, tracks([1, null], [2, null]), START_MS);
    assert.deepEqual(
      ahead.map(({ entry: n }) => n),
      [2, 4, 0, 3, 1],
    );
    assert.deepEqual([behind, repeats], [[], []]);
  });

  test('leaves points that are not newer than the newest evaluated one behind, equal times too', () => {
    const entries = [entry(1, 10), entry(1, 9), entry(1, 11), entry(2, 9)];
    const { ahead, behind } = evaluateBatch(entries, tracks([1, 10], [2, null]), START_MS);
    assert.deepEqual(behind, [1, 0]);
    assert.deepEqual(
      ahead.map(({ entry: n }) => n),
      [2, 3],
    );
  });

  test('lets the first of equal points stand, among new ones and among those behind', () => {
    const entries = [entry(1, 20), entry(1, 5), entry(1, 20), entry(2, 20), entry(1, 5), entry(1, 20)];
    const { ahead, behind, repeats } = evaluateBatch(entries, tracks([1, 10], [2, null]), START_MS);
    assert.deepEqual(
      ahead.map(({ entry: n }) => n),
      [0, 3],
    );
    assert.deepEqual(behind, [1]);
    assert.deepEqual(repeats, [4, 2, 5]);
  });

  test('judges each point by the one before it in the batch, the first by the state before', () => {
    const entries = [entry(1, 12, { rfid: 'b' }), entry(1, 11, { rfid: 'a' }), entry(1, 13, { rfid: 'b' })];
    const before = new Map([[1, { ...NO_TRACK, recordedAtMs: START_MS, rfid: 'a' }]]);
    const { events, tracks: after } = evaluateBatch(entries, before, START_MS);
    assert.deepEqual(
      events.map(({ occurredAtMs, event }) => [(occurredAtMs - START_MS) / 1_000, event.type]),
      [[12, 'rfid']],
    );
    assert.equal(after.get(1)?.recordedAtMs, START_MS + 13_000);
  });

  test('has states only for devices that moved', () => {
    const { tracks: after } = evaluateBatch(
      [entry(1, 5), entry(2, 5)],
      tracks([1, 10], [2, 1], [3, 1]),
      START_MS,
    );
    assert.deepEqual([...after.keys()], [2]);
  });

  test('of nothing does nothing; a device without a state is a mistake of the caller', () => {
    assert.deepEqual(evaluateBatch([], new Map(), START_MS).ahead, []);
    assert.throws(() => evaluateBatch([entry(1, 1)], new Map(), START_MS));
  });

  test('ends with the point that brings its events to the limit; what is left is evaluated after it, with the same end', () => {
    const entries = Array.from({ length: 60 }, (_, n) => entry(1 + (n % 3), n, { rfid: `tag ${n}` }));
    const before = tracks([1, null], [2, null], [3, null]);
    const whole = evaluateBatch(entries, before, START_MS);
    assert.deepEqual([whole.events.length, whole.left], [60, []]);
    const first = evaluateBatch(entries, before, START_MS, 25);
    assert.deepEqual([first.events.length, first.left.length], [25, 35]);
    const rest = first.left.toSorted((a, b) => a - b).map((n) => entries[n] as BatchEntry);
    const second = evaluateBatch(rest, new Map([...before, ...first.tracks]), START_MS);
    assert.deepEqual([second.behind, second.repeats], [[], []]);
    assert.deepEqual(new Set([...first.events, ...second.events]), new Set(whole.events));
    assert.deepEqual(new Map([...first.tracks, ...second.tracks]), whole.tracks);
  });
});

describe('any batch', () => {
  const drawn = fc.record({
    entries: fc.array(
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

  test('is split and stepped as a naive walk over each device alone does it', () => {
    fc.assert(
      fc.property(drawn, ({ entries: rows, newest }) => {
        const entries = rows.map(({ deviceId, second, ...values }) => entry(deviceId, second, values));
        const before = tracks(...newest.map((second, n) => [n + 1, second] as const));
        const got = evaluateBatch(entries, before, START_MS);
        for (const deviceId of [1, 2, 3, 4]) {
          const own = entries.flatMap((one, n) => (one.deviceId === deviceId ? [n] : []));
          const firsts = own.filter(
            (n) => !own.some((m) => m < n && entries[m]?.fix.recordedAtMs === entries[n]?.fix.recordedAtMs),
          );
          firsts.sort((a, b) => (entries[a]?.fix.recordedAtMs ?? 0) - (entries[b]?.fix.recordedAtMs ?? 0));
          let track = before.get(deviceId) as DeviceTrack;
          const isNew = (n: number): boolean =>
            (before.get(deviceId)?.recordedAtMs ?? -1) < (entries[n] as BatchEntry).fix.recordedAtMs;
          const repeatsOfNewest = (n: number): number[] =>
            own.filter((m) => m !== n && entries[m]?.fix.recordedAtMs === track.recordedAtMs);
          const events: unknown[] = [];
          const repeat = (n: number): void => {
            const step = stepRepeat(track, (entries[n] as BatchEntry).fix);
            track = step.track;
            events.push(...step.events);
          };
          repeatsOfNewest(-1).forEach(repeat);
          const steps = firsts.filter(isNew).map((n) => {
            const step = stepDevice(track, (entries[n] as BatchEntry).fix);
            track = step.track;
            events.push(...step.events);
            repeatsOfNewest(n).forEach(repeat);
            return { entry: n, fix: step.fix, told: step.events.length };
          });
          const mine = (n: number): boolean => own.includes(n);
          assert.deepEqual(
            got.ahead.filter(({ entry: n }) => mine(n)),
            steps,
          );
          assert.deepEqual(
            got.behind.filter(mine),
            firsts.filter((n) => !isNew(n)),
          );
          assert.deepEqual(
            got.repeats.filter(mine).toSorted((a, b) => a - b),
            own.filter((n) => !firsts.includes(n)),
          );
          const isChanged = track !== before.get(deviceId);
          assert.deepEqual(got.tracks.get(deviceId), steps.length > 0 ? track : undefined);
          assert.deepEqual(got.repeated.get(deviceId), steps.length === 0 && isChanged ? track : undefined);
          assert.deepEqual(
            got.events.filter((event) => event.deviceId === deviceId).map(({ event }) => event),
            events,
          );
        }
      }),
      { seed: 2, numRuns: 300 },
    );
  });
});
