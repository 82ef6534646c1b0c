import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placeIn } from '../../src/console/page/address.ts';

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
