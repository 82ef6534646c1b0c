import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { signal } from '@preact/signals';
import fc from 'fast-check';
import { type Filters, filtersIn, hashOf, STATUSES } from '../../src/console/page/filters.ts';
import {
  changeOf,
  type DeviceChange,
  Fleet,
  type KnownDevice,
  knownDevice,
  nameOf,
  statusAt,
} from '../../src/console/page/fleet.ts';
import { ShownFleet } from '../../src/console/page/shownFleet.ts';
import type { ChangedDevice } from '../../src/console/page/types.ts';
import { statusOf } from '../../src/devices/device.ts';

const text = fc.constantFrom(null, 'a', 'b');
const device: fc.Arbitrary<ChangedDevice> = fc.record({
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
  groups: fc.constantFrom([], ['north'], ['north', 'cold'], ['cold']),
});
const WITHOUT_POSITION = {
  plate: null,
  status: 'unknown',
  location: null,
  ignition: null,
  groups: [],
} as const;
const change: fc.Arbitrary<DeviceChange> = fc.oneof(
  { weight: 4, arbitrary: device },
  device.map(({ imei }) => ({ imei, removed: true as const })),
);

/** What is to be known of a device, by what the stream said last. */
function expected({ location, ...rest }: ChangedDevice) {
  if (location === null) return { ...rest, location };
  const { latitude, longitude, speed_kmh: speedKmh, recorded_at, heading } = location;
  return {
    ...rest,
    location: { latitude, longitude, speedKmh, recordedAtMs: Date.parse(recorded_at), heading },
  };
}

describe('the fleet that the console knows', () => {
  test('is in the order in which people count', () => {
    const fleet = new Fleet();
    const named = ['Van 12', 'van 2', 'Van 2b', 'Bus 100'].map((name, n) => ({
      ...WITHOUT_POSITION,
      imei: `35000000000000${n}`,
      name,
    }));
    fleet.apply(named);
    assert.deepEqual(fleet.sorted().map(nameOf), ['Bus 100', 'van 2', 'Van 2b', 'Van 12']);
  });

  test('is what the stream said last of each device, and listeners hear of every change', () => {
    fc.assert(
      fc.property(fc.array(fc.array(change, { maxLength: 5 }), { maxLength: 8 }), (rounds) => {
        const fleet = new Fleet();
        const heard: string[] = [];
        fleet.listen((changed) => heard.push(...changed.map(({ imei }) => imei)));
        const last = new Map<string, ChangedDevice>();
        for (const round of rounds) {
          fleet.apply(round);
          for (const one of round) {
            if ('removed' in one) last.delete(one.imei);
            else last.set(one.imei, one);
          }
          assert.equal(fleet.size, last.size);
          const named = [...fleet.values()].map(({ imei, name, plate }) => [name ?? plate ?? imei, imei]);
          assert.deepEqual(
            fleet.sorted().map(({ imei }) => imei),
            named.toSorted().map(([, imei]) => imei),
          );
          for (const one of last.values()) assert.deepEqual(shownOf(fleet.get(one.imei)), expected(one));
          for (const name of [...last.values()].flatMap(({ groups }) => groups))
            assert.ok(fleet.groupNames().includes(name));
        }
        assert.deepEqual(
          heard,
          rounds.flat().map(({ imei }) => imei),
        );
      }),
    );
  });

  test('a device that is changed in place has another version, so that a list draws it again', async () => {
    const steps = fc.array(fc.oneof(fc.array(device, { maxLength: 3 }), fc.date({ noInvalidDate: true })));
    await fc.assert(
      fc.asyncProperty(steps, async (asked) => {
        const fleet = new Fleet();
        for (const step of asked) {
          const before = [...fleet.values()].map((one) => ({
            one,
            version: one.version,
            json: JSON.stringify(shownOf(one)),
          }));
          if (Array.isArray(step)) fleet.apply(step);
          else await fleet.age(step.getTime(), () => null);
          for (const { one, version, json } of before)
            assert.ok(one.version !== version || JSON.stringify(shownOf(one)) === json);
        }
      }),
    );
  });

  test('has the status that the API gives at every age', () => {
    const ages = fc.oneof(
      fc.integer({ min: -1_000, max: 3 * 86_400_000 }),
      fc.constantFrom(600_000, 86_400_000),
    );
    fc.assert(
      fc.property(device, ages, fc.constantFrom(0, 4.9, 5, 50), (one, ageMs, speedKmh) => {
        const { location } = knownDevice(one);
        const placed = location === null ? null : { ...location, speedKmh };
        const nowMs = (placed?.recordedAtMs ?? 0) + ageMs;
        assert.equal(statusAt(placed, nowMs), statusOf(placed, nowMs));
      }),
    );
  });

  test('ages without the stream, and listeners hear of those whose status changes and of no others', async () => {
    const fleet = new Fleet();
    const at = (recordedAtMs: number) => ({
      ...{ latitude: 1, longitude: 2, speed_kmh: 50, heading: 0 },
      recorded_at: new Date(recordedAtMs).toISOString(),
    });
    const base = { name: null, plate: null, ignition: null, status: 'moving' as const, groups: [] };
    const devices = Array.from({ length: 1_200 }, (_, n) => ({
      ...base,
      imei: String(n),
      location: at(n % 3 === 0 ? 0 : 600_000),
    }));
    fleet.apply(devices);
    const heard: string[] = [];
    fleet.listen((changed) => heard.push(...changed.map(({ imei }) => imei)));
    heard.length = 0;
    let pauses = 0;
    await fleet.age(600_001, () => {
      pauses++;
      return null;
    });
    const old = devices.filter((_, n) => n % 3 === 0).map(({ imei }) => imei);
    assert.deepEqual(heard, old);
    assert.equal(fleet.get('0')?.status, 'offline');
    assert.equal(fleet.get('1')?.status, 'moving');
    assert.ok(pauses > 1);
    await fleet.age(600_001, () => null);
    assert.deepEqual(heard, old);
  });

  test('is shown as far as it passes the filters, whatever comes first, and counted by status as far as it passes the others', () => {
    const chosen: fc.Arbitrary<Filters> = fc.record({
      statuses: fc.subarray([...STATUSES]),
      group: fc.constantFrom('', 'north', 'cold', 'south , cold', ','),
      text: fc.constantFrom('', 'A', '2', 'x'),
    });
    const step = fc.oneof(fc.array(change, { maxLength: 5 }), chosen);
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const fleet = new Fleet();
        const filters = signal(filtersIn(''));
        const shown = new ShownFleet(fleet, filters);
        const heard = new Set<string>();
        shown.listen((changed) => {
          for (const one of changed) heard['removed' in one ? 'delete' : 'add'](one.imei);
        });
        for (const next of steps) {
          if (Array.isArray(next)) fleet.apply(next);
          else filters.value = next;
        }
        const { statuses, group, text } = filters.value;
        const groups = group.split(',').flatMap((name) => name.trim() || []);
        const fitting = [...fleet.values()].filter(
          (one) =>
            (groups.length === 0 || groups.some((name) => one.groups.includes(name))) &&
            [one.name, one.plate, one.imei].some((field) => field?.includes(text.toLowerCase())),
        );
        const passing = fitting.filter(({ status }) => statuses.length === 0 || statuses.includes(status));
        assert.deepEqual([...shown.values()], passing);
        assert.deepEqual([...heard].sort(), passing.map(({ imei }) => imei).sort());
        fleet.round.value++;
        for (const status of STATUSES)
          assert.equal(shown.counts.value[status], fitting.filter((one) => one.status === status).length);
      }),
    );
  });

  test('keeps its filters in the address of the page', () => {
    const text = fc.string({ unit: 'grapheme' });
    const any: fc.Arbitrary<Filters> = fc
      .tuple(fc.subarray([...STATUSES]), text, text)
      .map(([statuses, group, text]) => ({ statuses, group, text }));
    fc.assert(fc.property(any, (one) => assert.deepEqual(filtersIn(`#${hashOf('map', one)}`), one)));
    assert.equal(hashOf('map', filtersIn('#map?status=flying')), 'map');
  });

  test('is told to another tab as the stream told it', () => {
    fc.assert(fc.property(device, (one) => assert.equal(inOrder(changeOf(knownDevice(one))), inOrder(one))));
  });
});

/** All but its version. */
function shownOf(device: KnownDevice | undefined) {
  if (device === undefined) return undefined;
  const { version: _, ...shown } = device;
  return shown;
}

/** As JSON with its fields in one order. */
function inOrder({ imei, name, plate, status, ignition, groups, location }: ChangedDevice): string {
  const { latitude, longitude, speed_kmh, recorded_at, heading } = location ?? {};
  return JSON.stringify([
    imei,
    name,
    plate,
    status,
    ignition,
    groups,
    latitude,
    longitude,
    speed_kmh,
    recorded_at,
    heading,
  ]);
}
