import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addressNetwork, parseIpAddress } from '../../src/access/ipAddress.ts';
import { loginSubjects } from '../../src/tenants/logins.sql.ts';

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
