import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  decodePositionUpdates,
  encodeChangedStays,
  encodePositionUpdates,
  type PositionUpdate,
} from '../../src/devices/positionUpdates.ts';
import { packStays } from '../../src/devices/stays/packedStays.ts';
import { runs } from '../support/torture.ts';

const double = (min: number, max: number) => fc.double({ min, max, noNaN: true });

const position = fc.record(
  {
    recordedAtMs: fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }),
    lat: double(-90, 90),
    lng: double(-180, 180),
    altitudeM: double(-1e5, 1e5),
    speedKmh: double(0, 1e9),
    odometerKm: fc.option(double(0, 1e8)),
    movedAtMs: fc.maxSafeNat(),
  },
  { noNullPrototype: true },
);
const XID = 815;
const motion = fc.record(
  {
    headingDeg: double(0, 360),
    ignition: fc.constantFrom(null, false, true),
    revision: fc.nat(),
    xid: fc.constant(XID),
  },
  { noNullPrototype: true },
);
const stays = fc
  .uniqueArray(
    fc.record({ areaId: fc.nat({ max: 99 }), insideSinceMs: fc.nat(), confirmedAtMs: fc.option(fc.nat()) }),
    {
      selector: ({ areaId }) => areaId,
      maxLength: 3,
    },
  )
  .map((list) =>
    packStays(list.map((stay) => ({ ...stay, areaId: stay.areaId + 1 })).sort((a, b) => a.areaId - b.areaId)),
  );
const update: fc.Arbitrary<PositionUpdate> = fc.record(
  { deviceId: fc.maxSafeNat(), position, motion, stays: fc.option(stays) },
  { noNullPrototype: true },
);

test('position updates are decoded as they were encoded, to the last bit', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(update, { selector: ({ deviceId }) => deviceId, maxLength: 20 }),
      (updates) => {
        const decoded = decodePositionUpdates(
          encodePositionUpdates(updates),
          encodeChangedStays(updates),
          XID,
        );
        assert.deepEqual([...decoded], updates);
      },
    ),
    { seed: 2, numRuns: runs(50) },
  );
});
