import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { collectGarbage } from '../../bench/feeds/changes.ts';
import { limitedWorlds, type Worlds } from '../../src/access/credentials.ts';
import type { DeviceFields, Occupant } from '../../src/devices/device.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { OCCUPANT_STATES, type OccupantState } from '../../src/devices/stays/occupants.memory.ts';
import { type PackedStays, packStays, type Stay } from '../../src/devices/stays/packedStays.ts';
import { BulkCalls } from '../../src/http/bulkCalls.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { fieldsOf } from '../support/devices.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { runs } from '../support/torture.ts';
import { newTurns } from '../support/workTurns.ts';

const DEVICES = 6;
const AREAS = [1, 2, 3, 4];
const VIEWS = [[1], [2], [1, 2], [3, 1], [9]];

const imeiOf = (id: number): string => String(350_000_000_000_000 + ((id * 5) % 7));
const fields = (id: number, worldId: number, editedAtMs: number): DeviceFields =>
  fieldsOf({ id, imei: imeiOf(id), worldId, editedAtMs });
const plain = ({ device, areaId, insideSinceMs, confirmedAtMs }: Occupant) => ({
  imei: device.fields.imei,
  areaId,
  insideSinceMs,
  confirmedAtMs,
});

/** Devices with the stays of their highest revision, in plain lists that are sorted for every question. */
class NaiveOccupants {
  readonly devices = new Map<
    number,
    { worldId: number; editedAtMs: number; revision: number; stays: readonly Stay[] }
  >();

  put(id: number, worldId: number, editedAtMs: number): void {
    const { revision = -1, stays = [], ...known } = this.devices.get(id) ?? { editedAtMs: -1 };
    if (editedAtMs >= known.editedAtMs) this.devices.set(id, { worldId, editedAtMs, revision, stays });
  }

  putStays(id: number, stays: readonly Stay[], revision: number): void {
    const device = this.devices.get(id);
    if (device !== undefined && revision >= device.revision) Object.assign(device, { stays, revision });
  }

  in(worldIds: readonly number[], areaId: number, state: OccupantState) {
    return [...this.devices]
      .filter(([, { worldId }]) => worldIds.includes(worldId))
      .flatMap(([id, { stays }]) => stays.map((stay) => ({ imei: imeiOf(id), ...stay })))
      .filter((stay) => stay.areaId === areaId)
      .filter(({ confirmedAtMs }) => state === 'all' || (confirmedAtMs === null) === (state === 'pending'))
      .sort((a, b) => a.insideSinceMs - b.insideSinceMs || (a.imei < b.imei ? -1 : 1));
  }
}

const stays = fc.subarray(AREAS).chain((areas) =>
  fc.tuple(
    ...areas.map((areaId) =>
      fc.record({
        areaId: fc.constant(areaId),
        insideSinceMs: fc.constantFrom(-5, 0, 1, 1_700_000_000_000),
        confirmedAtMs: fc.constantFrom(null, 2_000_000_000_000),
      }),
    ),
  ),
);
const id = fc.integer({ min: 1, max: DEVICES });
const change = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('stays' as const), id, stays, revision: fc.nat({ max: 9 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('put' as const),
      id,
      worldId: fc.constantFrom(1, 2, 3),
      editedAtMs: fc.nat({ max: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), id }) },
);

describe('the devices in an area', () => {
  test('are those of plain lists, after any changes: each state, each view, each page', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 50, size: 'max' }), (changes) => {
        const fleet = new Fleet();
        const naive = new NaiveOccupants();
        const revisions = new Map<string, readonly Stay[]>();
        for (const one of changes) {
          if (one.kind === 'put') {
            fleet.putDevice(fields(one.id, one.worldId, one.editedAtMs));
            naive.put(one.id, one.worldId, one.editedAtMs);
          } else if (one.kind === 'remove') {
            const { worldId } = naive.devices.get(one.id) ?? { worldId: 1 };
            fleet.putRemoval(worldId, { deviceId: one.id, imei: imeiOf(one.id), xid: 1, atMs: 0 }, true);
            naive.devices.delete(one.id);
          } else {
            // A revision of a device has one list of stays, however often it is sent.
            const name = `${one.id} ${one.revision}`;
            const list = revisions.get(name) ?? one.stays;
            revisions.set(name, list);
            inOneGo(fleet.putStays(one.id, packStays(list), one.revision));
            naive.putStays(one.id, list, one.revision);
          }
        }
        for (const view of VIEWS) {
          for (const areaId of AREAS) {
            for (const state of OCCUPANT_STATES) {
              const expected = naive.in(view, areaId, state);
              for (const [offset, limit] of [
                [0, 50],
                [1, 2],
                [3, 1],
                [99, 9],
              ] as const) {
                const { page, total } = fleet.occupants(view, areaId, state, { offset, limit });
                assert.equal(total, expected.length);
                assert.deepEqual(page.map(plain), expected.slice(offset, offset + limit));
              }
            }
          }
        }
      }),
      { seed: 2, numRuns: runs(60) },
    );
  });

  test('of thousands of areas are exchanged in steps, and the newest stays win whatever comes between', () => {
    const staysFrom = (first: number, insideSinceMs: number): Stay[] =>
      Array.from({ length: 3_000 }, (_, n) => ({
        areaId: first + 2 * n,
        insideSinceMs,
        confirmedAtMs: null,
      }));
    const older = staysFrom(1, 10);
    const newer = staysFrom(2_001, 20);
    for (const order of ['older first', 'newer first'] as const) {
      const fleet = new Fleet();
      fleet.putDevice(fields(1, 1, 0));
      const steps = [fleet.putStays(1, packStays(older), 4), fleet.putStays(1, packStays(newer), 5)];
      if (order === 'newer first') steps.reverse();
      let count = 0;
      // In turn, with a move to another world between.
      for (let open = true; open; count++) {
        open = false;
        for (const each of steps) if (each.next().done !== true) open = true;
        if (count === 3) fleet.putDevice(fields(1, 2, 1));
      }
      assert.ok(count > 5, `${count} steps`);
      const held = Array.from({ length: 9_000 }, (_, areaId) =>
        fleet.occupants([2], areaId, 'all', { offset: 0, limit: 9 }),
      );
      assert.deepEqual(
        held.flatMap(({ page }) => page.map(({ areaId, insideSinceMs }) => ({ areaId, insideSinceMs }))),
        newer.map(({ areaId, insideSinceMs }) => ({ areaId, insideSinceMs })),
      );
      assert.ok(
        held.every((_, areaId) => fleet.occupants([1], areaId, 'all', { offset: 0, limit: 9 }).total === 0),
      );
    }
  });
});

describe('two million stays', () => {
  // A twentieth of them here: what a stay takes does not depend on it.
  const DEVICES_HELD = 100;
  const STAYS_EACH = 1_000;

  test('take at most 16 bytes each, the devices of each area included', () => {
    const fleet = new Fleet();
    for (let id = 1; id <= DEVICES_HELD; id++) {
      fleet.putDevice(fieldsOf({ id }));
    }
    const random = seededRandom(7);
    const stays = (): PackedStays =>
      packStays(
        Array.from({ length: STAYS_EACH }, (_, n) => {
          const insideSinceMs = 1_773_489_600_000 + Math.floor(random() * 86_400_000);
          const waitMs = Math.floor(random() * 3_600_000);
          const confirmedAtMs = random() < 0.1 ? null : insideSinceMs + waitMs;
          return { areaId: 70_000 + n, insideSinceMs, confirmedAtMs };
        }),
      );
    const usedBytes = (): number => {
      collectGarbage();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const before = usedBytes();
    for (let id = 1; id <= DEVICES_HELD; id++) inOneGo(fleet.putStays(id, stays(), 1));
    const bytes = (usedBytes() - before) / (DEVICES_HELD * STAYS_EACH);
    assert.equal(fleet.stays.total, DEVICES_HELD * STAYS_EACH);
    assert.ok(bytes <= 16, `${bytes} bytes for a stay`);
    const { total } = fleet.occupants([1], 70_500, 'all', { offset: 0, limit: 1 });
    assert.equal(total, DEVICES_HELD);
  });
});

describe('for a caller who sees few of very many devices in an area', () => {
  const MANY = 10_000;
  const LARGE = limitedWorlds([1], ['north']);
  const SMALL = limitedWorlds([2], ['north']);
  const PAGE = { offset: 0, limit: 50 };
  const fleet = new Fleet();
  const NORTH = [MANY - 1, MANY, MANY + 1];
  for (let id = 1; id <= MANY + 1; id++) {
    const worldId = id > MANY ? 2 : 1;
    const groups = NORTH.includes(id) ? ['north'] : ['south'];
    fleet.putDevice(fieldsOf({ id, imei: String(350_000_000_000_000 + id), worldId, groups }), 1);
    const stay = { areaId: 1, insideSinceMs: 1_700_000_000_000 + id, confirmedAtMs: null };
    inOneGo(fleet.putStays(id, packStays([stay]), 1));
  }
  const seenIn = (worlds: Worlds) => fleet.occupantsSeen(worlds, 1, 'all', PAGE);

  test('a turn ends by the clock, and not before', (t) => {
    let nowMs = 0;
    let msPerLook = 0;
    t.mock.method(performance, 'now', () => {
      nowMs += msPerLook;
      return nowMs;
    });
    const turnsOf = (): number => {
      let turns = 1;
      const steps = seenIn(LARGE);
      for (let step = steps.next(); ; step = steps.next(), turns++) {
        if (step.done !== true) continue;
        const { total, page } = step.value;
        assert.deepEqual([total, page.map(({ device }) => device.id)], [2, NORTH.slice(0, 2)]);
        return turns;
      }
    };
    assert.equal(turnsOf(), 1, 'no time passes');
    msPerLook = 5;
    assert.ok(turnsOf() > MANY / 300, 'each look finds that much time has passed');
  });

  test('another account has its list before one of many is counted', async () => {
    const calls = new BulkCalls(newTurns());
    const order: string[] = [];
    const busy = Array.from({ length: 20 }, () =>
      calls.run(1, () => seenIn(LARGE)).then(() => order.push('large')),
    );
    const { total } = await calls.run(2, () => seenIn(SMALL));
    order.push('small');
    assert.equal(total, 1);
    await Promise.all(busy);
    assert.equal(order.indexOf('small'), 0, order.join());
  });
});
