import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { formatIso, parseIsoMs } from '../../src/lib/time.ts';
import { runs } from '../support/torture.ts';

const SEED = { seed: 20_260_314 };

describe('accepted', () => {
  const noon = Date.UTC(2026, 2, 14, 12, 30, 45);
  const cases: [text: string, ms: number][] = [
    ['2026-03-14', Date.UTC(2026, 2, 14)],
    ['2026-03-14T12:30', Date.UTC(2026, 2, 14, 12, 30)],
    ['2026-03-14T12:30Z', Date.UTC(2026, 2, 14, 12, 30)],
    ['2026-03-14T12:30+01:00', Date.UTC(2026, 2, 14, 11, 30)],
    ['2026-03-14T12:30:45', noon],
    ['2026-03-14T12:30:45Z', noon],
    ['2026-03-14t12:30:45z', noon],
    ['2026-03-14 12:30:45', noon],
    ['2026-03-14 12:30:45.000+00', noon],
    ['2026-03-14T12:30:45+00:00', noon],
    ['2026-03-14T12:30:45.000+0000', noon],
    ['2026-03-14T12:30:45-00:00', noon],
    ['2026-03-14T14:30:45+02:00', noon],
    ['2026-03-14T14:30:45+0200', noon],
    ['2026-03-14T14:30:45+02', noon],
    ['2026-03-14T03:00:45-09:30', noon],
    ['2026-03-15T12:29:45+23:59', noon],
    ['2026-03-14T12:30:45.1Z', noon + 100],
    ['2026-03-14T12:30:45.12Z', noon + 120],
    ['2026-03-14T12:30:45.123Z', noon + 123],
    ['2026-03-14T12:30:45,123Z', noon + 123],
    ['2026-03-14T12:30:45.123999999Z', noon + 123],
    ['2026-03-14T12:30:45.000999+01:00', noon - 3_600_000],
    ['2026-03-14T12:30:45.007', noon + 7],
    ['2024-02-29', Date.UTC(2024, 1, 29)],
    ['2000-02-29', Date.UTC(2000, 1, 29)],
    ['1970-01-01', 0],
    ['1969-12-31T23:59:59.999Z', -1],
    ['0001-01-01', -62_135_596_800_000],
    ['9999-12-31T23:59:59.999Z', 253_402_300_799_999],
  ];
  for (const [text, ms] of cases) {
    test(text, () => assert.equal(parseIsoMs(text), ms));
  }
});

describe('refused', () => {
  const withoutBlanks = `
    2026 2026-03 20260314 1773491445000 2026-3-14 2026-03-1 2026-03-14T 2026-03-14T12 2026-03-14Z
    2026-03-14T12:3 2026-03-14T1230 2026-03-14T12:30:4 2026-03-14T12:30:45. 2026-03-14T12:30:45.Z
    2026-03-14T12:30:45.1.2 2026-03-14T12:30:45ZZ 2026-03-14T12:30:45+ 2026-03-14T12:30:45+1
    2026-03-14T12:30:45+01: 2026-03-14T12:30:45+01:0 2026-03-14T12:30:45+0:100
    2026-03-14T12:30:45+01:000 2026-03-14T12:30:45+24:00 2026-03-14T12:30:45+01:60 2026-03-14_12:30:45
    2026-03-14T12-30-45 2026/03/14 14-03-2026 2026-00-14 2026-13-14 2026-03-00 2026-03-32 2026-02-29
    2026-02-30 2026-04-31 1900-02-29 2026-03-14T24:00:00Z 2026-03-14T25:00:00Z 2026-03-14T12:60:00Z
    2026-03-14T12:30:60Z 2016-12-31T23:59:60Z +002026-03-14 -00026-03-14T00:00:00Z -026-03-14 0000-12-31
    0001-01-01T00:00+00:01 9999-12-31T23:59:59-00:01 ٢٠٢٦-٠٣-١٤ 2026-W11-6 2026-073 NaN now
  `;
  const cases = [
    ...withoutBlanks.trim().split(/\s+/),
    '',
    ' ',
    '2026-03-14T12:30:45 Z',
    '2026-03-14T12:30:45 02:00',
    '2026-03-14T12:30:45\u2212'.concat('02:00'),
    '2026-03-14  12:30:45',
    ' 2026-03-14',
    '2026-03-14 ',
    '2026-03-14\n',
    '2026-03-14T12:30:45Z\u0000',
    'Sat, 14 Mar 2026 12:30:45 GMT',
    'March 14, 2026',
    `2026-03-14T12:30:45.${'1'.repeat(100_000)}Z`,
  ];
  for (const text of cases) {
    test(JSON.stringify(text.slice(0, 40)), () => assert.equal(parseIsoMs(text), null));
  }
});

test('formatIso prints what Date prints, in any order of days', () => {
  const ms = fc.oneof(
    fc.integer({ min: -8_640_000_000_000_000, max: 8_640_000_000_000_000 }),
    fc.integer({ min: Date.UTC(2026, 10, 20), max: Date.UTC(2026, 10, 22) }),
    fc.double({ min: -2e12, max: 2e12, noNaN: true }),
    fc.constantFrom(0, -1, -0, -86_400_000, 86_399_999, 86_400_000, -62_135_596_800_001, 253_402_300_800_000),
  );
  fc.assert(
    fc.property(ms, (ms) => assert.equal(formatIso(ms), new Date(ms).toISOString())),
    { numRuns: runs(500) },
  );
  for (const ms of [Number.NaN, Number.POSITIVE_INFINITY, 8_640_000_000_000_001]) {
    assert.throws(() => formatIso(ms), RangeError);
  }
});

test('what formatIso prints is read back as the same millisecond', () => {
  fc.assert(
    fc.property(fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }), (ms) => {
      assert.equal(parseIsoMs(formatIso(ms)), ms);
    }),
    { ...SEED, numRuns: runs(500) },
  );
});

test('a date is accepted exactly when the calendar of Date has it', () => {
  const part = fc.integer({ min: 0, max: 40 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9999 }), part, part, (year, month, day) => {
      const date = new Date(0);
      date.setUTCFullYear(year, month - 1, day);
      const exists = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
      const two = (value: number) => String(value).padStart(2, '0');
      const text = `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`;
      assert.equal(parseIsoMs(text), exists ? date.getTime() : null, text);
    }),
    { ...SEED, numRuns: runs(750) },
  );
});

test('one character changed is either refused or still the instant that Date.parse reads', () => {
  const character = fc.constantFrom(...'0123456789-+:.TZ ,t\u0000é'.split(''));
  const zone = fc.constantFrom('Z', '+02:00', '-11:30', '');
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e12 }), zone, fc.nat(30), character, (ms, offset, at, other) => {
      const valid = formatIso(ms).replace('Z', offset);
      const text = valid.slice(0, at) + other + valid.slice(at + 1);
      const parsed = parseIsoMs(text);
      if (parsed === null) return;
      // Spelled as ECMAScript's own format, which Date.parse reads without guessing.
      const time = /^(\S{10})[Tt ](\d\d:\d\d(?::\d\d)?)[.,]?(\d*)(.*)$/.exec(text);
      assert.ok(time, text);
      const zoneText = (time[4] ?? '')
        .toUpperCase()
        .replace(/^([+-]\d\d)(\d\d)?$/, (_, h, m) => `${h}:${m ?? '00'}`);
      const spelled = `${time[1]}T${time[2]}.${(time[3] ?? '').padEnd(3, '0').slice(0, 3)}${zoneText || 'Z'}`;
      assert.equal(parsed, Date.parse(time[2]?.length === 5 ? spelled.replace('.', ':00.') : spelled), text);
    }),
    { ...SEED, numRuns: runs(1_250) },
  );
});
