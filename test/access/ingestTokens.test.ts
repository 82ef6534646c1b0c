import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IngestTokens } from '../../src/access/senderAuthorizer.ts';

test('any of the tokens is known, and nothing else', () => {
  const tokens = new IngestTokens(['token-of-yesterday', 'token-of-tomorrow!']);
  assert.equal(tokens.indexOf('token-of-yesterday'), 0);
  assert.equal(tokens.indexOf('token-of-tomorrow!'), 1);
  const others = [
    '',
    'token',
    'token-of-yesterday,token-of-tomorrow!',
    'TOKEN-OF-YESTERDAY',
    'token-of-yesterday ',
  ];
  for (const other of others) assert.equal(tokens.indexOf(other), -1);
});
