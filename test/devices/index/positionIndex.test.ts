import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { DeviceColumns } from '../../../src/devices/deviceColumns.memory.ts';
import type { NearHit } from '../../../src/devices/index/nearestHits.ts';
import { PositionIndex } from '../../../src/devices/index/positionIndex.ts';
import { boxRegion } from '../../../src/devices/living/boxRegion.ts';
import { distanceM } from '../../../src/geo/wgs84.ts';
import { InvariantError } from '../../../src/lib/errors.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';
import { fieldsOf } from '../../support/devices.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { SlotColumns } from '../../support/slotColumns.ts';
import { runs } from '../../support/torture.ts';

type Position = readonly [lat: number, lng: number];
type Step =
  | { readonly kind: 'put'; readonly slot: number; readonly position: Position }
  | { readonly kind: 'remove'; readonly slot: number }
  | { readonly kind: 'near'; readonly position: Position; readonly limit: number; readonly maxM: number };

/** More than there are in most tests. */
const SLOTS = 4_000;

describe('near', () => {
  test('agrees with brute force after any puts, moves and removals', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 300, maxLength: 900, size: 'max' }), (steps) => {
        const index = new PositionIndex(new SlotColumns(SLOTS));
        const model = new Map<number, Position>();
        for (const step of steps) follow(step, index, model);
        assert.equal(index.size, model.size);
      }),
      { seed: 1, numRuns: runs(3), endOnFailure: true },
    );
  });

  test('agrees with brute force for a city of many devices, wherever the query is', () => {
    const sizeDegrees = fc.constantFrom(1e-6, 1e-3, 0.05, 1);
    fc.assert(
      fc.property(place, sizeDegrees, fc.array(position, { minLength: 8 }), (city, size, queries) => {
        const devices = cluster(1000, city, size);
        const index = indexOf(devices);
        const antipode: Position = [-city[0], wrapLng(city[1] + 180)];
        for (const query of [city, antipode, around(antipode, [0.2, 0.1]), ...queries]) {
          for (const limit of [1, 20]) assertNearest(index, devices, query, limit, Infinity);
        }
      }),
      { seed: 2, numRuns: runs(3), endOnFailure: true },
    );
  });

  test('finds devices far away when there are too few nearby', () => {
    const nearby = [...cluster(6, [41.9, 12.5], 0.05).values()];
    const farAway = [...cluster(3000, [48.86, 2.35], 0.3).values()];
    const devices = new Map([...farAway.slice(0, 1500), ...nearby, ...farAway.slice(1500)].entries());
    const index = indexOf(devices);
    for (const limit of [1, 6, 7, 60, 1000])
      for (const maxM of [Infinity, 1_105_000, 1_000])
        assertNearest(index, devices, [41.88, 12.52], limit, maxM);
  });

  test('includes devices at exactly maxM, and none beyond', () => {
    const index = indexOf(new Map([[0, [40, -3]]]));
    const exactM = distanceM(40.5, -3.5, 40, -3);
    assert.equal(nearest(index, [40.5, -3.5], 1, exactM).length, 1);
    assert.equal(nearest(index, [40.5, -3.5], 1, exactM * (1 - 1e-15)).length, 0);
    assert.equal(nearest(index, [40, -3], 1, 0).length, 1);
  });
});

describe('put and remove', () => {
  test('support tens of thousands of devices at one position', () => {
    const index = new PositionIndex(new SlotColumns(50_100));
    const devices = new Map<number, Position>();
    for (let slot = 0; slot < 30_000; slot++) {
      index.put(slot, 0, 0);
      devices.set(slot, [0, 0]);
    }
    for (let slot = 0; slot < 30_000; slot += 3) {
      index.remove(slot);
      devices.delete(slot);
    }
    for (let slot = 1; slot < 30_000; slot += 100) {
      index.put(slot, 0.001, 0);
      devices.set(slot, [0.001, 0]);
    }
    for (let slot = 50_000; slot < 50_100; slot++) {
      index.put(slot, slot / 1e7, 0);
      devices.set(slot, [slot / 1e7, 0]);
    }
    assert.equal(index.size, devices.size);
    assertNearest(index, devices, [0, 0], 50, Infinity);
    assertNearest(index, devices, [1, 1], 50, Infinity);
    for (const slot of devices.keys()) index.remove(slot);
    assertEmpty(index);
  });

  test('free every block, however often devices gather and scatter', () => {
    const index = new PositionIndex(new SlotColumns(100_000));
    const [gathered, scattered] = [cluster(1000, [51, 7], 1e-5), cluster(1000, [0, 0], 80)];
    const usages = new Set<string>();
    for (let round = 0; round < 12; round++) {
      for (const [slot, [lat, lng]] of gathered) index.put(slot, lat, lng);
      for (const [slot, [lat, lng]] of scattered) index.put(slot, lat, lng);
      usages.add(JSON.stringify(index.usage));
    }
    assert.equal(usages.size, 1);
    for (const slot of scattered.keys()) assert.equal(index.remove(slot), true);
    assertEmpty(index);
  });

  test('have room in arrays that never grow, when many were filled in at once and all move', () => {
    const columns = new SlotColumns(20_000);
    const index = new PositionIndex(columns);
    const slots = Array.from({ length: 20_000 }, (_, slot) => slot);
    const scatter = cluster(slots.length, [0, 0], 80);
    for (const slot of slots) columns.setLatLng(slot, ...(scatter.get(slot) as Position));
    inOneGo(index.fill(slots));
    const { bytes } = index.usage;
    for (const spread of [1e-5, 0.1, 10]) {
      for (const [slot, [lat, lng]] of cluster(slots.length, [51, 7], spread)) index.put(slot, lat, lng);
    }
    assert.equal(index.usage.bytes, bytes);
  });

  test('shrink the trie as devices leave', () => {
    const devices = cluster(10_000, [51, 7], 0.1);
    const index = indexOf(devices);
    for (const slot of devices.keys()) if (slot >= 10) index.remove(slot);
    assert.deepEqual([index.usage.nodes, index.usage.blocks], [0, 1]);
  });

  const mistakes: readonly [name: string, act: (index: PositionIndex) => void][] = [
    ['NaN as a latitude', (index) => index.put(0, Number.NaN, 0)],
    ['a latitude out of range', (index) => index.put(0, 91, 0)],
    ['a query without a position', (index) => index.near(0, Number.NaN, 1)],
    ['a limit of 0', (index) => index.near(0, 0, 0)],
    ['NaN as maxM', (index) => index.near(0, 0, 1, Number.NaN)],
  ];
  for (const [name, act] of mistakes) {
    test(`reject ${name}`, () => {
      const index = indexOf(new Map([[3, [1, 1]]]));
      assert.throws(() => act(index), InvariantError);
      assert.deepEqual([index.size, nearest(index, [1, 1], 1)[0]?.slot], [1, 3]);
    });
  }
});

describe('many devices at equal distances', () => {
  const DEPOT: Position = [41.9, 12.5];
  const ASKED: readonly Position[] = [
    DEPOT,
    [41.901, 12.5],
    [45.5, 9.2],
    [-23, -46],
    [-41.9, -167.5],
    [-41, -167],
  ];

  test('at one position cost no more than a few, wherever the query is', () => {
    let compared = 0;
    const compare = (slot: number, other: number): number => {
      compared++;
      return slot - other;
    };
    const index = new PositionIndex(new SlotColumns(30_000, { compare }));
    for (let slot = 29_999; slot >= 0; slot--) index.put(slot, ...DEPOT);
    for (const limit of [1, 50]) {
      for (const at of ASKED) {
        compared = 0;
        const hits = index.near(...at, limit);
        assert.deepEqual(
          hits?.map(({ slot }) => slot),
          Array.from({ length: limit }, (_, slot) => slot),
        );
        assert.ok(compared <= 2_000, `${compared} ranks for ${limit} asked at ${at}`);
      }
    }
  });

  test('come in the order of their IMEIs as text, of whatever length these are', () => {
    const imei = fc.oneof(
      fc.bigInt({ min: 10n ** 13n, max: 10n ** 17n - 1n }).map(String),
      fc.nat(999).map((n) => `35000000000000${n}`),
      fc.constantFrom('00000000000000', '000000000000000', '0000000000000000', '00000000000000000'),
    );
    const all = fc.uniqueArray(imei, { minLength: 20, maxLength: 80, size: 'max' });
    fc.assert(
      fc.property(all, fc.integer({ min: 1, max: 20 }), (imeis, limit) => {
        const columns = new DeviceColumns();
        const index = new PositionIndex(columns);
        const byRow = new Map(imeis.map((imei, id) => [columns.add(fieldsOf({ id, imei })), imei]));
        for (const row of byRow.keys()) index.put(row, 10, row - 91);
        assert.deepEqual(
          index.near(90, 0, limit)?.map(({ slot }) => byRow.get(slot)),
          imeis.toSorted((a, b) => (a < b ? -1 : 1)).slice(0, limit),
        );
      }),
      { seed: 35, numRuns: runs(40) },
    );
  });

  test('agree with brute force while devices of one lattice point change between several positions', () => {
    const tiny = fc.integer({ min: 0, max: 4 }).map((n) => n * 1e-9);
    const near = fc.tuple(tiny, tiny).map(([lat, lng]): Position => [DEPOT[0] + lat, DEPOT[1] + lng]);
    const change = fc.tuple(fc.integer({ min: 0, max: 79 }), fc.option(near, { freq: 3 }));
    fc.assert(
      fc.property(fc.array(change, { minLength: 200, maxLength: 600, size: 'max' }), (changes) => {
        const index = new PositionIndex(new SlotColumns(SLOTS));
        const devices = new Map<number, Position>();
        for (const [n, [slot, to]] of changes.entries()) {
          if (to === null) {
            assert.equal(index.remove(slot), devices.delete(slot));
          } else {
            index.put(slot, ...to);
            devices.set(slot, to);
          }
          if (n % 40 === 0)
            for (const limit of [1, 7, 60]) assertNearest(index, devices, DEPOT, limit, Infinity);
        }
        for (const at of ASKED) assertNearest(index, devices, at, 20, Infinity);
        for (const slot of devices.keys()) index.remove(slot);
        assertEmpty(index);
      }),
      { seed: 3, numRuns: runs(10), endOnFailure: true },
    );
  });

  const hard: readonly [name: string, positions: () => Position[], at: Position][] = [
    ['around a pole', () => Array.from({ length: 12_000 }, (_, n) => [0, n * 0.03 - 180]), [90, 0]],
    ['within a metre, from the antipode', () => [...cluster(8_000, DEPOT, 1e-5).values()], [-41.9, -167.5]],
    ['within a millimetre', () => [...cluster(8_000, DEPOT, 1e-8).values()], [45.5, 9.2]],
    ['within a millimetre, from above', () => [...cluster(8_000, DEPOT, 1e-8).values()], DEPOT],
  ];
  for (const [name, positions, at] of hard) {
    test(`${name} are found in small steps, even if devices move meanwhile`, () => {
      const all = positions();
      const devices = new Map(all.entries());
      const index = indexOf(devices);
      assert.equal(index.near(...at, 20), null);
      assert.deepEqual(nearestInSteps(index, at, 20, Infinity), bruteForce(devices, at, 20, Infinity));

      const random = seededRandom(4);
      const skipped = new CountingSet();
      let perStep = 0;
      const found = nearestInSteps(index, at, 20, Infinity, skipped, () => {
        perStep = Math.max(perStep, skipped.takeLooks());
        for (let n = 0; n < 5; n++) {
          const slot = Math.floor(random() * all.length);
          skipped.add(slot);
          devices.delete(slot);
          if (random() < 0.3) index.remove(slot);
          else index.put(slot, ...(all[Math.floor(random() * all.length)] as Position));
        }
      });
      assert.ok(perStep <= 5_000, `${perStep} devices in one step`);
      const stayed = found.filter(({ slot }) => devices.has(slot));
      assert.deepEqual(stayed, bruteForce(devices, at, 20, Infinity).slice(0, stayed.length));
      assert.ok(found.length === 20 && stayed.length >= 10, `${stayed.length} of ${found.length} stayed`);
    });
  }
});

/** Counts its look-ups: one for each device that the search meets. */
class CountingSet extends Set<number> {
  #looks = 0;

  override has(slot: number): boolean {
    this.#looks++;
    return super.has(slot);
  }

  takeLooks(): number {
    const looks = this.#looks;
    this.#looks = 0;
    return looks;
  }
}

const wrapLng = (lng: number): number => lng - 360 * Math.round(lng / 360);
const around = ([lat, lng]: Position, [dLat, dLng]: Position): Position => [
  Math.max(-90, Math.min(90, lat + dLat)),
  wrapLng(lng + dLng),
];

/** Antipodal pairs, both sides of 180°, both poles, and the corners of the first cells. */
const place = fc.constantFrom<Position[]>(
  [40.4, -3.7],
  [-40.4, 176.3],
  [-17, 179.9999],
  [-17, -179.9999],
  [90, 0],
  [-90, 0],
  [0, 0],
  [0, 180],
  [0.3, 72],
);
const offset = fc
  .tuple(fc.constantFrom(0, 1e-8, 1e-6, 1e-4, 0.01, 1), fc.integer({ min: -9, max: 9 }))
  .map(([size, times]) => size * times);
const position: fc.Arbitrary<Position> = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(place, fc.tuple(offset, offset)).map(([at, by]) => around(at, by)) },
  {
    weight: 1,
    arbitrary: fc.tuple(
      fc.integer({ min: -90e6, max: 90e6 }).map((lat) => lat / 1e6),
      fc.integer({ min: -180e6, max: 180e6 }).map((lng) => lng / 1e6),
    ),
  },
);
const slot = fc.integer({ min: 0, max: 399 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ kind: fc.constant('put'), slot, position }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('remove'), slot }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('near'),
      position,
      limit: fc.integer({ min: 1, max: 50 }),
      maxM: fc.constantFrom(Infinity, Infinity, 0, 10, 5_000, 2_000_000, 19_950_000),
    }),
  },
);

function follow(step: Step, index: PositionIndex, model: Map<number, Position>): void {
  if (step.kind === 'put') {
    index.put(step.slot, ...step.position);
    model.set(step.slot, step.position);
  } else if (step.kind === 'remove') {
    assert.equal(index.remove(step.slot), model.delete(step.slot));
  } else {
    assertNearest(index, model, step.position, step.limit, step.maxM);
  }
}

function assertNearest(
  index: PositionIndex,
  devices: ReadonlyMap<number, Position>,
  at: Position,
  limit: number,
  maxM: number,
): void {
  assert.deepEqual(nearest(index, at, limit, maxM), bruteForce(devices, at, limit, maxM));
}

/** What the index answers at once where it does, and in steps, which must be the same. */
function nearest(index: PositionIndex, [lat, lng]: Position, limit: number, maxM = Infinity): NearHit[] {
  const inSteps = nearestInSteps(index, [lat, lng], limit, maxM);
  const atOnce = index.near(lat, lng, limit, maxM);
  if (atOnce !== null) assert.deepEqual(inSteps, atOnce);
  return inSteps;
}

/** Of equals the lower slot first. `between` runs between any two steps. */
function nearestInSteps(
  index: PositionIndex,
  [lat, lng]: Position,
  limit: number,
  maxM: number,
  skipped: ReadonlySet<number> = new Set(),
  between: () => void = () => {},
): NearHit[] {
  let found: NearHit[] = [];
  const asked = {
    lat,
    lng,
    limit,
    get reachM() {
      return found[limit - 1]?.distanceM ?? maxM;
    },
  };
  const steps = index.nearInSteps(asked, skipped, (hits) => {
    const bySlot = new Map([...found, ...hits].map((hit) => [hit.slot, hit]));
    found = inOrder([...bySlot.values()]).slice(0, limit);
  });
  while (steps.next().done !== true) between();
  return found;
}

const inOrder = (hits: NearHit[]) => hits.sort((a, b) => a.distanceM - b.distanceM || a.slot - b.slot);

function assertEmpty(index: PositionIndex): void {
  const { nodes, blocks } = index.usage;
  assert.deepEqual({ size: index.size, nodes, blocks }, { size: 0, nodes: 0, blocks: 0 });
}

function bruteForce(devices: ReadonlyMap<number, Position>, at: Position, limit: number, maxM: number) {
  const all = [...devices].map(([slot, position]) => ({ slot, distanceM: distanceM(...at, ...position) }));
  return inOrder(all.filter((hit) => hit.distanceM <= maxM)).slice(0, limit);
}

function indexOf(devices: ReadonlyMap<number, Position>): PositionIndex {
  const index = new PositionIndex(new SlotColumns(1 + Math.max(...devices.keys())));
  for (const [slot, [lat, lng]] of devices) index.put(slot, lat, lng);
  return index;
}

/** Spreads devices evenly, but without a pattern, over a square. */
function cluster(count: number, centre: Position, sizeDegrees: number, start = 1): Map<number, Position> {
  const devices = new Map<number, Position>();
  for (let slot = 0; slot < count; slot++) {
    const [u, v] = [((slot + start) * 0.7548776662466927) % 1, ((slot + start) * 0.5698402909980532) % 1];
    devices.set(slot, around(centre, [sizeDegrees * (u - 0.5), sizeDegrees * (v - 0.5)]));
  }
  return devices;
}

describe('within', () => {
  test('visits what does not change once, even if the cells ahead become fewer and larger', (t) => {
    let nowMs = 0;
    t.mock.method(performance, 'now', () => ++nowMs); // a pause after every leaf
    const box = boxRegion({ west: 12, south: 41, east: 13, north: 42 });
    const devices = cluster(3_000, [41.5, 12.5], 0.2);
    const index = indexOf(devices);
    const visits = new Map<number, number>();
    const changed = new Set<number>();
    const steps = index.within(box, (slot) => {
      if (!changed.has(slot)) visits.set(slot, (visits.get(slot) ?? 0) + 1);
    });
    for (let n = 0; steps.next().done !== true; n++) {
      if (n !== 20) continue;
      for (const slot of devices.keys()) {
        if (slot % 50 === 0) continue;
        changed.add(slot);
        index.put(slot, 41.5, 12.9);
      }
    }
    const unchanged = [...devices.keys()].filter((slot) => !changed.has(slot));
    assert.ok(changed.size > 1_000 && unchanged.length >= 60, `${changed.size} have changed`);
    for (const slot of unchanged) assert.equal(visits.get(slot), 1, `slot ${slot}`);
  });
});
