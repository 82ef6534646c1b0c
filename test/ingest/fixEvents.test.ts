import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { NO_STAYS } from '../../src/devices/stays/packedStays.ts';
import { NO_STATE } from '../../src/ingest/deviceEvents.ts';
import type { GeofenceEventAt } from '../../src/ingest/evaluateFixes.ts';
import type { BatchPoint, DeviceEventAt } from '../../src/ingest/fix.ts';
import { fixEvents } from '../../src/ingest/storeEvents.sql.ts';
import { fixOf } from '../support/ingest/fixOf.ts';

const START_MS = Date.UTC(2026, 2, 14, 12);
const at = (second: number): number => START_MS + second * 1_000;
const imeiOf = (deviceId: number): string => String(350_000_000_000_000 + deviceId);
const HERE = { lat: 41.9, lng: 12.5 };

const pointOf = (deviceId: number, second: number): BatchPoint => ({
  deviceId,
  fix: fixOf(imeiOf(deviceId), at(second)),
});

const tag = (deviceId: number, second: number, rfid: string): DeviceEventAt => ({
  point: pointOf(deviceId, second),
  occurredAtMs: at(second),
  event: { type: 'rfid', rfid, position: HERE },
});

function visit(
  deviceId: number,
  second: number,
  direction: 'entry' | 'exit',
  areaId: number,
): GeofenceEventAt {
  const facts = {
    worldId: 90 + areaId,
    areaId,
    areaName: `Area ${areaId}`,
    enteredAtMs: at(0),
    dwellSeconds: 5,
    position: HERE,
    occurredAtMs: at(second),
  };
  return {
    point: pointOf(deviceId, second),
    event: direction === 'entry' ? { direction, ...facts } : { direction, staySeconds: second, ...facts },
  };
}

/** Devices 1 to 4: with a name, with a plate alone, with neither, and not in memory. */
function fleet(): Fleet {
  const made = new Fleet();
  const names = [
    { name: 'Van 12', plate: 'XY 999' },
    { name: null, plate: 'AB 123' },
    { name: null, plate: null },
  ];
  names.forEach((fields, n) => {
    const id = n + 1;
    made.putDevice({ id, imei: imeiOf(id), worldId: 1, model: null, groups: [], editedAtMs: 0, ...fields });
  });
  return made;
}

const IDS = [1, 2, 3, 4];
const LOCKED = new Map(IDS.map((id) => [id, { worldId: 10 + id, state: NO_STATE, stays: NO_STAYS }]));
const events = (ofDevices: readonly DeviceEventAt[], ofGeofences: readonly GeofenceEventAt[]) => [
  ...fixEvents(fleet(), ofDevices, ofGeofences, LOCKED),
];

describe('the events of a batch, as they are stored', () => {
  test('are sorted by device, then time; for one point those of the device itself come first, then exits, then entries', () => {
    const stored = events(
      [tag(1, 10, 'a'), tag(1, 20, 'b'), tag(1, 20, 'c'), tag(2, 5, 'd')],
      [
        visit(1, 5, 'entry', 9),
        visit(1, 20, 'exit', 9),
        visit(1, 20, 'entry', 3),
        visit(1, 20, 'entry', 4),
        visit(2, 5, 'entry', 1),
      ],
    );
    assert.deepEqual(
      stored.map((event) => [
        event.deviceId,
        (event.occurredAtMs - START_MS) / 1_000,
        event.data['rfid'] ?? `${event.area?.direction} ${event.area?.id}`,
      ]),
      [
        [1, 5, 'entry 9'],
        [1, 10, 'a'],
        [1, 20, 'b'],
        [1, 20, 'c'],
        [1, 20, 'exit 9'],
        [1, 20, 'entry 3'],
        [1, 20, 'entry 4'],
        [2, 5, 'd'],
        [2, 5, 'entry 1'],
      ],
    );
  });

  test('belong to the world of the locked device; those of an area to the world that the engine names', () => {
    assert.deepEqual(
      events([tag(1, 1, 'a'), tag(3, 1, 'b')], [visit(3, 1, 'entry', 7)]).map(({ worldId }) => worldId),
      [11, 13, 97],
    );
  });

  test('name the device by its name, else its plate, else its IMEI', () => {
    assert.deepEqual(
      events(
        IDS.map((id) => tag(id, 1, 'T')),
        IDS.map((id) => visit(id, 1, 'exit', 7)),
      ).map(({ message }) => message),
      ['Van 12', 'AB 123', imeiOf(3), imeiOf(4)].flatMap((label) => [
        `${label} read the tag T`,
        `${label} left Area 7`,
      ]),
    );
  });
});
