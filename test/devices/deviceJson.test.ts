import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  changedDeviceJson,
  Device,
  type DeviceFields,
  type DeviceStatus,
  deviceJson,
  deviceNamesJson,
  type LatestPosition,
  latestLocationJson,
  NO_MOTION,
  nearDeviceJson,
  statusOf,
} from '../../src/devices/device.ts';
import { DeviceTexts } from '../../src/devices/deviceTexts.memory.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { NO_PACKED_STAYS } from '../../src/devices/stays/packedStays.ts';
import { DAY_MS, formatIso, MINUTE_MS } from '../../src/lib/time.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { imeiOf, passingDevice } from '../support/devices.ts';

const NOW_MS = Date.UTC(2026, 10, 20);
const number = (min: number, max: number) => fc.double({ min, max, noNaN: true });
/** All that Postgres can hold as text, with what needs escapes often. */
const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom('"', '\\', '\n', '\u007f', 'é', '\u2028', '😀', 'a'),
    fc.string({ minLength: 1, maxLength: 1 }),
  ),
  maxLength: 8,
});

const position: fc.Arbitrary<LatestPosition> = fc.record({
  recordedAtMs: fc.integer({ min: NOW_MS - 2 * 86_400_000, max: NOW_MS + 600_000 }),
  lat: number(-90, 90),
  lng: number(-180, 180),
  altitudeM: number(-1e5, 1e5),
  speedKmh: fc.oneof(number(0, 1e4), fc.constantFrom(0, 4.999, 5)),
  odometerKm: fc.option(number(0, 1e9)),
  movedAtMs: fc.integer({ min: 0, max: NOW_MS }),
});

const fields: fc.Arbitrary<DeviceFields> = fc.record({
  id: fc.integer({ min: 1, max: 2 ** 40 }),
  imei: fc.stringMatching(/^[0-9]{14,17}$/),
  worldId: fc.constant(1),
  name: fc.option(text),
  plate: fc.option(text),
  model: fc.option(text),
  groups: fc.array(text, { maxLength: 3 }),
  editedAtMs: fc.integer({ min: 0, max: NOW_MS }),
});

const device = fc.tuple(fields, fc.option(position)).map(([fields, position]) => Device.of(fields, position));

/** The same fields for JSON.stringify. */
function shown({ fields, position }: Device, nowMs = NOW_MS) {
  const { imei, name, plate, model, groups, editedAtMs } = fields;
  const location = position && {
    latitude: position.lat,
    longitude: position.lng,
    speed_kmh: position.speedKmh,
    recorded_at: formatIso(position.recordedAtMs),
  };
  return {
    names: { id: imei, imei, name, plate },
    more: { device_model: model, odometer_km: position?.odometerKm ?? null },
    status: statusOf(position, nowMs),
    groups,
    location,
    updated_at: formatIso(Math.max(editedAtMs, position?.movedAtMs ?? 0)),
  };
}

function deviceText(device: Device, nowMs = NOW_MS): string {
  const { names, more, ...rest } = shown(device, nowMs);
  return JSON.stringify({ ...names, ...more, ...rest });
}

test('the JSON of devices is what JSON.stringify makes of their fields, whatever texts they have', () => {
  fc.assert(
    fc.property(device, number(0, 2e7), fc.option(fc.boolean()), (device, value, ignition) => {
      const { names, more, location, status, ...rest } = shown(device);
      const { position } = device;
      assert.equal(deviceJson(device, NOW_MS), deviceText(device));
      assert.equal(deviceNamesJson(device, NOW_MS), JSON.stringify({ ...names, status }));
      assert.equal(
        nearDeviceJson({ device, distanceM: value }, NOW_MS),
        JSON.stringify({ ...names, status, location, distance_km: value / 1000 }),
      );
      const { groups, updated_at } = rest;
      const changed = location && { ...location, heading: value, altitude_m: position?.altitudeM };
      assert.equal(
        changedDeviceJson(device, NOW_MS, value, ignition),
        JSON.stringify({ ...names, ...more, status, groups, location: changed, updated_at, ignition }),
      );
      if (position === null || location === null) return;
      const { latitude, longitude, speed_kmh, recorded_at } = location;
      assert.equal(
        latestLocationJson(position),
        JSON.stringify({ latitude, longitude, altitude_m: position.altitudeM, speed_kmh, recorded_at }),
      );
    }),
  );
});

test('a device is what was put or loaded into memory, whatever texts it has', () => {
  const anyTexts = fc.tuple(fields, fc.option(fc.string({ minLength: 300, maxLength: 600 })));
  fc.assert(
    fc.property(anyTexts, fc.option(position), ([of, long], position) => {
      const fields = { ...of, name: long ?? of.name };
      const put = new Fleet();
      put.putDevice(fields);
      if (position !== null) put.move(fields.id, position);
      const loaded = new Fleet();
      const row = { fields, editedXid: 0, position, motion: NO_MOTION, stays: NO_PACKED_STAYS };
      loaded.load(passingDevice(row));
      inOneGo(loaded.index());
      for (const fleet of [put, loaded]) {
        const found = fleet.device([1], fields.imei);
        assert.deepEqual(found?.fields, fields);
        assert.deepEqual(found?.position, position && { ...position });
      }
    }),
  );
});

test('kept JSON is never that of another device, of older fields, of an older position or of a past status', () => {
  // Devices that come, change and go, in two fleets one after the other, of which rows and slots are used again.
  const id = fc.constantFrom(1, 2, 3, 4);
  const change = fc.constantFrom('edit', 'move', 'delete', 'nothing', 'other fleet');
  const step = fc.tuple(change, id, fc.nat(7), fc.integer({ min: 0, max: 3 * 86_400_000 }), fc.boolean());
  const states = fc.array(fc.tuple(fields, position), { minLength: 8, maxLength: 8 });
  fc.assert(
    fc.property(states, fc.array(step, { maxLength: 40 }), (states, steps) => {
      const texts = new DeviceTexts(deviceJson, 2);
      let fleet = new Fleet();
      let known = new Map<number, { fields: DeviceFields; position: LatestPosition | null }>();
      let recordedAtMs = NOW_MS;
      for (const [kind, id, at, laterMs, isList] of steps) {
        const [own, place] = states[at] as [DeviceFields, LatestPosition];
        const fields = { ...own, id, imei: imeiOf(id), editedAtMs: ++recordedAtMs };
        const position = { ...place, recordedAtMs };
        const present = known.get(id);
        if (kind === 'edit' || (kind === 'move' && present === undefined)) {
          fleet.putDevice(fields);
          known.set(id, { fields, position: present?.position ?? null });
        } else if (kind === 'move') {
          fleet.move(id, position);
          known.set(id, { fields: present?.fields as DeviceFields, position });
        } else if (kind === 'delete') {
          fleet.putRemoval(1, { deviceId: id, imei: imeiOf(id), xid: 1, atMs: 0 }, true);
          known.delete(id);
        } else if (kind === 'other fleet') {
          fleet = new Fleet();
          known = new Map();
        }
        const nowMs = NOW_MS + laterMs;
        const devices = [...known.keys()].map((id) => fleet.device([1], imeiOf(id)) as Device);
        const expected = [...known.values()].map(({ fields, position }) =>
          deviceText(Device.of(fields, position), nowMs),
        );
        if (isList) assert.equal(texts.list(devices, nowMs, '[', ']').toString(), `[${expected.join(',')}]`);
        else
          assert.deepEqual(
            devices.map((device) => texts.text(device, nowMs)),
            expected,
          );
      }
    }),
  );
});

describe('status', () => {
  const cases: [name: string, ageMs: number | null, speedKmh: number, expected: DeviceStatus][] = [
    ['no position', null, 0, 'unknown'],
    ['standing now', 0, 0, 'parked'],
    ['creeping', 0, 4.999, 'parked'],
    ['stood 24 h ago', DAY_MS, 0, 'parked'],
    ['stood more than 24 h ago', DAY_MS + 1, 0, 'offline'],
    ['5 km/h now', 0, 5, 'moving'],
    ['drove 10 min ago', 10 * MINUTE_MS, 90, 'moving'],
    ['drove more than 10 min ago', 10 * MINUTE_MS + 1, 90, 'offline'],
    ['drove a day ago', DAY_MS, 90, 'offline'],
    ['a clock ahead, standing', -5 * MINUTE_MS, 0, 'parked'],
    ['a clock ahead, driving', -5 * MINUTE_MS, 50, 'moving'],
  ];
  for (const [name, ageMs, speedKmh, expected] of cases) {
    test(`${name}: ${expected}`, () => {
      const position = ageMs === null ? null : { recordedAtMs: NOW_MS - ageMs, speedKmh };
      assert.equal(statusOf(position, NOW_MS), expected);
    });
  }
});
