import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placeIn, spanIn } from '../../src/console/page/address.ts';

test('the address of the console names a view and what is chosen in it; what it cannot be is left out', () => {
  const places: readonly [string, string, (string | number)?][] = [
    ['', 'Map'],
    ['#', 'Map'],
    ['#map', 'Map'],
    ['#map/352093081234501', 'Map', '352093081234501'],
    ['#map/352093081234501?status=moving', 'Map', '352093081234501'],
    ['#map/352093081234501/2026-11-25', 'Map', '352093081234501'],
    ['#map/van%2012', 'Map'],
    ['#devices/352093081234501', 'Devices'],
    ['#areas?q=a/b', 'Areas'],
    ['#area/12', 'Areas', 12],
    ['#area/', 'Map'],
    ['#area/1e3', 'Map'],
    ['#event/9007199254740993', 'Map'],
    ['#event/7', 'Events', 7],
    ['#settings', 'Settings'],
    ['#constructor', 'Map'],
    ['#<script>', 'Map'],
  ];
  for (const [hash, view, chosen = null] of places) {
    const place = placeIn(hash);
    assert.equal(place.day, hash.endsWith('/2026-11-25') ? '2026-11-25' : null);
    assert.deepEqual([place.view, place.imei ?? place.areaId ?? place.eventId], [view, chosen], hash);
  }
});

test('an address names a second vehicle beside a day alone, and a time by both of its ends', () => {
  const day = '#map/352093081234501/2026-11-25';
  for (const [hash, other = null] of [
    [day],
    [`${day}/356938035643817`, '356938035643817'],
    [`${day}/352093081234501`],
    [`${day}/bus`],
    ['#map/352093081234501//356938035643817'],
  ] as const)
    assert.equal(placeIn(hash).other, other, hash);
  const [from, to] = ['2026-11-24T14:00:00.000Z', '2026-11-24T16:00:00.000Z'];
  const span = { fromMs: Date.parse(from), toMs: Date.parse(to) };
  assert.deepEqual(spanIn(`#area/12?from=${from}&to=${to}&q=van`), span);
  for (const query of ['', `?from=${from}`, `?from=${from}&to=4`])
    assert.equal(spanIn(`#area/12${query}`), null);
});
