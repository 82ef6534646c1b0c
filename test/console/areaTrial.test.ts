import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dwellsIn } from '../../src/console/page/views/areas/areaTrial.ts';

test('minimum stays to be tried are whole seconds of a day, nine at most, beside the present one', () => {
  assert.deepEqual(dwellsIn('300, 60 0,60', 90), [0, 60, 90, 300]);
  assert.deepEqual(dwellsIn('', 5), [5]);
  assert.deepEqual(dwellsIn('86400', 1.5), [86_400]);
  assert.equal(dwellsIn('1 2 3 4 5 6 7 8 9', 10)?.length, 10);
  for (const text of ['1 2 3 4 5 6 7 8 9 10', '1.5', '-1', 'x', '86401'])
    assert.equal(dwellsIn(text, 0), null);
});
