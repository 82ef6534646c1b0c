import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BacktestResult } from '../../src/console/page/types.ts';
import { dwellChanges } from '../../src/console/page/views/areas/dwellChanges.ts';

type Event = BacktestResult['events'][number];

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();
const happened = (device: string, event: Event['event'], seconds: number): Event => ({
  ...{ area_id: null, device, event, timestamp: at(seconds), position: { lat: 1, lng: 2 } },
});
const found = (dwell_seconds: number, ...events: Event[]): BacktestResult => {
  const entries = events.filter(({ event }) => event === 'entry').length;
  return { dwell_seconds, entries, exits: events.length - entries, devices: 1, events };
};

test('another minimum stay is compared stay by stay: what is gone, what is new, and how much later the others enter', () => {
  // One that was inside before, one of ten seconds, one of two minutes, and one that goes on.
  const none = found(
    0,
    happened('a', 'exit', 5),
    happened('b', 'entry', 10),
    happened('b', 'exit', 20),
    happened('a', 'entry', 30),
    happened('b', 'entry', 40),
    happened('a', 'exit', 150),
  );
  const minute = found(
    60,
    happened('a', 'exit', 5),
    happened('a', 'entry', 91),
    happened('b', 'entry', 100),
    happened('a', 'exit', 150),
  );
  const gone = [happened('b', 'entry', 10), happened('b', 'exit', 20)];
  const moved = { moved: 2, movedMaxSeconds: 61 };
  assert.deepEqual(dwellChanges(none, minute), { gone, added: [], ...moved });
  assert.deepEqual(dwellChanges(minute, none), { gone: [], added: gone, ...moved });
  assert.deepEqual(dwellChanges(none, none), { gone: [], added: [], moved: 0, movedMaxSeconds: 0 });
});

test('nothing is said of events that are not all listed', () => {
  const all = found(0, happened('a', 'entry', 1));
  assert.equal(dwellChanges(all, { ...all, exits: 1 }), null);
  assert.equal(dwellChanges({ ...all, entries: 2 }, all), null);
});
