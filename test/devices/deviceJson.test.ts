import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Device, LatestPosition } from '../../src/devices/device.ts';
import { deviceJson, latestLocationJson, nearDeviceJson } from '../../src/devices/deviceJson.ts';
import { DeviceJsonCache } from '../../src/devices/devices.routes.ts';
import { deviceView, latestLocationView, nearestView } from '../../src/devices/deviceSchemas.ts';

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

const device: fc.Arbitrary<Device> = fc.record({
  fields: fc.record({
    id: fc.integer({ min: 1, max: 2 ** 40 }),
    imei: fc.stringMatching(/^[0-9]{14,17}$/),
    worldId: fc.constant(1),
    name: fc.option(text),
    plate: fc.option(text),
    model: fc.option(text),
    groups: fc.array(text, { maxLength: 3 }),
    editedAtMs: fc.integer({ min: 0, max: NOW_MS }),
  }),
  position: fc.option(position),
});

describe('the JSON of a polled resource is that of its view:', () => {
  test('of a device', () => {
    fc.assert(
      fc.property(device, (device) => {
        assert.equal(deviceJson(device, NOW_MS), JSON.stringify(deviceView(device, NOW_MS)));
      }),
    );
  });

  test('of an item of nearest', () => {
    fc.assert(
      fc.property(device, number(0, 2e7), (device, distanceM) => {
        const near = { device, distanceM };
        assert.equal(nearDeviceJson(near, NOW_MS), JSON.stringify(nearestView(near, NOW_MS)));
      }),
    );
  });

  test('of a latest location', () => {
    fc.assert(
      fc.property(position, (position) => {
        assert.equal(latestLocationJson(position), JSON.stringify(latestLocationView(position)));
      }),
    );
  });
});

describe('kept JSON', () => {
  test('is never that of another device, of older fields, of an older position or of a past status', () => {
    // Few ids that share two slots, asked for in any order and at any time.
    const id = fc.constantFrom(1, 2, 1 + 2 ** 17, 2 + 2 ** 34);
    const step = fc.tuple(fc.nat(7), id, fc.integer({ min: 0, max: 3 * 86_400_000 }));
    fc.assert(
      fc.property(
        fc.array(device, { minLength: 8, maxLength: 8 }),
        fc.array(step, { maxLength: 30 }),
        (devices, steps) => {
          const texts = new DeviceJsonCache();
          // Memory replaces fields and positions as a whole, never in part.
          const known = new Map<number, { fields: Device['fields']; position: Device['position'] }>();
          for (const [at, id, laterMs] of steps) {
            const { fields, position } = devices[at] as Device;
            const present = known.get(id) ?? { fields: { ...fields, id }, position };
            if (laterMs % 3 === 0) present.position = position;
            if (laterMs % 5 === 0) present.fields = { ...fields, id };
            known.set(id, present);
            const nowMs = NOW_MS + laterMs;
            assert.equal(texts.json(present, nowMs), JSON.stringify(deviceView(present, nowMs)));
            assert.equal(texts.json(present, nowMs), JSON.stringify(deviceView(present, nowMs)));
          }
        },
      ),
    );
  });
});
