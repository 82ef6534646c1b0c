import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StreamCounts } from '../../src/feeds/waitRoom.ts';

test('ten streams of a key are open at a time, five thousand of an account, and others go on', () => {
  const counts = new StreamCounts();
  const keyOf = (n: number) => ({ id: Math.floor(n / 10), accountId: 1 });
  for (let n = 0; n < 5_000; n++) {
    assert.ok(counts.hasRoom(keyOf(n)), `${n} are open`);
    counts.add(keyOf(n));
    if (n % 10 === 9 && n < 4_999) {
      assert.ok(!counts.hasRoom(keyOf(n)), 'the key is full');
      assert.ok(counts.hasRoom(keyOf(n + 1)), 'the account is not');
    }
  }
  assert.ok(!counts.hasRoom({ id: 9_999, accountId: 1 }), 'the account is full');
  assert.ok(counts.hasRoom({ id: 10_000, accountId: 2 }));
  counts.remove({ keyId: 0, accountId: 1 });
  assert.ok(counts.hasRoom({ id: 0, accountId: 1 }));
});
