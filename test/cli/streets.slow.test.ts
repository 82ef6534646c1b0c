import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStreets } from '../../src/cli/simulate/streets.ts';
import { distanceM } from '../../src/geo/wgs84.ts';

const ROME = { lat: 41.9, lng: 12.5 };

test('blocks are 120 to 250 m wide, around the centre', () => {
  const { columnsM, rowsM, lines } = createStreets(7, ROME);
  for (const offsetsM of [columnsM, rowsM]) {
    assert.equal(offsetsM.length, lines);
    for (let line = 1; line < lines; line++) {
      const blockM = (offsetsM[line] ?? 0) - (offsetsM[line - 1] ?? 0);
      assert.ok(blockM >= 120 && blockM <= 250, `${blockM} m`);
    }
    assert.ok(Math.abs((offsetsM[0] ?? 0) + (offsetsM[lines - 1] ?? 0)) < 1e-6);
  }
});

test('metres of the plane are metres on Earth, from the equator to the polar circle and across the antimeridian', () => {
  for (const centre of [ROME, { lat: 0, lng: 0 }, { lat: -66, lng: 179.99 }, { lat: 60, lng: -179.99 }]) {
    const streets = createStreets(7, centre);
    const middle = streets.latLng(0, 0);
    assert.deepEqual(middle, centre);
    for (const [eastM, northM] of [
      [4_000, 0],
      [0, 4_000],
      [-4_000, 0],
      [0, -4_000],
      [3_000, -3_000],
    ] as const) {
      const { lat, lng } = streets.latLng(eastM, northM);
      const reachedM = distanceM(middle.lat, middle.lng, lat, lng);
      assert.ok(Math.abs(reachedM / Math.hypot(eastM, northM) - 1) < 0.002, `${reachedM} m at ${centre.lat}`);
      assert.ok(Math.abs(lng) <= 180);
    }
  }
});

test('the same seed builds the same town, another seed another', () => {
  assert.deepEqual(createStreets(7, ROME).columnsM, createStreets(7, ROME).columnsM);
  assert.notDeepEqual(createStreets(7, ROME).columnsM, createStreets(8, ROME).columnsM);
});
