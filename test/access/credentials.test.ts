import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import {
  bearerToken,
  fingerprint,
  newKey,
  newSessionToken,
  prefix,
  readKey,
} from '../../src/access/credentials.ts';

describe('newKey', () => {
  test('makes keys of the documented shape, never the same twice', () => {
    const keys = Array.from({ length: 200 }, () => newKey(randomBytes));
    for (const key of keys) assert.match(key, /^fk_[A-Za-z0-9]{43}$/);
    assert.equal(new Set(keys).size, keys.length);
  });

  test('gives every letter and digit the same number of byte values', () => {
    const seen = new Map<string, number>();
    for (let byte = 0; byte < 248; byte++) {
      const letter = newKey((count) => new Uint8Array(count).fill(byte)).at(-1) as string;
      seen.set(letter, (seen.get(letter) ?? 0) + 1);
    }
    assert.equal(seen.size, 62);
    assert.deepEqual(new Set(seen.values()), new Set([4]));
  });

  test('throws the byte values away that would make some letters likelier', () => {
    const bytes = [248, 249, 250, 251, 252, 253, 254, 255, ...new Array<number>(43).fill(1)];
    const key = newKey((count) => Uint8Array.from(bytes.splice(0, count)));
    assert.equal(key, `fk_${'B'.repeat(43)}`);
  });
});

test('fingerprint is the SHA-256 of the key in hex, and prefix its first six characters', () => {
  const key = newKey(randomBytes);
  assert.equal(fingerprint(key), createHash('sha256').update(key, 'utf8').digest('hex'));
  assert.equal(fingerprint('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  assert.equal(prefix('fk_abcdefg'), 'fk_abc');
});

describe('readKey', () => {
  const body = 'a'.repeat(43);
  const cases: [string, boolean][] = [
    [`fk_${body}`, true],
    ['fk_', false],
    [`fk_${body}a`, false],
    [`fk_${body.slice(1)}`, false],
    [`FK_${body}`, false],
    [` fk_${body}`, false],
    [`fk_${body}\n`, false],
    [`fk_${body.slice(1)}_`, false],
    [`fk_${body.slice(1)}é`, false],
  ];
  for (const [text, expected] of cases) {
    test(`${JSON.stringify(text)} ${expected ? 'may' : 'cannot'} be a key`, () => {
      const fingerprintOfText = { kind: 'key', fingerprint: fingerprint(text) };
      assert.deepEqual(readKey(text), expected ? fingerprintOfText : { kind: 'malformed' });
    });
  }

  test('a header that is missing or empty shows no key', () => {
    for (const text of [undefined, '']) assert.deepEqual(readKey(text), { kind: 'none' });
  });
});

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

  test('is read whatever the case of the scheme, and however many blanks', () => {
    for (const scheme of ['Bearer ', 'bearer ', 'BEARER  '])
      assert.equal(bearerToken([scheme + TOKEN]), TOKEN);
  });

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
