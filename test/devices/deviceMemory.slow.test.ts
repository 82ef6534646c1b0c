import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectGarbage } from '../../bench/feeds/changes.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { NO_PACKED_STAYS } from '../../src/devices/stays/packedStays.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf, passingDevice, positionAt } from '../support/devices.ts';
import { seededRandom } from '../support/seededRandom.ts';

const DEVICES = 50_000;
const MOTION = { headingDeg: 90, ignition: true, revision: 7, xid: 1_000 };

function usedBytes(): number {
  // What a first collection frees of large arrays counts until the next.
  for (let n = 0; n < 2; n++) collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test('a device takes at most 400 bytes, with its names and everything by which it is found and followed', () => {
  const random = seededRandom(9);
  const before = usedBytes();
  const fleet = new Fleet();
  for (let id = 1; id <= DEVICES; id++) {
    const name = {
      name: `Vehicle ${id}`,
      plate: `RM ${100_000 + id}`,
      model: 'Panel van',
      groups: ['deliveries'],
    };
    const position = positionAt(random() * 10 + 36, random() * 12 + 6, 1_700_000_000_000);
    const row = { fields: fieldsOf({ id, ...name }), editedXid: 900, position, motion: MOTION };
    fleet.load(passingDevice({ ...row, stays: NO_PACKED_STAYS }));
  }
  inOneGo(fleet.index());
  const loaded = (usedBytes() - before) / DEVICES;
  assert.ok(loaded <= 400, `${loaded} bytes for a device`);
  // What changes takes the room of what was before.
  for (let round = 1; round <= 2; round++) {
    for (let id = 1; id <= DEVICES; id += 7) {
      const position = positionAt(random() * 10 + 36, random() * 12 + 6, 1_700_000_000_000 + round);
      fleet.move(id, position, { ...MOTION, revision: 7 + round, xid: 1_000 + round });
      fleet.putDevice(
        fieldsOf({ id, name: `Round ${round} ${id}`, plate: `RM ${id}`, editedAtMs: round }),
        1_000 + round,
      );
    }
  }
  const changed = (usedBytes() - before) / DEVICES;
  assert.ok(changed <= 450, `${changed} bytes for a device after changes`);
  assert.equal(fleet.anyDevice(imeiOf(8))?.fields.name, 'Round 2 8');
});
