import assert from 'node:assert/strict';
import { scryptSync } from 'node:crypto';
import { describe, test } from 'node:test';
import { hashPassword, NOBODYS_PASSWORD, verifyPassword } from '../../src/tenants/credentials.ts';

describe('a hashed password', () => {
  test('is known again, and no other one is taken for it', async () => {
    const stored = await hashPassword('correct horse');
    assert.equal(await verifyPassword('correct horse', stored), true);
    for (const other of ['', 'correct hors', 'Correct horse', 'correct horse ']) {
      assert.equal(await verifyPassword(other, stored), false, other);
    }
  });

  test('says how it was made, never what it was', async () => {
    const stored = await hashPassword('secret');
    assert.match(stored, /^scrypt\$32768\$8\$3\$[\w-]{22}\$[\w-]{43}$/);
    assert.ok(!stored.includes('secret'));
  });

  test('differs each time, and is the same for the two ways to write an accent', async () => {
    const stored = await hashPassword('caf\u00e9');
    assert.notEqual(await hashPassword('caf\u00e9'), stored);
    assert.equal(await verifyPassword('cafe\u0301', stored), true);
  });

  test('is still known when the cost has changed since', async () => {
    const salt = Buffer.alloc(16, 1);
    const hash = scryptSync('secret', salt, 32, { N: 1024, r: 8, p: 1 });
    const stored = `scrypt$1024$8$1$${salt.toString('base64url')}$${hash.toString('base64url')}`;
    assert.equal(await verifyPassword('secret', stored), true);
    assert.equal(await verifyPassword('other', stored), false);
  });

  test('of another kind fits nothing', async () => {
    for (const stored of [
      '',
      'secret',
      'bcrypt$1$2$3$4$5',
      'scrypt$1024$8$1$AAAA$AAAA',
      'scrypt$1024$8$1$AAAA',
    ]) {
      assert.equal(await verifyPassword('secret', stored), false, stored);
    }
  });
});

describe("nobody's password", () => {
  test('costs as much to check as one that is stored today, and nothing fits it', async () => {
    const costOf = (stored: string) => stored.split('$').slice(0, 4);
    assert.deepEqual(costOf(NOBODYS_PASSWORD), costOf(await hashPassword('x')));
    assert.deepEqual(
      NOBODYS_PASSWORD.split('$').map((part) => part.length),
      (await hashPassword('x')).split('$').map((part) => part.length),
    );
    for (const password of ['', 'x', '\0'.repeat(32)]) {
      assert.equal(await verifyPassword(password, NOBODYS_PASSWORD), false);
    }
  });
});
