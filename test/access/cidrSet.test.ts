import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type CidrSet, parseCidrs, parseIpAddress } from '../../src/access/ipAddress.ts';

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

  test('ends a block between any two bits', () => {
    const cases: [string, string, string][] = [
      ['0.0.0.0/1', '127.255.255.255', '128.0.0.0'],
      ['10.0.0.0/15', '10.1.255.255', '10.2.0.0'],
      ['10.0.0.0/31', '10.0.0.1', '10.0.0.2'],
      ['2001:db8::/33', '2001:db8:7fff::', '2001:db8:8000::'],
      ['2001:db8::/47', '2001:db8:1::', '2001:db8:2::'],
      ['2001:db8::/48', '2001:db8:0:ffff::', '2001:db8:1::'],
      ['2001:db8::/127', '2001:db8::1', '2001:db8::2'],
    ];
    for (const [block, last, next] of cases) {
      assert.equal(has(setOf(block), last), true, `${last} in ${block}`);
      assert.equal(has(setOf(block), next), false, `${next} in ${block}`);
    }
  });

  test('ignores the bits beyond the prefix', () => {
    assert.equal(has(setOf('10.1.2.3/8'), '10.200.0.1'), true);
    assert.equal(has(setOf('2001:db8::5/125'), '2001:db8::7'), true);
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
