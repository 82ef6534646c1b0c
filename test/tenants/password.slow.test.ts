import assert from 'node:assert/strict';
import { scryptSync } from 'node:crypto';
import { describe, test } from 'node:test';
import { hashPassword, NOBODYS_PASSWORD, verifyPassword } from '../../src/tenants/credentials.ts';

/** Made at today's cost, as few times as can be. */
const stored = hashPassword('caf\u00e9');

/** The same password at another cost. */
function cheaper(password: string): string {
  const salt = Buffer.alloc(16, 1);
  const hash = scryptSync(password, salt, 32, { N: 1024, r: 8, p: 1 });
  return `scrypt$1024$8$1$${salt.toString('base64url')}$${hash.toString('base64url')}`;
}

describe('a hashed password', () => {
  test('is known again, however its accents are written, and no other one is taken for it', async () => {
    assert.equal(await verifyPassword('cafe\u0301', await stored), true);
    assert.equal(await verifyPassword('cafe', await stored), false);
  });

  test('says how it was made, never what it was, and differs each time', async () => {
    assert.match(await stored, /^scrypt\$32768\$8\$3\$[\w-]{22}\$[\w-]{43}$/);
    assert.notEqual(await hashPassword('caf\u00e9'), await stored);
  });

  test('is still known when the cost has changed since', async () => {
    const earlier = cheaper('correct horse');
    assert.equal(await verifyPassword('correct horse', earlier), true);
    for (const other of ['', 'correct hors', 'Correct horse', 'correct horse '])
      assert.equal(await verifyPassword(other, earlier), false, other);
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

test("nobody's password costs as much to check as one that is stored today, and does not fit", async () => {
  const [parts, nobodys] = [(await stored).split('$'), NOBODYS_PASSWORD.split('$')];
  assert.deepEqual(nobodys.slice(0, 4), parts.slice(0, 4));
  assert.deepEqual(
    nobodys.map((part) => part.length),
    parts.map((part) => part.length),
  );
  assert.equal(await verifyPassword('\0'.repeat(32), NOBODYS_PASSWORD), false);
});
