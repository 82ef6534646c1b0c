import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isExternalId } from '../../src/areas/externalId.ts';

describe('an external id is 1 to 100 ASCII letters, digits and . _ : / @ # -', () => {
  const rows: readonly (readonly [text: string, sound: boolean])[] = [
    ['a', true],
    ['Z9', true],
    ['._:/@#-', true],
    ['/', true],
    ['..', true],
    ['erp:site/7@rome#2', true],
    ['x'.repeat(100), true],
    ['', false],
    ['x'.repeat(101), false],
    [' a', false],
    ['a b', false],
    ['a\n', false],
    ['a\u0000', false],
    ['é', false],
    ['а', false],
    ['٣', false],
    ['a%2Fb', false],
    ['a\\b', false],
    ['a+b', false],
    ['a?b', false],
    ['\ud800', false],
  ];
  for (const [text, sound] of rows) {
    test(`${JSON.stringify(text).slice(0, 30)}: ${sound}`, () => assert.equal(isExternalId(text), sound));
  }
});
