import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NumberPages } from '../../src/lib/numberPages.ts';
import { seededRandom } from '../support/seededRandom.ts';

const pages = new NumberPages();

test('every piece is empty at first, as long as was asked for, and shares no number with another', () => {
  const random = seededRandom(7);
  const pieces = Array.from({ length: 2_000 }, (_, n) => {
    const length = Math.floor(random() * (n % 50 === 0 ? 5_000 : 300));
    const piece = pages.take(length);
    assert.equal(piece.length, length);
    assert.ok(piece.every((value) => value === 0));
    return piece.fill(n + 1);
  });
  for (const [n, piece] of pieces.entries()) assert.ok(piece.every((value) => value === n + 1));
});

test('small pieces share pages, so that there are few buffers; large ones keep nothing else alive', () => {
  const small = Array.from({ length: 1_000 }, () => pages.take(40));
  const shared = new Set(small.map(({ buffer }) => buffer));
  assert.ok(shared.size <= 11, `${shared.size} pages`);
  for (const page of shared) assert.ok(page.byteLength <= 32_768);
  assert.equal(pages.take(4_000).buffer.byteLength, 32_000);
});
