import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addressNetwork, parseIpAddress } from '../../src/access/ipAddress.ts';

describe('an address is counted by', () => {
  const cases: [address: string, network: string][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8::/64'],
    ['2001:db8:0:1::1', '2001:db8:0:1::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::/64'],
    ['::1', '::/64'],
    ['fe80::1', 'fe80::/64'],
  ];
  for (const [text, network] of cases) {
    test(`${text}: ${network}`, () => {
      const address = parseIpAddress(text);
      assert.ok(address);
      assert.equal(addressNetwork(address), network);
    });
  }
});
