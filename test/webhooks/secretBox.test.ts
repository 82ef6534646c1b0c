import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { newSecret, open, seal } from '../../src/webhooks/delivery.ts';

const KEY = createSecretKey(Buffer.alloc(32, 7));

describe('a signing secret', () => {
  test('comes back from its box, which is another each time and does not show it', () => {
    const secret = newSecret();
    const boxes = [seal(KEY, secret), seal(KEY, secret)];
    assert.notDeepEqual(boxes[0], boxes[1]);
    for (const box of boxes) {
      assert.equal(open(KEY, box), secret);
      assert.equal(box.length, 12 + 16 + secret.length);
      assert.ok(!box.includes(secret.slice(0, 10)));
    }
  });

  test('does not come back with another key, nor from a box of which any byte was changed or lost', () => {
    const box = seal(KEY, newSecret());
    assert.equal(open(createSecretKey(randomBytes(32)), box), null);
    for (let i = 0; i < box.length; i++) {
      const changed = Buffer.from(box);
      changed[i] = (changed[i] ?? 0) ^ 1;
      assert.equal(open(KEY, changed), null);
      assert.equal(open(KEY, box.subarray(0, i)), null);
    }
  });
});
