import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NO_STAYS, type Stay } from '../../src/devices/stays/stays.ts';
import { eventWorldId, type WatchedArea, type WatchedAreas } from '../../src/ingest/geofences.ts';
import { stepGeofences } from '../support/ingest/stepGeofences.ts';

const START_MS = Date.UTC(2026, 2, 14, 12);
const at = (second: number) => ({ lat: 41.9, lng: 12.5, recordedAtMs: START_MS + second * 1_000 });

/** Areas everywhere (contains: true) or nowhere, found only while the position is in their box. */
function watch(...areas: readonly (WatchedArea & { readonly near: boolean })[]): WatchedAreas {
  return {
    deviceWorldId: 1,
    near: () => areas.filter(({ near }) => near),
    byId: (id) => areas.find((area) => area.id === id),
    isShared: () => false,
  };
}

const area = (id: number, contains: boolean, near = true, dwellSeconds = 0) => ({
  id,
  accountId: 1,
  worldId: 1,
  definition: { name: `Area ${id}`, dwellSeconds },
  shape: { contains: () => contains },
  near,
});

const stay = (areaId: number, second: number, confirmed = true): Stay => ({
  areaId,
  insideSinceMs: START_MS + second * 1_000,
  confirmedAtMs: confirmed ? START_MS + second * 1_000 : null,
});

describe('a point that changes nothing', () => {
  const stays = [stay(3, 0), stay(5, 1, false)];
  const cases: readonly (readonly [title: string, stays: readonly Stay[], watch: WatchedAreas])[] = [
    ['far from every area', NO_STAYS, watch()],
    ['beside an area', NO_STAYS, watch(area(3, false))],
    ['inside areas that were entered or are pending', stays, watch(area(3, true), area(5, true, true, 60))],
  ];
  for (const [title, before, areas] of cases) {
    test(`gives back the very list of stays: ${title}`, () => {
      const step = stepGeofences(before, at(10), areas);
      assert.equal(step.stays, before);
      assert.deepEqual(step.events, []);
    });
  }
});

describe('a point', () => {
  test('is evaluated against open stays wherever their areas are, and those that are gone vanish', () => {
    const before = [stay(2, 0), stay(4, 0), stay(6, 0)];
    const step = stepGeofences(before, at(10), watch(area(2, false, false), area(6, true)));
    assert.deepEqual(step.stays, [stay(6, 0)]);
    assert.deepEqual(
      step.events.map((event) => [event.direction, event.areaId]),
      [['exit', 2]],
    );
  });

  test('leaves its stays in the order of their areas', () => {
    const step = stepGeofences(
      [stay(5, 0)],
      at(10),
      watch(area(9, true), area(5, true), area(2, true), area(7, true)),
    );
    assert.deepEqual(
      step.stays.map(({ areaId }) => areaId),
      [2, 5, 7, 9],
    );
  });

  test('in no area any more has the one empty list of stays', () => {
    assert.equal(stepGeofences([stay(5, 0)], at(10), watch()).stays, NO_STAYS);
  });

  test('reports a thousand areas over one place, each once', () => {
    const areas = Array.from({ length: 1_000 }, (_, n) => area(1_000 - n, true));
    const first = stepGeofences(NO_STAYS, at(0), watch(...areas));
    assert.deepEqual(
      first.events.map(({ areaId }) => areaId),
      Array.from({ length: 1_000 }, (_, n) => n + 1),
    );
    assert.equal(stepGeofences(first.stays, at(1), watch(...areas)).stays, first.stays);
  });
});

describe('an event', () => {
  const [anna, ben, acme] = [1, 2, 9];
  const cases: readonly (readonly [
    title: string,
    area: [number, boolean],
    device: number,
    reader: number,
  ])[] = [
    ['private area, private device', [anna, false], anna, anna],
    ['private area, shared device', [anna, false], acme, anna],
    ['shared area, private device', [acme, true], ben, ben],
    ['shared area, shared device', [acme, true], acme, acme],
  ];
  for (const [title, [worldId, isShared], device, reader] of cases) {
    test(`is read where it belongs: ${title}`, () => {
      assert.equal(eventWorldId({ worldId, isShared }, device), reader);
    });
  }
});
