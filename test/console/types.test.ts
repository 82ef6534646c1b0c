import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { CONSOLE_TYPES, consoleTypes } from '../../src/consoleTypes.ts';

test('what the console reads is what the API is described to answer: "npm run types" writes it anew', () => {
  assert.equal(readFileSync(CONSOLE_TYPES, 'utf8'), consoleTypes());
});
