import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { namesEtag } from '../../src/http/staticFile.ts';

describe('If-None-Match', () => {
  test('names a version by its tag, weak or strong, alone or in a list, and any by *', () => {
    for (const header of ['W/"a"', '"a"', '"b", W/"a"', '"b","a"', ' "a" ', '*', '"b", *']) {
      assert.ok(namesEtag(header, 'W/"a"'), header);
    }
    for (const header of [undefined, '', 'a', '"A"', 'W/"b"', '"a', '"ab"', 'w/"a"']) {
      assert.ok(!namesEtag(header, 'W/"a"'), String(header));
    }
  });
});
