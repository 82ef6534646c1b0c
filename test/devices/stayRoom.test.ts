import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Stay } from '../../src/devices/stays/packedStays.ts';
import { DEVICE_STAYS_MAX, StayBudget } from '../../src/devices/stays/stayCounts.ts';
import { evaluateGeofences, type GeofenceLimits } from '../../src/ingest/evaluateFixes.ts';
import type { InOrderPoint } from '../../src/ingest/fix.ts';
import type { WatchedArea, WatchedAreas } from '../../src/ingest/geofences.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { fixOf } from '../support/ingest/fixOf.ts';

const [ANNA, BEN] = [1, 2];
const NO_LIMITS: GeofenceLimits = { ofDevice: Number.POSITIVE_INFINITY, ofBatch: Number.POSITIVE_INFINITY };

/** An area from one degree of longitude to another. */
const area = (id: number, from: number, to: number, accountId = ANNA): WatchedArea => ({
  id,
  worldId: 1,
  accountId,
  definition: { name: `Area ${id}`, dwellSeconds: 0 },
  shape: { contains: (_lat, lng) => lng >= from && lng <= to },
});
const watch = (...areas: readonly WatchedArea[]): WatchedAreas => ({
  deviceWorldId: 1,
  near: () => areas,
  byId: (id) => areas.find((one) => one.id === id),
  isShared: () => false,
});
const point = (deviceId: number, ms: number, lng: number): InOrderPoint => ({
  point: { deviceId, fix: fixOf(String(350_000_000_000_000 + deviceId), ms, { lat: 0, lng }) },
  speedKmh: 30,
  eventCount: 0,
});
const stay = (areaId: number): Stay => ({ areaId, insideSinceMs: -9, confirmedAtMs: -9 });
const budgetOf = (left: Readonly<Record<number, number>>) =>
  new StayBudget((accountId) => left[accountId] ?? 0);

function evaluate(
  points: readonly InOrderPoint[],
  areas: WatchedAreas,
  budget: StayBudget,
  before: readonly (readonly [number, readonly Stay[]])[] = [],
  limits = NO_LIMITS,
) {
  const states = new Map(before.map(([deviceId, stays]) => [deviceId, { stays }]));
  const result = inOneGo(evaluateGeofences(points, states, () => areas, { ...limits, stays: budget }));
  return {
    ...result,
    said: result.events.map(
      ({ point: { deviceId }, event }) =>
        `${deviceId} ${event.occurredAtMs} ${event.direction} ${event.areaId}`,
    ),
    ids: new Map([...result.stays].map(([deviceId, stays]) => [deviceId, stays.map((one) => one.areaId)])),
  };
}

describe('an account with room for some stays', () => {
  test('has those of its lowest areas begun, and what another account owns is not touched', () => {
    const areas = watch(area(4, 0, 9), area(2, 0, 9), area(3, 0, 9, BEN), area(1, 0, 9), area(9, 0, 9, BEN));
    const { said, ids, refused } = evaluate([point(7, 0, 5)], areas, budgetOf({ [ANNA]: 2, [BEN]: 9 }));
    assert.deepEqual(said, ['7 0 entry 1', '7 0 entry 2', '7 0 entry 3', '7 0 entry 9']);
    assert.deepEqual(ids.get(7), [1, 2, 3, 9]);
    assert.deepEqual([...refused], [[7, { firstMs: 0, lastMs: 0, points: { account: 1, device: 0 } }]]);
  });

  test('has stays go on and end without any room, and one that ends makes room at once', () => {
    const areas = watch(area(1, 0, 5), area(2, 4, 9));
    const points = [point(7, 0, 3), point(7, 1, 4), point(7, 2, 6), point(7, 3, 20)];
    const { said, refused } = evaluate(points, areas, budgetOf({ [ANNA]: 0 }), [[7, [stay(1)]]]);
    assert.deepEqual(said, ['7 2 exit 1', '7 2 entry 2', '7 3 exit 2']);
    assert.deepEqual(refused.get(7)?.points, { account: 1, device: 0 });
  });

  test('begins a stay with the next point inside after there is room again', () => {
    const areas = watch(area(1, 0, 9));
    const none = evaluate([point(7, 0, 5)], areas, budgetOf({ [ANNA]: 0 }));
    assert.deepEqual([none.said, [...none.stays]], [[], []]);
    const next = evaluate([point(7, 1, 5)], areas, budgetOf({ [ANNA]: 1 }));
    assert.deepEqual(next.said, ['7 1 entry 1']);
  });

  test('shares it among the devices of a transaction; what is left out takes nothing', () => {
    const areas = watch(area(1, 0, 9), area(2, 0, 9));
    const budget = budgetOf({ [ANNA]: 3 });
    const { said } = evaluate([point(5, 0, 5), point(6, 0, 5), point(7, 0, 5)], areas, budget);
    assert.deepEqual(said, ['5 0 entry 1', '5 0 entry 2', '6 0 entry 1']);
    assert.equal(budget.begun(ANNA), 3);

    const again = budgetOf({ [ANNA]: 3 });
    const limits = { ofDevice: 1, ofBatch: Number.POSITIVE_INFINITY };
    const { deferred } = evaluate([point(5, 0, 5)], areas, again, [], limits);
    assert.deepEqual([[...deferred.keys()], again.begun(ANNA)], [[5], 0]);
  });

  test('has no further areas looked at once one is found that would need room', () => {
    let looks = 0;
    const counted = (id: number): WatchedArea => ({
      ...area(id, 0, 9),
      shape: {
        contains: () => {
          looks++;
          return true;
        },
      },
    });
    const areas = watch(...Array.from({ length: 500 }, (_, n) => counted(n + 1)));
    evaluate([point(7, 0, 5)], areas, budgetOf({ [ANNA]: 0 }));
    assert.equal(looks, 1);
  });
});

test(`a device has ${DEVICE_STAYS_MAX} stays at most, and another one begins beside it`, () => {
  const areas = watch(...Array.from({ length: DEVICE_STAYS_MAX + 50 }, (_, n) => area(n + 1, 0, 9)));
  const { ids, refused } = evaluate([point(7, 0, 5), point(7, 1, 5)], areas, new StayBudget());
  assert.equal(ids.get(7)?.length, DEVICE_STAYS_MAX);
  assert.equal(ids.get(7)?.at(-1), DEVICE_STAYS_MAX);
  assert.deepEqual([...refused], [[7, { firstMs: 0, lastMs: 1, points: { account: 0, device: 2 } }]]);
  const many = Array.from({ length: DEVICE_STAYS_MAX + 20 }, (_, n) => stay(n + 1));
  const more = evaluate([point(7, 0, 5)], areas, new StayBudget(), [[7, many]]);
  assert.deepEqual([[...more.stays], more.said], [[], []], 'what it has already goes on');
});
