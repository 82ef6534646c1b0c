import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { derivedSpeedKmh } from '../../src/ingest/deviceEvents.ts';

const AT = Date.UTC(2026, 2, 14, 12);
const MINUTE = 60_000;

describe('derived speed', () => {
  // A degree of latitude at the equator is 110 574 m, a degree of longitude 111 319 m (WGS84).
  const cases: [
    name: string,
    fromMs: number | null,
    from: [number, number],
    to: [number, number],
    expected: number,
  ][] = [
    ['north in a minute', AT - MINUTE, [0, 10], [0.01, 10], 66.345],
    ['east in a minute', AT - MINUTE, [0, 10], [0, 10.01], 66.792],
    ['over the antimeridian', AT - MINUTE, [0, 179.995], [0, -179.995], 66.792],
    ['standing', AT - MINUTE, [41.9, 12.5], [41.9, 12.5], 0],
    ['exactly 10 min', AT - 10 * MINUTE, [0, 10], [0.1, 10], 66.345],
    ['over 10 min', AT - 10 * MINUTE - 1, [0, 10], [0.1, 10], 0],
    ['the same instant', AT, [0, 10], [0.1, 10], 0],
    ['a later point', AT + MINUTE, [0, 10], [0.1, 10], 0],
    ['no previous point', null, [0, 0], [0.1, 10], 0],
  ];
  for (const [name, fromMs, [latA, lngA], [lat, lng], expected] of cases) {
    test(`${name}: ${expected} km/h`, () => {
      const speedKmh = derivedSpeedKmh(
        { recordedAtMs: fromMs, lat: latA, lng: lngA },
        { recordedAtMs: AT, lat, lng },
      );
      assert.ok(Math.abs(speedKmh - expected) <= 0.002, String(speedKmh));
    });
  }
});
