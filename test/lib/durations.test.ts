import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DAY_MS, formatDuration, HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts';

test('a length of time is written as people write it', () => {
  const written: readonly (readonly [ms: number, text: string])[] = [
    [0, '0 s'],
    [1, '0.001 s'],
    [1_000, '1 s'],
    [42_500, '42.5 s'],
    [MINUTE_MS - 1, '59.999 s'],
    [MINUTE_MS, '1 min'],
    [270_000, '4 min 30 s'],
    [HOUR_MS - 1, '1 h'],
    [HOUR_MS, '1 h'],
    [90 * MINUTE_MS, '1 h 30 min'],
    [36 * HOUR_MS, '36 h'],
    [2 * DAY_MS - 1, '2 days'],
    [2 * DAY_MS, '2 days'],
    [74 * HOUR_MS, '3 days 2 h'],
    [31 * DAY_MS, '31 days'],
  ];
  for (const [ms, text] of written) assert.equal(formatDuration(ms), text, `${ms} ms`);
});
