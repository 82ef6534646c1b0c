import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Fleet } from '../../../src/devices/fleet.memory.ts';
import {
  CHOICE_ERRORS,
  CHOICE_PARAMETERS,
  chosenDevices,
  readDeviceChoice,
} from '../../../src/history/fleet/chosenDevices.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf } from '../../support/devices.ts';

function choiceOf(query: Readonly<Record<string, string>>) {
  const read = readDeviceChoice(query);
  assert.ok(read.ok, JSON.stringify(read));
  return read.value;
}

describe('the choice of devices of a query', () => {
  const IMEIS = Array.from({ length: 101 }, (_, n) => imeiOf(n));
  const NAMES = Array.from({ length: 21 }, (_, n) => `group ${n}`);

  const ACCEPTED: readonly Readonly<Record<string, string>>[] = [
    {},
    { group: ' ', after: '' },
    { group: 'north, south' },
    { group: NAMES.slice(1).join(), after: imeiOf(1) },
    { devices: IMEIS.slice(1).join() },
    { devices: `${imeiOf(1)}, ${imeiOf(1)}` },
  ];
  for (const query of ACCEPTED)
    test(`takes ${JSON.stringify(query).slice(0, 60)}`, () => assert.ok(readDeviceChoice(query).ok));

  const REFUSED: readonly (readonly [query: Readonly<Record<string, string>>, message: RegExp])[] = [
    [{ group: NAMES.join() }, /^group must/],
    [{ group: 'north,' }, /^group must/],
    [{ group: ',' }, /^group must/],
    [{ devices: '' }, /^devices must/],
    [{ devices: IMEIS.join() }, /^devices must/],
    [{ devices: `${imeiOf(1)},` }, /^devices must/],
    [{ devices: 'van' }, /^devices must/],
    [{ devices: '1234567890123' }, /^devices must/],
    [{ group: 'north', devices: imeiOf(1) }, /^send either group or devices$/],
    [{ after: 'van' }, /^after must/],
    [{ after: '1234567890123' }, /^after must/],
  ];
  for (const [query, message] of REFUSED)
    test(`refuses ${JSON.stringify(query).slice(0, 60)}, as described`, () => {
      const read = readDeviceChoice(query);
      assert.ok(!read.ok);
      const { error } = JSON.parse(read.error.body as string);
      assert.equal(error.code, 'BAD_REQUEST');
      assert.match(error.message, message);
      const described = CHOICE_ERRORS.map((each) => (typeof each === 'string' ? each : each[1]));
      assert.ok(described.includes(error.message));
      const names = CHOICE_PARAMETERS.map(({ name }) => name);
      assert.ok(Object.keys(query).every((name) => names.includes(name)));
    });
});

describe('chosen devices', () => {
  const GROUPS = ['north', 'south', 'east'];
  const device = fc.record({
    n: fc.nat(400),
    worldId: fc.integer({ min: 1, max: 3 }),
    groups: fc.uniqueArray(fc.constantFrom(...GROUPS)),
    length: fc.integer({ min: 14, max: 17 }),
  });
  interface Sent {
    readonly group?: string;
    readonly devices?: string;
  }
  const query = fc.oneof<fc.Arbitrary<Sent>[]>(
    fc.constant({}),
    fc.record({
      group: fc.uniqueArray(fc.constantFrom(...GROUPS), { minLength: 1 }).map((names) => names.join()),
    }),
    fc.record({
      devices: fc.array(fc.nat(400).map(imeiOf), { minLength: 1, maxLength: 60 }).map((list) => list.join()),
    }),
  );

  test('are those of the worlds of the caller, in the order of IMEIs, page by page as all at once', () => {
    const worldIds = fc.constantFrom<number[][]>([1], [1, 2], [2, 1], [9], [3, 9]);
    fc.assert(
      fc.property(
        fc.uniqueArray(device, { selector: (each) => each.n, maxLength: 300 }),
        worldIds,
        query,
        fc.nat(400),
        fc.integer({ min: 1, max: 90 }),
        (devices, seen, sent: Sent, after, limit) => {
          const fleet = new Fleet();
          const own = devices.map(({ n, length, ...rest }) =>
            fieldsOf({
              id: n + 1,
              imei: imeiOf(n).slice(0, 15).padEnd(length, '7').slice(0, length),
              ...rest,
            }),
          );
          const known = own.filter(({ imei }, n) => own.findIndex((each) => each.imei === imei) === n);
          for (const fields of known) fleet.putDevice(fields);
          const expected = known
            .filter(({ worldId, imei, groups }) => {
              if (!seen.includes(worldId) || imei <= imeiOf(after)) return false;
              if (sent.devices !== undefined) return sent.devices.split(',').includes(imei);
              return (
                sent.group === undefined || groups.some((group) => sent.group?.split(',').includes(group))
              );
            })
            .map(({ imei }) => imei)
            .sort();
          const choice = choiceOf({ ...sent, after: imeiOf(after) });
          const found: string[] = [];
          for (let last = choice.afterImei; ; last = found.at(-1) as string) {
            const page = inOneGo(chosenDevices(fleet, seen, choice, last, limit));
            found.push(...page.map(({ imei }) => imei));
            if (page.length < limit) break;
          }
          assert.deepEqual(found, expected);
        },
      ),
    );
  });

  test('are looked for in steps, so a fleet without a match holds nobody up', () => {
    const fleet = new Fleet();
    for (let id = 1; id <= 20_000; id++) fleet.putDevice(fieldsOf({ id }));
    const steps = chosenDevices(fleet, [1], choiceOf({ group: 'north' }), '0', 10);
    let pauses = 0;
    for (;;) {
      const step = steps.next();
      if (step.done === true) {
        assert.deepEqual(step.value, []);
        break;
      }
      pauses++;
    }
    assert.ok(pauses > 5, `${pauses} pauses`);
  });
});
