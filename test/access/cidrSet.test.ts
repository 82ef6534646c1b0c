import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CidrSet, parseCidrs, parseIpAddress, parseNetwork } from '../../src/access/ipAddress.ts';
import { runs } from '../support/torture.ts';

const SEED = 20_260_302;

function setOf(text: string): CidrSet {
  const parsed = parseCidrs(text);
  assert.ok(parsed.ok, text);
  return parsed.value;
}

function has(set: CidrSet, text: string): boolean {
  const address = parseIpAddress(text);
  assert.ok(address, text);
  return set.has(address);
}

describe('parseCidrs', () => {
  test('reads blocks and addresses of both families', () => {
    const set = setOf('10.0.0.0/8, 192.0.2.7 ,2001:db8::/32,::1');
    const cases: [string, boolean][] = [
      ['10.255.255.255', true],
      ['11.0.0.0', false],
      ['192.0.2.7', true],
      ['192.0.2.6', false],
      ['2001:db8:ffff::', true],
      ['2001:db9::', false],
      ['::1', true],
      ['::2', false],
      ['::ffff:10.1.1.1', true],
    ];
    for (const [address, expected] of cases) assert.equal(has(set, address), expected, address);
  });

  test('reads nothing as the empty set, which holds no address', () => {
    for (const text of ['', '  ']) {
      assert.equal(setOf(text).isEmpty, true);
      assert.equal(has(setOf(text), '127.0.0.1'), false);
    }
    assert.equal(setOf('::/0').isEmpty, false);
  });

  test('keeps the families apart', () => {
    assert.equal(has(setOf('::/0'), '1.2.3.4'), false);
    assert.equal(has(setOf('0.0.0.0/0'), '::1'), false);
    assert.equal(has(setOf('0.0.0.0/0'), '255.255.255.255'), true);
  });

  test('takes a block of mapped addresses for its IPv4 block', () => {
    const set = setOf('::ffff:10.0.0.0/104');
    assert.equal(has(set, '10.9.9.9'), true);
    assert.equal(has(set, '11.0.0.0'), false);
  });

  const bad = [
    'true',
    'TRUE',
    '*',
    'localhost',
    'proxy.example.com',
    '1',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/08',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0.0/255.0.0.0',
    '10.0.0/8',
    '::/129',
    '::ffff:10.0.0.0/64',
    'fe80::1%eth0',
    '[::1]',
  ];
  for (const entry of bad) {
    test(`refuses ${JSON.stringify(entry)} by its name`, () => {
      assert.deepEqual(parseCidrs(`10.0.0.0/8,${entry}`), { ok: false, error: [entry] });
    });
  }

  test('names every bad entry, the blank one of a stray comma too', () => {
    assert.deepEqual(parseCidrs('a,10.0.0.1,,b'), { ok: false, error: ['a', '', 'b'] });
  });
});

test('a set holds exactly the addresses that the BlockList of node:net holds', () => {
  // Few bits differ, so that blocks are hit often.
  const v4 = fc
    .tuple(fc.constantFrom(10, 138), fc.nat(3), fc.nat(3), fc.nat(255))
    .map((parts) => parts.join('.'));
  const group = fc.constantFrom('0', '1', '3', '8000', 'c000', 'ffff');
  const v6 = fc.array(group, { minLength: 6, maxLength: 6 }).map((groups) => `2001:db8:${groups.join(':')}`);
  const block = fc.oneof(
    fc.record({ address: v4, prefix: fc.integer({ min: 0, max: 32 }), family: fc.constant('ipv4' as const) }),
    fc.record({
      address: v6,
      prefix: fc.integer({ min: 0, max: 128 }),
      family: fc.constant('ipv6' as const),
    }),
  );
  const probes = fc.array(fc.oneof(v4, v6), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(fc.array(block, { maxLength: 4 }), probes, (blocks, addresses) => {
      // One for each family: a BlockList finds IPv4 addresses in IPv6 blocks that hold the mapped ones.
      const oracles = { ipv4: new BlockList(), ipv6: new BlockList() };
      for (const { address, prefix, family } of blocks) oracles[family].addSubnet(address, prefix, family);
      const set = new CidrSet(
        blocks.map(({ address, prefix }) => {
          const network = parseNetwork(`${address}/${prefix}`);
          assert.ok(network);
          return network;
        }),
      );
      for (const address of addresses) {
        const family = address.includes(':') ? 'ipv6' : 'ipv4';
        assert.equal(
          has(set, address),
          oracles[family].check(address, family),
          `${address} in ${JSON.stringify(blocks)}`,
        );
      }
    }),
    { seed: SEED, numRuns: runs(125) },
  );
});
