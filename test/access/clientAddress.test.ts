import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CidrSet, clientAddress, parseCidrs } from '../../src/access/ipAddress.ts';
import { runs } from '../support/torture.ts';

const SEED = 20_260_303;
const NOBODY = new CidrSet([]);
const parsed = parseCidrs('10.0.0.0/8, 2001:db8:1::/48');
assert.ok(parsed.ok);
const PROXIES = parsed.value;

function caller(socket: string | undefined, forwardedFor: string | undefined, trusted: CidrSet): string {
  const { address, certain } = clientAddress(socket, forwardedFor, trusted);
  return certain ? address.text : `${address.text}?`;
}

describe('without trusted proxies', () => {
  const cases: [string | undefined, string | undefined, string][] = [
    ['203.0.113.9', undefined, '203.0.113.9'],
    ['203.0.113.9', '198.51.100.1', '203.0.113.9'],
    ['203.0.113.9', 'garbage', '203.0.113.9'],
    ['::ffff:203.0.113.9', undefined, '203.0.113.9'],
    ['2001:db8::1', undefined, '2001:db8::1'],
    ['fe80::1%eth0', undefined, 'fe80::1'],
    [undefined, '198.51.100.1', '0.0.0.0?'],
  ];
  for (const [socket, header, expected] of cases) {
    test(`${socket} with the header ${JSON.stringify(header)} is ${expected}`, () => {
      assert.equal(caller(socket, header, NOBODY), expected);
    });
  }
});

describe('behind trusted proxies (a question mark: not certain)', () => {
  const cases: [string, string | undefined, string][] = [
    // Not from a proxy: the header is the caller's own invention.
    ['203.0.113.9', '198.51.100.1', '203.0.113.9'],
    // From a proxy without a header: the proxy itself calls.
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['10.0.0.1', '', '10.0.0.1'],
    ['10.0.0.1', '198.51.100.1', '198.51.100.1'],
    ['::ffff:10.0.0.1', '198.51.100.1', '198.51.100.1'],
    ['2001:db8:1::7', '198.51.100.1', '198.51.100.1'],
    ['10.0.0.1', '198.51.100.1:4711', '198.51.100.1'],
    ['10.0.0.1', '[2001:DB8::5]:4711', '2001:db8::5'],
    ['10.0.0.1', '198.51.100.1, 10.0.0.2', '198.51.100.1'],
    ['10.0.0.1', '198.51.100.1,\t10.0.0.3 , 10.0.0.2', '198.51.100.1'],
    // Forged entries stand left of the one that a proxy wrote.
    ['10.0.0.1', '127.0.0.1, 198.51.100.1', '198.51.100.1'],
    ['10.0.0.1', '10.9.9.9, 198.51.100.1, 10.0.0.2', '198.51.100.1'],
    ['10.0.0.1', 'garbage, 198.51.100.1', '198.51.100.1'],
    ['10.0.0.1', ', 198.51.100.1', '198.51.100.1'],
    // All trusted: the first proxy's caller is inside the trusted network.
    ['10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    // What a proxy could not name.
    ['10.0.0.1', 'unknown', '10.0.0.1?'],
    ['10.0.0.1', '198.51.100.1, unknown', '10.0.0.1?'],
    ['10.0.0.1', '198.51.100.1, unknown, 10.0.0.2', '10.0.0.2?'],
    ['10.0.0.1', '198.51.100.1,', '10.0.0.1?'],
    ['10.0.0.1', '198.51.100.1, , 10.0.0.2', '10.0.0.2?'],
    ['10.0.0.1', '198.51.100.1 10.0.0.2', '10.0.0.1?'],
    ['10.0.0.1', '198.51.100.1\u00a0', '10.0.0.1?'],
    ['10.0.0.1', 'fe80::1%eth0', '10.0.0.1?'],
  ];
  for (const [socket, header, expected] of cases) {
    test(`${socket} with the header ${JSON.stringify(header)} is ${expected}`, () => {
      assert.equal(caller(socket, header, PROXIES), expected);
    });
  }

  test('whatever a caller writes into the header, the proxy names the caller', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.ipV4(), fc.constant('10.0.0.9')), (forged) => {
        assert.equal(caller('10.0.0.1', `${forged}, 198.51.100.1, 10.0.0.2`, PROXIES), '198.51.100.1');
      }),
      { seed: SEED, numRuns: runs(75) },
    );
  });

  test('a chain longer than any real one is not followed, and a huge header is read from its end only', () => {
    const endless = new Array<string>(2_000).fill('10.0.0.2').join(',');
    assert.equal(caller('10.0.0.1', endless, PROXIES), '10.0.0.2?');
    assert.equal(caller('10.0.0.1', 'x'.repeat(1_000_000), PROXIES), '10.0.0.1?');
    assert.equal(caller('10.0.0.1', `${'x,'.repeat(100_000)}198.51.100.1`, PROXIES), '198.51.100.1');
  });
});
