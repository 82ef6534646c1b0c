import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CidrSet, type IpAddress, parseCidrs, parseIpAddress } from '../../src/access/ipAddress.ts';
import { isPublicAddress, parseSafeAddress, parseSafeAnswer } from '../../src/webhooks/delivery/urlSafety.ts';
import { runs } from '../support/torture.ts';

const SEED = 20_260_301;
const NOBODY = new CidrSet([]);

/** The registries once more, as first and last address, in the words of node:net. */
const special = new BlockList();
const ranges = `
  0.0.0.0-0.255.255.255 10.0.0.0-10.255.255.255 100.64.0.0-100.127.255.255 127.0.0.0-127.255.255.255
  169.254.0.0-169.254.255.255 172.16.0.0-172.31.255.255 192.0.0.0-192.0.0.255 192.0.2.0-192.0.2.255
  192.31.196.0-192.31.196.255 192.52.193.0-192.52.193.255 192.88.99.0-192.88.99.255 192.168.0.0-192.168.255.255
  192.175.48.0-192.175.48.255 198.18.0.0-198.19.255.255 198.51.100.0-198.51.100.255 203.0.113.0-203.0.113.255
  224.0.0.0-255.255.255.255
  ::-1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001::-2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
  2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 2002::-2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  2620:4f:8000::-2620:4f:8000:ffff:ffff:ffff:ffff:ffff 3fff::-3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff
  4000::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff`;
for (const range of ranges.trim().split(/\s+/)) {
  const [first = '', last = ''] = range.split('-');
  special.addRange(first, last, first.includes(':') ? 'ipv6' : 'ipv4');
}

function address(text: string): IpAddress {
  const parsed = parseIpAddress(text);
  assert.ok(parsed);
  return parsed;
}

const v4 = fc.oneof(
  fc.ipV4(),
  fc
    .tuple(fc.constantFrom('10.', '100.', '169.', '172.', '192.', '198.', '203.', '223.'), fc.nat(255))
    .chain(([head, second]) =>
      fc.tuple(fc.nat(255), fc.nat(255)).map(([c, d]) => `${head}${second}.${c}.${d}`),
    ),
);
const v6 = fc.oneof(
  fc.ipV6().filter((text) => parseIpAddress(text)?.family === 6),
  fc
    .tuple(fc.constantFrom(0x2000, 0x2001, 0x2002, 0x2003, 0x3ffe, 0x3fff, 0x1fff, 0x4000), fc.nat(0xffff))
    .map(([a, b]) => `${a.toString(16)}:${b.toString(16)}:1::1`),
);

describe('isPublicAddress', () => {
  test('agrees with the ranges of the registries on both families', () => {
    fc.assert(
      fc.property(v4, (text) => {
        assert.equal(isPublicAddress(address(text)), !special.check(text, 'ipv4'));
      }),
      { seed: SEED, numRuns: runs(500) },
    );
    fc.assert(
      fc.property(v6, (text) => {
        assert.equal(isPublicAddress(address(text)), !special.check(text, 'ipv6'));
      }),
      { seed: SEED, numRuns: runs(500) },
    );
  });
});

test('what is no address is refused', () => {
  for (const text of ['', 'localhost', '1.2.3', '8.8.8.8%eth0', 'fe80::1%eth0', '[::1]'])
    assert.equal(parseSafeAddress(text, NOBODY), null);
});

describe('parseSafeAnswer', () => {
  test('a translated address is decided by the IPv4 address inside, on every one', () => {
    fc.assert(
      fc.property(v4, (text) => {
        const safe = parseSafeAnswer(`64:ff9b::${text}`, NOBODY);
        assert.equal(safe !== null, !special.check(text, 'ipv4'));
        assert.ok(safe === null || safe.family === 6);
      }),
      { seed: SEED, numRuns: runs(250) },
    );
  });

  test('an exempt IPv4 network exempts its translated addresses, and its mapped ones', () => {
    const allowed = parseCidrs('10.1.0.0/16');
    assert.ok(allowed.ok);
    assert.equal(parseSafeAnswer('64:ff9b::10.1.2.3', allowed.value)?.text, '64:ff9b::a01:203');
    assert.equal(parseSafeAnswer('::ffff:10.1.2.3', allowed.value)?.text, '10.1.2.3');
    assert.equal(parseSafeAnswer('64:ff9b::10.2.2.3', allowed.value), null);
  });
});
