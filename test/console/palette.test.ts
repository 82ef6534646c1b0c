import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KnownDevice } from '../../src/console/page/fleet.ts';
import { imeisShown } from '../../src/console/page/format.ts';
import type { Area } from '../../src/console/page/types.ts';
import { targetsOf } from '../../src/console/page/views/palette.ts';

const van = { imei: '356938035643809', name: 'Van 12', plate: 'GA 731 KL' } as KnownDevice;
const areas = [
  { id: 4, name: 'Depot' },
  { id: 5, name: 'Map room' },
] as Area[];

test('a search leads to views, areas and the vehicles that were found, in this order, each by its link', () => {
  const addresses = (text: string, devices: readonly KnownDevice[] = []) =>
    targetsOf(text, areas, devices).map(({ address }) => address);
  assert.deepEqual(addresses('MAP'), ['#map', '#area/5']);
  assert.deepEqual(addresses('de', [van]), ['#devices', '#area/4', `#map/${van.imei}`]);
  assert.deepEqual(addresses('nowhere'), []);
  assert.equal(addresses('').length, 7, 'five views and both areas');
});

test('a search offers a few of very many', () => {
  const many = Array.from({ length: 100 }, (_, id) => ({ id, name: `Depot ${id}` }) as Area);
  const targets = targetsOf(
    'depot',
    many,
    Array.from({ length: 100 }, () => van),
  );
  assert.equal(targets.length, 16);
  assert.deepEqual(targets.at(-1), {
    icon: 'devices',
    name: 'Van 12',
    detail: 'GA 731 KL',
    address: `#map/${van.imei}`,
    imei: van.imei,
  });
});

test('a search shows an IMEI once a person has asked for them', () => {
  imeisShown.value = 'shown';
  assert.equal(targetsOf('van', [], [van])[0]?.detail, `GA 731 KL, ${van.imei}`);
  imeisShown.value = '';
  assert.equal(targetsOf('van', [], [van])[0]?.detail, 'GA 731 KL');
});
