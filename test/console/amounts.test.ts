import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counted, duration } from '../../src/console/page/parts.ts';
import { formatDuration } from '../../src/lib/time.ts';

test('the console writes lengths of time as the API does', () => {
  for (const seconds of [
    0, 0.5, 1, 59.999, 60, 61, 270, 3_599.7, 3_600, 5_400, 129_600, 172_799, 172_800, 2e6,
  ]) {
    assert.equal(duration(seconds), formatDuration(seconds * 1_000));
  }
});

test('one of something is not many', () => {
  assert.deepEqual(
    [counted(0, 'point'), counted(1, 'point'), counted(2, 'entry', 'entries')],
    ['0 points', '1 point', '2 entries'],
  );
});
