import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addRecord } from '../../bench/record.ts';

describe('the record of results', () => {
  test('begins with a head, once, and shows the newest first', () => {
    const one = addRecord(null, '## 1\n\nfirst');
    const three = addRecord(addRecord(one, '## 2\n\nsecond'), '## 3\n\nthird\n');
    assert.equal(three.match(/^# /gm)?.length, 1);
    assert.ok(three.startsWith('# '));
    assert.deepEqual(three.match(/^## \d/gm), ['## 3', '## 2', '## 1']);
    assert.ok(three.endsWith('first\n'));
  });

  test('loses nothing of a text that somebody else has begun', () => {
    assert.match(addRecord('by hand\n', '## 1'), /## 1\n\nby hand\n$/);
  });
});
