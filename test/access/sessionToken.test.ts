import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { bearerToken, newKey, newSessionToken, readKey } from '../../src/access/credentials.ts';

const TOKEN = newSessionToken(randomBytes);

describe('a session token', () => {
  test('is fs_ and 43 characters that carry 256 bits, another one each time', () => {
    assert.match(TOKEN, /^fs_[A-Za-z0-9_-]{43}$/);
    assert.notEqual(newSessionToken(randomBytes), TOKEN);
    const bytes = Uint8Array.from({ length: 32 }, (_, n) => n);
    const text = newSessionToken(() => bytes);
    assert.deepEqual([...Buffer.from(text.slice(3), 'base64url')], [...bytes]);
  });

  test('is no API key, nor is a key one', () => {
    assert.deepEqual(readKey(TOKEN), { kind: 'malformed' });
    assert.equal(bearerToken([`Bearer ${newKey(randomBytes)}`]), null);
  });

  for (const value of [`Bearer ${TOKEN}`, `bearer ${TOKEN}`, `BEARER  ${TOKEN}`]) {
    test(`is read from "${value.slice(0, 12)}…"`, () => assert.equal(bearerToken([value]), TOKEN));
  }

  const MALFORMED: [name: string, headers: string[]][] = [
    ['no header', []],
    ['two headers', [`Bearer ${TOKEN}`, `Bearer ${TOKEN}`]],
    ['an empty one', ['']],
    ['the scheme alone', ['Bearer']],
    ['the token alone', [TOKEN]],
    ['another scheme', [`Basic ${TOKEN}`]],
    ['no blank', [`Bearer${TOKEN}`]],
    ['a tab', [`Bearer\t${TOKEN}`]],
    ['a character less', [`Bearer ${TOKEN.slice(0, -1)}`]],
    ['a character more', [`Bearer ${TOKEN}A`]],
    ['two tokens', [`Bearer ${TOKEN} ${TOKEN}`]],
    ['a list', [`Bearer ${TOKEN}, Bearer ${TOKEN}`]],
    ['another alphabet', [`Bearer fs_${'é'.repeat(43)}`]],
    ['another prefix', [`Bearer FS_${TOKEN.slice(3)}`]],
    ['blanks without end', [`Bearer ${' '.repeat(10_000)}${TOKEN}`]],
    ['a line more', [`Bearer ${TOKEN}\n`]],
  ];
  for (const [name, headers] of MALFORMED) {
    test(`is not read from ${name}`, () => assert.equal(bearerToken(headers), null));
  }
});
