import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numbers } from '../../src/geo/edgeIndex.ts';
import { seededRandom } from '../support/seededRandom.ts';

test('every piece is empty at first, as long as was asked for, and shares no number with another', () => {
  const random = seededRandom(7);
  const pieces = Array.from({ length: 2_000 }, (_, n) => {
    const length = Math.floor(random() * (n % 50 === 0 ? 5_000 : 300));
    const piece = numbers(length);
    assert.equal(piece.length, length);
    assert.ok(piece.every((value) => value === 0));
    return piece.fill(n + 1);
  });
  for (const [n, piece] of pieces.entries()) assert.ok(piece.every((value) => value === n + 1));
});

test('small pieces share pages, so that there are few buffers; large ones keep nothing else alive', () => {
  const small = Array.from({ length: 1_000 }, () => numbers(40));
  const pages = new Set(small.map(({ buffer }) => buffer));
  assert.ok(pages.size <= 11, `${pages.size} pages`);
  for (const page of pages) assert.ok(page.byteLength <= 32_768);
  assert.equal(numbers(4_000).buffer.byteLength, 32_000);
});
