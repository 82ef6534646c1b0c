import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Fleet } from '../../src/console/fleet.ts';
import type { ChangedDevice, Device } from '../../src/console/types.ts';

const text = fc.constantFrom(null, 'a', 'b');
const device: fc.Arbitrary<Device> = fc.record({
  imei: fc.constantFrom('1', '2', '3'),
  name: text,
  plate: text,
  status: fc.constantFrom('moving', 'parked', 'offline', 'unknown'),
  location: fc.option(
    fc.record({
      latitude: fc.double({ min: -90, max: 90, noNaN: true }),
      longitude: fc.integer({ min: -180, max: 180 }),
      speed_kmh: fc.nat(200),
      recorded_at: fc
        .date({ min: new Date(0), max: new Date('2030'), noInvalidDate: true })
        .map((at) => at.toISOString()),
      heading: fc.nat(359),
    }),
  ),
  ignition: fc.constantFrom(null, true, false),
});
const change: fc.Arbitrary<ChangedDevice> = fc.oneof(
  { weight: 4, arbitrary: device },
  device.map(({ imei }) => ({ imei, removed: true as const })),
);

/** What is to be known of a device, by what the stream said last. */
function expected({ location, ...rest }: Device) {
  if (location === null) return { ...rest, location };
  const { latitude, longitude, speed_kmh: speedKmh, recorded_at, heading } = location;
  return {
    ...rest,
    location: { latitude, longitude, speedKmh, recordedAtMs: Date.parse(recorded_at), heading },
  };
}

describe('the fleet that the console knows', () => {
  test('is what the stream said last of each device, and listeners hear of every change', () => {
    fc.assert(
      fc.property(fc.array(fc.array(change, { maxLength: 5 }), { maxLength: 8 }), (rounds) => {
        const fleet = new Fleet();
        const heard: string[] = [];
        fleet.listen((changed) => heard.push(...changed.map(({ imei }) => imei)));
        const last = new Map<string, Device>();
        for (const round of rounds) {
          fleet.apply(round);
          for (const one of round) {
            if ('removed' in one) last.delete(one.imei);
            else last.set(one.imei, one);
          }
          assert.equal(fleet.size, last.size);
          for (const one of last.values()) assert.deepEqual(fleet.get(one.imei), expected(one));
        }
        assert.deepEqual(
          heard,
          rounds.flat().map(({ imei }) => imei),
        );
      }),
    );
  });
});
