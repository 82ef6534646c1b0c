import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freePart } from '../../../src/console/page/map/freePart.ts';

const rect = (left: number, top: number, right: number, bottom: number) => ({ left, top, right, bottom });

test('a panel beside the map leaves its left part free, below the bar', () => {
  const free = freePart(rect(0, 52, 1440, 900), rect(12, 64, 1040, 132), rect(1052, 64, 1428, 888));
  assert.deepEqual(free, { left: 0, top: 80, right: 388, bottom: 0 });
});

test('a sheet leaves the part between it and the bar free', () => {
  const free = freePart(rect(0, 92, 360, 740), rect(0, 92, 360, 210), rect(0, 450, 360, 740));
  assert.deepEqual(free, { left: 0, top: 118, right: 0, bottom: 290 });
});

test('without anything over it the whole map is free, and where little is left, some of it is', () => {
  const map = rect(0, 0, 300, 200);
  assert.deepEqual(freePart(map, null, null), { left: 0, top: 0, right: 0, bottom: 0 });
  assert.deepEqual(freePart(map, rect(0, 0, 300, 120), rect(0, 90, 300, 200)), {
    left: 0,
    top: 10,
    right: 0,
    bottom: 110,
  });
});
