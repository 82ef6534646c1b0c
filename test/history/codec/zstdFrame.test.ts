import assert from 'node:assert/strict';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { zstdCompress } from 'node:zlib';
import { contentBytesOf } from '../../../src/history/codec/packedBlob.ts';

/** Around the sizes at which the header takes one, two and four bytes for it. */
for (const size of [0, 1, 200, 255, 256, 257, 65_791, 65_792, 300_000]) {
  test(`the header of a frame of ${size} bytes says so`, async () => {
    const content = new Uint8Array(size).map((_, n) => n % 251);
    const frame = await promisify(zstdCompress)(content, { pledgedSrcSize: size });
    assert.equal(contentBytesOf(frame), size);
  });
}

test('a frame whose header does not say how long it is has no known length', () => {
  // A window descriptor, and no size.
  assert.equal(contentBytesOf(Buffer.from('28b52ffd0058010000', 'hex')), null);
  assert.equal(contentBytesOf(Buffer.from('28b52ffd', 'hex')), null);
  assert.equal(contentBytesOf(Buffer.alloc(0)), null);
});
