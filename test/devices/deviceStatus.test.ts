import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type DeviceStatus, statusOf } from '../../src/devices/deviceJson.ts';
import { DAY_MS } from '../../src/lib/time.ts';

const NOW = Date.UTC(2026, 2, 14, 12);
const MINUTE = 60_000;

describe('status', () => {
  const cases: [name: string, ageMs: number | null, speedKmh: number, expected: DeviceStatus][] = [
    ['no position', null, 0, 'unknown'],
    ['standing now', 0, 0, 'parked'],
    ['creeping', 0, 4.999, 'parked'],
    ['stood 24 h ago', DAY_MS, 0, 'parked'],
    ['stood more than 24 h ago', DAY_MS + 1, 0, 'offline'],
    ['5 km/h now', 0, 5, 'moving'],
    ['drove 10 min ago', 10 * MINUTE, 90, 'moving'],
    ['drove more than 10 min ago', 10 * MINUTE + 1, 90, 'offline'],
    ['drove a day ago', DAY_MS, 90, 'offline'],
    ['a clock ahead, standing', -5 * MINUTE, 0, 'parked'],
    ['a clock ahead, driving', -5 * MINUTE, 50, 'moving'],
  ];
  for (const [name, ageMs, speedKmh, expected] of cases) {
    test(`${name}: ${expected}`, () => {
      const position = ageMs === null ? null : { recordedAtMs: NOW - ageMs, speedKmh };
      assert.equal(statusOf(position, NOW), expected);
    });
  }
});
