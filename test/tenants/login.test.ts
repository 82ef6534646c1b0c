import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { addressNetwork, parseIpAddress } from '../../src/access/ipAddress.ts';
import { parseLogin, readEmail } from '../../src/tenants/credentials.ts';
import { loginSubjects } from '../../src/tenants/logins.sql.ts';

const EMAIL = 'owner@example.com';

describe('the body of a login', () => {
  test('gives the address as accounts spell it, and the password as it is', () => {
    const body = { email: '  Owner@Example.COM ', password: ' p w ', more: 1 };
    assert.deepEqual(parseLogin(body), { ok: true, value: { email: EMAIL, password: ' p w ' } });
  });

  const ERRORS: [name: string, body: unknown, errors: string[]][] = [
    ['nothing', undefined, ['null INVALID_BODY']],
    ['null', null, ['null INVALID_BODY']],
    ['a list', [], ['null INVALID_BODY']],
    ['text', 'x', ['null INVALID_BODY']],
    ['an empty object', {}, ['email REQUIRED', 'password REQUIRED']],
    ['nulls', { email: null, password: null }, ['email REQUIRED', 'password REQUIRED']],
    ['empty texts', { email: '', password: '' }, ['email REQUIRED', 'password REQUIRED']],
    ['other types', { email: 7, password: ['x'] }, ['email INVALID', 'password INVALID']],
    ['no address', { email: 'owner', password: 'x' }, ['email INVALID']],
    ['a blank in the address', { email: 'a b@example.com', password: 'x' }, ['email INVALID']],
    ['a NUL, which Postgres cannot hold', { email: 'a\0@example.com', password: 'x' }, ['email INVALID']],
    ['half a character', { email: 'a\ud800@example.com', password: 'x' }, ['email INVALID']],
    ['an address too long', { email: `${'a'.repeat(250)}@b.cd`, password: 'x' }, ['email INVALID']],
    [
      'a megabyte',
      { email: '@'.repeat(1e6), password: 'x'.repeat(1e6) },
      ['email INVALID', 'password TOO_LONG'],
    ],
    ['a password too long', { email: EMAIL, password: 'x'.repeat(1001) }, ['password TOO_LONG']],
  ];
  for (const [name, body, expected] of ERRORS) {
    test(`of ${name} is refused with every field that is wrong`, () => {
      const login = parseLogin(body);
      assert.ok(!login.ok);
      assert.deepEqual(
        login.error.map(({ field, code }) => `${field} ${code}`),
        expected,
      );
    });
  }

  test('never throws, whatever it is', () => {
    fc.assert(
      fc.property(fc.record({ email: fc.anything(), password: fc.anything() }), (body) => {
        const login = parseLogin(body);
        if (login.ok) assert.equal(readEmail(login.value.email), login.value.email);
      }),
    );
  });
});

const subjects = (email: string, ip: string) => {
  const address = parseIpAddress(ip);
  assert.ok(address);
  return loginSubjects(email, addressNetwork(address));
};

describe('an attempt to log in is counted against', () => {
  test('the network of a customer when the address is of IPv6, however it is written', () => {
    const one = subjects('a@example.com', '2001:db8:1:2::1');
    assert.deepEqual(subjects('a@example.com', '2001:DB8:1:2:ffff:ffff:ffff:ffff'), one);
    assert.notEqual(subjects('a@example.com', '2001:db8:1:3::1').address, one.address);
    assert.deepEqual(
      subjects('a@example.com', '::ffff:192.0.2.1'),
      subjects('a@example.com', '192.0.2.1'),
      'an IPv4 address that is mapped is that address',
    );
  });
});
