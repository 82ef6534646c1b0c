import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type CidrSet, parseAllowlist, parseIpAddress } from '../../src/access/ipAddress.ts';

function listOf(...entries: string[]): CidrSet | null {
  const parsed = parseAllowlist(entries);
  assert.ok(parsed.ok);
  return parsed.value;
}

function matches(list: CidrSet | null, text: string): boolean {
  const address = parseIpAddress(text);
  assert.ok(address);
  return list === null || list.has(address);
}

describe('an allowlist', () => {
  test('of nothing restricts nothing', () => {
    assert.equal(listOf(), null);
    assert.equal(matches(listOf(), '203.0.113.9'), true);
    assert.equal(matches(listOf(), '2001:db8::1'), true);
  });

  test('holds single IPv4 addresses, IPv4 blocks and exact IPv6 addresses in any spelling', () => {
    const list = listOf('203.0.113.9', '198.51.100.0/24', '2001:DB8:0::1');
    const cases: [string, boolean][] = [
      ['203.0.113.9', true],
      ['203.0.113.8', false],
      ['198.51.100.0', true],
      ['198.51.100.255', true],
      ['198.51.101.0', false],
      ['::ffff:203.0.113.9', true],
      ['2001:db8::1', true],
      ['2001:db8::2', false],
    ];
    for (const [address, expected] of cases) assert.equal(matches(list, address), expected, address);
  });

  test('takes a mapped address for the IPv4 address it is', () => {
    assert.equal(matches(listOf('::ffff:203.0.113.9'), '203.0.113.9'), true);
  });

  test('has at most 50 entries', () => {
    const entries = Array.from({ length: 51 }, (_, i) => `10.0.0.${i}`);
    assert.equal(parseAllowlist(entries.slice(1)).ok, true);
    assert.deepEqual(parseAllowlist(entries), { ok: false, error: [{ kind: 'too_many', count: 51 }] });
  });

  test('names each bad entry by its index', () => {
    const entries = [
      '10.0.0.1',
      '2001:db8::/32',
      '10.0.0.0/8',
      ' 10.0.0.1',
      '',
      '::ffff:10.0.0.0/104',
      'host',
      '::1/128',
    ];
    assert.deepEqual(parseAllowlist(entries), {
      ok: false,
      error: [1, 3, 4, 5, 6, 7].map((index) => ({ kind: 'bad_entry', index })),
    });
  });
});
