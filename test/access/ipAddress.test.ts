import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseForwardedHop, parseIpAddress } from '../../src/access/ipAddress.ts';
import { runs } from '../support/torture.ts';

const SEED = 20_260_301;

describe('parseIpAddress', () => {
  const same: [string, string][] = [
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['10.20.30.40', '10.20.30.40'],
    ['::', '::'],
    ['::1', '::1'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['2001:DB8::A', '2001:db8::a'],
    ['2001:0db8:0000:0000:0000:0000:0000:000a', '2001:db8::a'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['1::2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['fe80::', 'fe80::'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::FFFF:0102:0304', '1.2.3.4'],
    ['0:0:0:0:0:ffff:255.255.255.255', '255.255.255.255'],
    ['64:ff9b::1.2.3.4', '64:ff9b::102:304'],
    ['::1.2.3.4', '::102:304'],
    ['::fffe:1.2.3.4', '::fffe:102:304'],
    ['1::ffff:1.2.3.4', '1::ffff:102:304'],
  ];
  for (const [text, canonical] of same) {
    test(`${text} is ${canonical}`, () => {
      assert.equal(parseIpAddress(text)?.text, canonical);
    });
  }

  test('accepts exactly what the system accepts, but for zone ids', () => {
    const part = fc.constantFrom(
      '0',
      '1',
      '00',
      '255',
      '256',
      'ffff',
      'fffff',
      'a',
      ':',
      '::',
      '.',
      '%',
      ' ',
      '[',
    );
    const text = fc.array(part, { maxLength: 16 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(fc.oneof(text, fc.ipV4(), fc.ipV6(), fc.string()), (candidate) => {
        const expected = isIP(candidate) !== 0 && !candidate.includes('%');
        assert.equal(parseIpAddress(candidate) !== null, expected, candidate);
      }),
      { seed: SEED, numRuns: runs(750) },
    );
  });

  test('writes IPv6 as the URL standard does, whatever its spelling', () => {
    fc.assert(
      fc.property(fc.ipV6(), (spelling) => {
        const host = new URL(`http://[${spelling}]/`).hostname.slice(1, -1);
        if (!host.startsWith('::ffff:')) assert.equal(parseIpAddress(spelling)?.text, host);
      }),
      { seed: SEED, numRuns: runs(250) },
    );
  });
});

describe('parseForwardedHop', () => {
  const cases: [string, string | null][] = [
    ['1.2.3.4', '1.2.3.4'],
    ['1.2.3.4:5678', '1.2.3.4'],
    ['1.2.3.4:0', '1.2.3.4'],
    ['::1', '::1'],
    ['[::1]', '::1'],
    ['[::1]:443', '::1'],
    ['[::ffff:1.2.3.4]:443', '1.2.3.4'],
    ['2001:db8::1:443', '2001:db8::1:443'],
    ['1.2.3.4:65536', null],
    ['1.2.3.4:', null],
    ['1.2.3.4:5678:9', null],
    ['1.2.3.4:x', null],
    ['1.2.3.4:1e3', null],
    ['[::1', null],
    ['::1]', null],
    ['[::1]443', null],
    ['[::1]:', null],
    ['[1.2.3.4]', null],
    ['[1.2.3.4]:80', null],
    ['[::1%lo]:80', null],
    ['"[::1]"', null],
    ['unknown', null],
    ['_hidden', null],
    ['', null],
  ];
  for (const [text, expected] of cases) {
    test(`${JSON.stringify(text)} ${expected === null ? 'names nobody' : `names ${expected}`}`, () => {
      assert.equal(parseForwardedHop(text)?.text ?? null, expected);
    });
  }
});
