import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { DeviceRow } from '../../src/devices/deviceRows.sql.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { packStays } from '../../src/devices/stays/packedStays.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf, passingDevice, positionAt } from '../support/devices.ts';

const ALL = { fromXid: 0, after: null, limit: 9, isWanted: () => true };
const AREA = 7;
const PLACE = positionAt(41.9, 12.5, 1_000);
const FIELDS = fieldsOf({
  id: 1,
  imei: imeiOf(1),
  worldId: 1,
  name: 'Van 12',
  plate: 'AB 1',
  groups: ['north'],
});
const MOTION = { headingDeg: 45, ignition: true, revision: 3, xid: 20 };
const ROW: DeviceRow = {
  fields: FIELDS,
  editedXid: 10,
  position: PLACE,
  motion: MOTION,
  stays: packStays([]),
};
const STAY = { areaId: AREA, insideSinceMs: 1_000, confirmedAtMs: 2_000 };

const inFields = (fields: Partial<DeviceRow['fields']>): DeviceRow => ({
  ...ROW,
  fields: { ...FIELDS, ...fields },
});
const inPlace = (position: Partial<typeof PLACE>): DeviceRow => ({
  ...ROW,
  position: { ...PLACE, ...position },
});
const inMotion = (motion: Partial<DeviceRow['motion']>): DeviceRow => ({
  ...ROW,
  motion: { ...MOTION, ...motion },
});

/** Everything in which a device of a snapshot can differ from that of memory, each by itself. */
const DIFFERENCES: Readonly<Record<string, DeviceRow>> = {
  nothing: ROW,
  'another id': inFields({ id: 2 }),
  'another IMEI': inFields({ imei: imeiOf(2) }),
  'another world': inFields({ worldId: 2 }),
  'another name': inFields({ name: 'Van 13' }),
  'a longer name': inFields({ name: 'Van 123' }),
  'a name that is not ASCII': inFields({ name: 'Vän 12' }),
  'no name': inFields({ name: null }),
  'another plate': inFields({ plate: 'AB 2' }),
  'a model': inFields({ model: 'Sprinter' }),
  'another group': inFields({ groups: ['south'] }),
  'one group more': inFields({ groups: ['north', 'south'] }),
  'no group': inFields({ groups: [] }),
  'another edit': inFields({ editedAtMs: FIELDS.editedAtMs + 1 }),
  'another transaction of its edit': { ...ROW, editedXid: 11 },
  'no position': { ...ROW, position: null },
  'another time': inPlace({ recordedAtMs: PLACE.recordedAtMs + 1 }),
  'another latitude': inPlace({ lat: 41.91 }),
  'another longitude': inPlace({ lng: 12.51 }),
  'another altitude': inPlace({ altitudeM: 99 }),
  'another speed': inPlace({ speedKmh: 99 }),
  'another odometer': inPlace({ odometerKm: 99 }),
  'another time of its last movement': inPlace({ movedAtMs: PLACE.movedAtMs + 1 }),
  'another heading': inMotion({ headingDeg: 46 }),
  'another ignition': inMotion({ ignition: false }),
  'an unknown ignition': inMotion({ ignition: null }),
  'another revision': inMotion({ revision: 4 }),
  'another transaction of its last movement': inMotion({ xid: 21 }),
  'an area that it is in': { ...ROW, stays: packStays([STAY]) },
};

function loaded(...rows: readonly DeviceRow[]): Fleet {
  const fleet = new Fleet();
  for (const row of rows) fleet.load(passingDevice(row));
  inOneGo(fleet.index());
  return fleet;
}

function everything(fleet: Fleet) {
  const page = { offset: 0, limit: 9 };
  return [1, 2].map((world) => ({
    near: fleet.near([world], 41.9, 12.5, 9, Infinity)?.map(({ device }) => device.imei),
    inside: fleet
      .occupants([world], AREA, 'all', page)
      .page.map(({ device, ...stay }) => ({ ...stay, of: device.imei })),
    listed: fleet.page([world], 0, 9).map(({ fields, position }) => ({ fields, position })),
    changed: fleet
      .changed([world], ALL)
      .map(({ device, ...change }) => ({ ...change, of: device?.fields, at: device?.position })),
  }));
}

function reload(fleet: Fleet, ...rows: readonly DeviceRow[]): void {
  const reloading = fleet.reload(() => false);
  inOneGo(reloading.put(rows.map(passingDevice)));
  inOneGo(reloading.dropOthers());
}

/** What may have been under way: whether it is taken is decided by the revision that the fleet has. */
function bringLate(fleet: Fleet): void {
  fleet.move(1, positionAt(42, 13, 1_000), { ...MOTION, xid: 30 });
  inOneGo(fleet.putStays(1, packStays([{ ...STAY, insideSinceMs: 1_500 }]), 3));
}

describe('a fleet that is reloaded is as one that is loaded, when the snapshot differs in', () => {
  for (const [difference, row] of Object.entries(DIFFERENCES))
    test(difference, () => {
      for (const [from, to] of [
        [ROW, row],
        [row, ROW],
      ] as const) {
        const fleet = loaded(from);
        reload(fleet, to);
        const expected = loaded(to);
        assert.deepEqual(everything(fleet), everything(expected));
        for (const each of [fleet, expected]) bringLate(each);
        assert.deepEqual(everything(fleet), everything(expected), 'of what comes late the same is taken');
      }
    });

  for (const [revision, ofStays] of [
    [3, 5],
    [4, 4],
  ] as const)
    test(`its revision, ${revision} where memory has 3, and stays of revision ${ofStays}`, () => {
      const row = inMotion({ revision });
      const [fleet, expected] = [loaded(ROW), loaded(row)];
      inOneGo(fleet.putStays(1, ROW.stays, ofStays));
      reload(fleet, row);
      for (const each of [fleet, expected]) bringLate(each);
      assert.deepEqual(everything(fleet), everything(expected));
    });

  test('the one of two devices that has an IMEI', () => {
    const other = inFields({ id: 2 });
    const fleet = loaded(other);
    reload(fleet, ROW);
    assert.deepEqual(everything(fleet), everything(loaded(ROW)));
    assert.equal(fleet.deviceCount, 1);
  });
});
