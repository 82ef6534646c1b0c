import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Device } from '../../src/devices/device.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import type { Changed } from '../../src/devices/worldChanges.memory.ts';
import { ItemTexts, pageBytes } from '../../src/feeds/pages.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf } from '../support/devices.ts';
import { anyCharacter } from '../support/http/anyCharacter.ts';

const NOW_MS = 1_700_000_000_000;

/** A device with this name; without one it has left. */
function item(fleet: Fleet, id: number, name: string | null): Changed {
  const place = { xid: 1, id, movedXid: 1, editedXid: 0 };
  const imei = imeiOf(id);
  if (name === null) return { ...place, device: null, imei };
  fleet.putDevice(fieldsOf({ id, name }));
  return { ...place, device: fleet.anyDevice(imei) as Device, headingDeg: 0, ignition: null };
}

test('a page of changes has the bytes of its items and its meta, whatever characters are in them', () => {
  const names = fc.array(fc.option(fc.string({ unit: anyCharacter, maxLength: 20 })), { maxLength: 200 });
  fc.assert(
    fc.property(names, (names) => {
      const texts = new ItemTexts();
      const textOf = (each: Changed) => texts.device(each, NOW_MS);
      const fleet = new Fleet();
      const items = names.map((name, n) => item(fleet, n, name));
      const joined = items.map(textOf).join(',');
      const end = { cursor: 'x', hasMore: names.length > 3 };
      const page = inOneGo(pageBytes(items, textOf, end)).toString();
      assert.equal(page, `{"data":[${joined}],"meta":{"cursor":"x","has_more":${end.hasMore}}}`);
      const { data } = JSON.parse(page) as { data: { name?: string }[] };
      assert.deepEqual(
        data.map(({ name }) => name ?? null),
        names,
      );
    }),
    { seed: 26 },
  );
});
