import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { KnownDevice } from '../../../src/console/page/fleet.ts';
import {
  BLOCK_ROWS,
  DirtyBlocks,
  lngLatOf,
  stepsOf,
  VehicleTable,
} from '../../../src/console/page/map/vehicles/vehicleTable.ts';

const LAT = fc.double({ min: -85, max: 85, noNaN: true });
const LNG = fc.double({ min: -180, max: 180, noNaN: true });

function vehicle(imei: string, lng: number, lat: number, atSeconds = 0): KnownDevice {
  const recordedAtMs = 1_780_000_000_000 + atSeconds * 1_000;
  const location = { latitude: lat, longitude: lng, speedKmh: 0, heading: 90, recordedAtMs };
  return {
    imei,
    name: null,
    plate: null,
    status: 'moving',
    location,
    ignition: null,
    groups: [],
    version: 0,
  };
}

const CLOCK_MS = 1_780_000_000_000;

const turn = (degrees: number): number => degrees - 360 * Math.round(degrees / 360);

test('a place is the same within two centimetres after it was made whole numbers', () => {
  fc.assert(
    fc.property(LNG, LAT, (lng, lat) => {
      const back = lngLatOf(stepsOf({ lng, lat }));
      assert.ok(Math.abs(turn(back.lng - lng)) < 1.8e-7 && Math.abs(back.lat - lat) < 1.8e-7);
    }),
  );
});

describe('a vehicle', () => {
  test('glides the short way around the world, as long as its points lie apart', () => {
    const table = new VehicleTable();
    table.put(vehicle('a', 179.9, 0), 100, CLOCK_MS);
    assert.deepEqual([table.movingUntil, table.rows], [100, 1]);
    table.put(vehicle('a', -179.9, 0, 8), 100, CLOCK_MS);
    assert.equal(table.movingUntil, 108);
    const at = (now: number) => Math.abs(table.placeOf('a', now)?.lng ?? 0);
    assert.ok(Math.abs(at(100) - 179.9) < 1e-6 && Math.abs(at(104) - 180) < 1e-6);
    assert.ok(Math.abs(at(108) - 179.9) < 1e-6 && Math.abs(at(999) - 179.9) < 1e-6);
  });
  test('turns off its way where the next point comes before it is there', () => {
    const table = new VehicleTable();
    table.put(vehicle('a', 0, 0), 0, CLOCK_MS);
    table.put(vehicle('a', 1, 0, 10), 0, CLOCK_MS);
    table.put(vehicle('a', 1, 1, 12), 5, CLOCK_MS);
    const { lng, lat } = table.placeOf('a', 5) as { lng: number; lat: number };
    assert.ok(Math.abs(lng - 0.5) < 1e-6 && Math.abs(lat) < 1e-6);
  });
  for (const [what, seconds, isStill] of [
    ['after a silence', 61, false],
    ['back in time', -1, false],
    ['where the person wants no motion', 8, true],
  ] as const)
    test(`jumps ${what}`, () => {
      const table = new VehicleTable(isStill);
      table.put(vehicle('a', 0, 0), 0, CLOCK_MS);
      table.put(vehicle('a', 1, 0, seconds), 0, CLOCK_MS);
      assert.ok(Math.abs((table.placeOf('a', 0)?.lng ?? 0) - 1) < 1e-6);
    });
  test('is gone when it is removed or has no place, and its row is used again', () => {
    const table = new VehicleTable();
    for (const imei of ['a', 'b']) table.put(vehicle(imei, 0, 0), 0, CLOCK_MS);
    table.remove('a');
    table.put({ ...vehicle('b', 0, 0), location: null }, 0, CLOCK_MS);
    assert.equal(table.near({ lng: 0, lat: 0 }, 512, 10, 0).count, 0);
    table.put(vehicle('c', 5, 5), 0, CLOCK_MS);
    assert.deepEqual([table.rows, table.placeOf('a', 0), [...table.places(0)].length], [2, null, 1]);
  });
});

test('the vehicles near a place are those of a search through all, with more of them than fit at first', () => {
  const table = new VehicleTable();
  const fleet = Array.from({ length: 3_000 }, (_, index) => ({
    lng: turn(index * 137.508),
    lat: Math.asin((index / 3_000) * 1.9 - 0.95) * (180 / Math.PI),
  }));
  fleet.forEach(({ lng, lat }, index) => {
    table.put(vehicle(String(index), lng, lat), 0, CLOCK_MS);
  });
  const y = (lat: number) => Math.log(Math.tan(Math.PI / 4 + (lat * Math.PI) / 360)) / (2 * Math.PI);
  fc.assert(
    fc.property(LNG, LAT, fc.integer({ min: 1, max: 400 }), (lng, lat, px) => {
      const worldPx = 4_096;
      const all = fleet
        .map((one, index) => ({
          imei: String(index),
          px: Math.hypot(turn(one.lng - lng) / 360, y(one.lat) - y(lat)) * worldPx,
        }))
        .filter((one) => one.px <= px)
        .sort((a, b) => a.px - b.px);
      const near = table.near({ lng, lat }, worldPx, px, 0);
      assert.equal(near.count, all.length);
      assert.deepEqual(near.imeis, all.slice(0, 30).map(({ imei }) => imei)); // biome-ignore format: one line
    }),
  );
});

test('changed rows are told once each, and no others but those of their block', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(999)), (changed) => {
      const dirty = new DirtyBlocks();
      for (const row of changed) dirty.add(row);
      const told: number[] = [];
      dirty.take(1_000, (from, to) => {
        for (let row = from; row < to; row++) told.push(row);
      });
      const blocks = new Set(changed.map((row) => Math.floor(row / BLOCK_ROWS)));
      const expected = Array.from({ length: 1_000 }, (_, row) => row).filter((row) =>
        blocks.has(Math.floor(row / BLOCK_ROWS)),
      );
      assert.deepEqual(told, expected);
      dirty.take(1_000, () => assert.fail('they are forgotten'));
    }),
  );
});

test('what is in view is found at its pixels, a bounded number of it, also across 180°', () => {
  const table = new VehicleTable();
  table.put(vehicle('a', 179.9, 0), 0, CLOCK_MS);
  table.put(vehicle('b', -179.9, 0), 0, CLOCK_MS);
  table.put(vehicle('c', 179, 0), 0, CLOCK_MS);
  const view = { width: 100, height: 50 };
  // A degree has ten pixels.
  const seen = (max: number) => table.within({ lng: 180, lat: 0 }, 3_600, view, 0, max);
  const rounded = seen(9).map(({ imei, x, y }) => [imei, Math.round(x), Math.round(y)]);
  assert.deepEqual(rounded, [
    ['a', -1, 0],
    ['b', 1, 0],
    ['c', -10, 0],
  ]);
  assert.equal(seen(2).length, 2);
  assert.equal(table.within({ lng: 180, lat: 0 }, 3_600, { width: 19, height: 50 }, 0, 9).length, 2);
  assert.deepEqual(
    table.placed(['b', 'x'], { lng: 180, lat: 0 }, 3_600, 0).map(({ imei }) => imei),
    ['b'],
  );
});

test('an offline vehicle fades within a week', () => {
  const table = new VehicleTable();
  const fadedAfter = (days: number, status: KnownDevice['status']) => {
    table.put({ ...vehicle('a', 0, 0), status }, 0, CLOCK_MS + days * 86_400_000);
    return new Uint8Array(table.bytes)[27];
  };
  assert.deepEqual(
    [1, 3.5, 7, 100].map((days) => fadedAfter(days, 'offline')),
    [36, 128, 255, 255],
  );
  assert.equal(fadedAfter(7, 'parked'), 0);
});
