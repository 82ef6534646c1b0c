import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isIdempotencyKey } from '../../src/areas/idempotencyKey.ts';

describe('an Idempotency-Key is 1 to 200 ASCII letters, digits and . _ : -', () => {
  const rows: readonly (readonly [text: string, sound: boolean])[] = [
    ['a', true],
    ['8e03978e-40d5-43dd-bc93-6894a57f9324', true],
    ['job_7:retry.2', true],
    ['x'.repeat(200), true],
    ['', false],
    ['x'.repeat(201), false],
    ['a b', false],
    ['a/b', false],
    ['a@b', false],
    ['a#b', false],
    ['é', false],
    ['a\n', false],
  ];
  for (const [text, sound] of rows) {
    test(`${JSON.stringify(text).slice(0, 30)}: ${sound}`, () => assert.equal(isIdempotencyKey(text), sound));
  }
});
