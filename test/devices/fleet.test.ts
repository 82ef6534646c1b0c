import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type DeviceFields, type LatestPosition, NO_MOTION } from '../../src/devices/device.ts';
import type { DeviceRow } from '../../src/devices/deviceRows.sql.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { putDevices } from '../../src/devices/positionUpdates.ts';
import { NO_PACKED_STAYS, type PackedStays, packStoredStays } from '../../src/devices/stays/packedStays.ts';
import { distanceM } from '../../src/geo/wgs84.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf, passingDevice, positionAt } from '../support/devices.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { runs } from '../support/torture.ts';

const WORLDS = [1, 2, 3];
/** Everything a key may look into: one world, or two in either order. */
const VIEWS = [[1], [2], [3], [9], [1, 2], [2, 1], [1, 3], [9, 2], [2, 9], []];
const PLACES: readonly (readonly [lat: number, lng: number])[] = [
  [41.9, 12.5],
  [41.9, 12.50001],
  [16.5, 180],
  [16.5, -179.999],
  [90, 0],
  [-89.9, 10],
];

const fields = (id: number, worldId: number, editedAtMs = 0, name: string | null = null): DeviceFields =>
  fieldsOf({ id, imei: imeiOf((id * 7) % 11), worldId, name, editedAtMs });

const position = (recordedAtMs: number, place: number): LatestPosition =>
  positionAt(...(PLACES[place % PLACES.length] as readonly [number, number]), recordedAtMs);

/** A fleet of plain lists, sorted and measured from scratch for every question. */
class NaiveFleet {
  readonly devices: { fields: DeviceFields; position: LatestPosition | null }[] = [];

  put(next: DeviceFields): void {
    const present = this.devices.find((device) => device.fields.id === next.id);
    if (present === undefined) this.devices.push({ fields: next, position: null });
    else if (next.editedAtMs >= present.fields.editedAtMs) present.fields = next;
  }

  move(id: number, next: LatestPosition): boolean {
    const present = this.devices.find((device) => device.fields.id === id);
    if (present === undefined) return false;
    if (present.position === null || next.recordedAtMs >= present.position.recordedAtMs)
      present.position = next;
    return true;
  }

  remove(id: number): void {
    const at = this.devices.findIndex((device) => device.fields.id === id);
    if (at !== -1) this.devices.splice(at, 1);
  }

  seenBy(worldIds: readonly number[]) {
    return this.devices
      .filter((device) => worldIds.includes(device.fields.worldId))
      .sort((a, b) => (a.fields.imei < b.fields.imei ? -1 : 1));
  }
}

const plain = (device: { fields: DeviceFields; position: LatestPosition | null }) => ({
  fields: device.fields,
  position: device.position,
});

function assertSame(fleet: Fleet, naive: NaiveFleet): void {
  assert.equal(fleet.deviceCount, naive.devices.length);
  assert.equal(fleet.positionedCount, naive.devices.filter((device) => device.position !== null).length);
  for (const view of VIEWS) {
    const seen = naive.seenBy(view);
    assert.deepEqual(fleet.page(view, 0, 100).map(plain), seen);
    for (const [offset, limit] of [
      [1, 2],
      [3, 3],
      [seen.length, 5],
    ] as const) {
      assert.deepEqual(fleet.page(view, offset, limit).map(plain), seen.slice(offset, offset + limit));
    }
    for (const device of naive.devices) {
      const found = fleet.device(view, device.fields.imei);
      assert.deepEqual(found && plain(found), seen.includes(device) ? device : undefined);
    }
    assertNear(fleet, view, seen);
  }
}

function assertNear(fleet: Fleet, view: readonly number[], seen: readonly ReturnType<typeof plain>[]): void {
  for (const [lat, lng] of PLACES) {
    const measured = seen
      .flatMap((device) => (device.position === null ? [] : [{ device, at: device.position }]))
      .map(({ device, at }) => ({ imei: device.fields.imei, m: distanceM(lat, lng, at.lat, at.lng) }))
      .sort((a, b) => a.m - b.m || (a.imei < b.imei ? -1 : 1));
    for (const limit of [1, 3, 50]) {
      for (const maxM of [Number.POSITIVE_INFINITY, 50_000, 0]) {
        const within = measured.filter(({ m }) => m <= maxM);
        const found = fleet.near(view, lat, lng, limit, maxM);
        // Of devices at the same place the lower IMEI goes first, whatever order they came in.
        assert.deepEqual(
          found?.map(({ device, distanceM: m }) => ({ imei: device.fields.imei, m })),
          within.slice(0, limit),
        );
      }
    }
  }
}

describe('a fleet of several worlds', () => {
  const change = fc.oneof(
    fc.record({
      kind: fc.constant('put' as const),
      id: fc.integer({ min: 1, max: 11 }),
      worldId: fc.constantFrom(...WORLDS),
      editedAtMs: fc.integer({ min: 0, max: 5 }),
      name: fc.constantFrom('a', 'b', null),
    }),
    fc.record({
      kind: fc.constant('move' as const),
      id: fc.integer({ min: 1, max: 11 }),
      recordedAtMs: fc.integer({ min: 0, max: 5 }),
      place: fc.nat({ max: PLACES.length - 1 }),
    }),
    fc.record({ kind: fc.constant('remove' as const), id: fc.integer({ min: 1, max: 11 }) }),
    fc.record({ kind: fc.constant('load' as const) }),
  );

  /** A fleet with the same devices, loaded at once. */
  const loaded = (naive: NaiveFleet): Fleet => {
    const fleet = new Fleet();
    for (const { fields, position } of naive.devices.toReversed())
      fleet.load(
        passingDevice({ fields, editedXid: 0, position, motion: NO_MOTION, stays: NO_PACKED_STAYS }),
      );
    inOneGo(fleet.index());
    return fleet;
  };

  test('returns every page and every nearest like plain lists, after any changes, removals and loads, each applied once or twice', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(change, fc.boolean()), { maxLength: 60, size: 'max' }), (changes) => {
        let fleet = new Fleet();
        const naive = new NaiveFleet();
        for (const [one, twice] of changes) {
          for (let time = 0; time < (twice ? 2 : 1); time++) {
            if (one.kind === 'put') {
              const next = fields(one.id, one.worldId, one.editedAtMs, one.name);
              fleet.putDevice(next);
              naive.put(next);
            } else if (one.kind === 'move') {
              const next = position(one.recordedAtMs, one.place);
              assert.equal(fleet.move(one.id, next), naive.move(one.id, next));
            } else if (one.kind === 'remove') {
              const { id } = one;
              const { imei, worldId } =
                naive.devices.find(({ fields }) => fields.id === id)?.fields ?? fields(id, 1);
              fleet.putRemoval(worldId, { deviceId: id, imei, xid: 1, atMs: 0 }, true);
              naive.remove(id);
            } else {
              fleet = loaded(naive);
            }
          }
        }
        assertSame(fleet, naive);
      }),
      { seed: 2, numRuns: runs(20) },
    );
  });

  test('has no device again that was deleted while it was read, but one that took its IMEI', () => {
    const fleet = new Fleet();
    const read = fields(1, 1, 0, 'read');
    const rowOf = (fields: DeviceFields): DeviceRow => ({
      ...{ fields, editedXid: 5, position: null, motion: NO_MOTION, stays: NO_PACKED_STAYS },
    });
    inOneGo(putDevices(fleet, [rowOf(read)]));
    assert.equal(fleet.device([1], read.imei)?.fields.name, 'read');
    fleet.putRemoval(1, { deviceId: 1, imei: read.imei, xid: 6, atMs: 0 }, true);
    inOneGo(putDevices(fleet, [rowOf(read)]));
    assert.equal(fleet.device([1], read.imei), undefined);
    inOneGo(putDevices(fleet, [rowOf({ ...read, id: 2, name: 'another' })]));
    assert.equal(fleet.device([1], read.imei)?.fields.name, 'another');
  });

  test('is the same in whichever order changes arrive', () => {
    const changes: ((fleet: Fleet) => void)[] = [
      (fleet) => fleet.putDevice(fields(1, 1, 3, 'newest')),
      (fleet) => fleet.putDevice(fields(1, 2, 2, 'older')),
      (fleet) => fleet.putDevice(fields(1, 3, 1, 'oldest')),
      (fleet) => void fleet.move(1, position(20, 0)),
      (fleet) => void fleet.move(1, position(10, 1)),
    ];
    for (let rotation = 0; rotation < changes.length; rotation++) {
      const fleet = new Fleet();
      fleet.putDevice(fields(1, 3, 0, 'first'));
      for (let n = 0; n < changes.length; n++) changes[(n + rotation) % changes.length]?.(fleet);
      const [device] = fleet.page([1, 2, 3].slice(0, 2), 0, 10);
      assert.deepEqual([device?.fields.name, device?.position?.recordedAtMs], ['newest', 20]);
      assert.deepEqual([fleet.page([2], 0, 1), fleet.page([3], 0, 1)], [[], []]);
    }
  });

  test('answers the same about thousands of devices, however they came', () => {
    const random = seededRandom(21);
    const count = 9_000;
    const naive = new Map<
      number,
      { fields: DeviceFields; position: LatestPosition | null; stays: PackedStays; xid: number }
    >();
    const imeis = new Set<string>();
    const [fleet, oneByOne] = [new Fleet(), new Fleet()];
    for (let id = 1; id <= count; id++) {
      // Of the first 15 digits some have only a few, so what follows must tell them apart.
      const imei =
        id % 3 === 0 ? `35000000000001${1_000 + (id % 1_000)}`.slice(0, 14 + (id % 4)) : imeiOf(id * 7);
      if (imeis.has(imei)) continue;
      imeis.add(imei);
      const own = fieldsOf({
        id,
        imei,
        worldId: WORLDS[id % 2] as number,
        name: `Näme "${id}"`,
        groups: [`${id % 9}`],
      });
      const at = positionAt(random() * 170 - 85, random() * 360 - 180, id);
      const position = id % 10 === 0 ? null : at;
      const xid = 1 + Math.floor(random() * 50);
      // Hundreds of devices in an area, and one in hundreds of areas.
      const areas = position === null ? 0 : id === 1 ? 600 : id % 4;
      const ofAreas = Array.from({ length: areas }, (_, n) => [n + 1, id, n % 2 === 0 ? null : id]);
      const stays = packStoredStays(JSON.stringify(ofAreas));
      naive.set(id, { fields: own, position, stays, xid });
      const motion = { ...NO_MOTION, xid };
      fleet.load(passingDevice({ fields: own, editedXid: 0, position, motion, stays }));
    }
    inOneGo(fleet.index());
    for (const { fields, position, stays, xid } of naive.values()) {
      oneByOne.putDevice(fields, 0);
      if (position === null) continue;
      oneByOne.move(fields.id, position, { ...NO_MOTION, xid });
      inOneGo(oneByOne.putStays(fields.id, stays, 0));
    }
    const left = { deviceId: count + 1, imei: imeiOf(1), xid: 90, atMs: 0 };
    for (const each of [fleet, oneByOne]) each.putRemoval(WORLDS[1] as number, left, false);
    for (const step of ['loaded', 'changed']) {
      for (let n = 0; n < (step === 'loaded' ? 0 : 6_000); n++) {
        const id = 1 + Math.floor(random() * count);
        const known = naive.get(id);
        if (known === undefined) continue;
        const { imei, worldId, editedAtMs } = known.fields;
        if (n % 3 === 0) {
          naive.delete(id);
          for (const each of [fleet, oneByOne])
            each.putRemoval(worldId, { deviceId: id, imei, xid: 60, atMs: 0 }, true);
        } else if (n % 3 === 1) {
          const next = {
            ...known.fields,
            name: `${n}`,
            worldId: WORLDS[n % 2] as number,
            editedAtMs: editedAtMs + 1,
          };
          naive.set(id, { ...known, fields: next });
          for (const each of [fleet, oneByOne]) each.putDevice(next, 70);
        } else {
          const position = positionAt(random() * 170 - 85, random() * 360 - 180, count + n);
          naive.set(id, { ...known, position });
          for (const each of [fleet, oneByOne]) each.move(id, position, { ...NO_MOTION, xid: 80 });
        }
      }
      const sorted = [...naive.values()].sort((a, b) => (a.fields.imei < b.fields.imei ? -1 : 1));
      for (const each of [fleet, oneByOne]) {
        assert.equal(each.deviceCount, naive.size);
        assert.deepEqual(
          each.page(WORLDS.slice(0, 2), 0, count).map(plain),
          sorted.map(({ fields, position }) => ({ fields, position })),
        );
      }
      const inside = (each: Fleet, areaId: number) => {
        const { page, total } = each.occupants([1, 2], areaId, 'all', { offset: 0, limit: count });
        const { total: pending } = each.occupants([1, 2], areaId, 'pending', { offset: 0, limit: 0 });
        const stays = page.map(({ device, ...stay }) => ({ imei: device.imei, ...stay }));
        return { total, pending, stays, all: each.stays.total };
      };
      for (const areaId of [1, 2, 3, 600]) assert.deepEqual(inside(fleet, areaId), inside(oneByOne, areaId));
      const query = { fromXid: 20, after: null, limit: 500, isWanted: () => true };
      const shown = (each: Fleet) =>
        each.changed([1, 2], query).map(({ xid, id, device }) => [xid, id, device?.imei]);
      assert.deepEqual(shown(fleet), shown(oneByOne));
      for (let n = 0; n < runs(12); n++) {
        const [lat, lng] = [random() * 180 - 90, random() * 360 - 180];
        const measured = sorted
          .flatMap(({ fields, position }) =>
            position === null
              ? []
              : [{ imei: fields.imei, m: distanceM(lat, lng, position.lat, position.lng) }],
          )
          .sort((a, b) => a.m - b.m)
          .slice(0, 3);
        const found = fleet.near([1, 2], lat, lng, 3, Number.POSITIVE_INFINITY);
        assert.deepEqual(
          found?.map(({ device, distanceM: m }) => ({ imei: device.imei, m })),
          measured,
        );
      }
    }
  });
});
