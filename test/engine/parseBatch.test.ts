import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Result } from '../../src/base/result.ts';
import { type Batch, type BatchFailure, MAX_POINTS, parseBatch } from '../../src/engine/parseBatch.ts';

const NOW = Date.UTC(2026, 2, 14, 12);

type Outcome = { slices: number; result: Result<Batch, BatchFailure> };

function run(body: string | Buffer, format: 'json' | 'ndjson'): Outcome {
  const slices = parseBatch(body, format, NOW, 0);
  for (let count = 1; ; count++) {
    const step = slices.next();
    if (step.done) return { slices: count, result: step.value };
  }
}

/** What matters of a batch: "index imei" of every fix, "index code" of every rejection, "index field" of the ignored. */
function summary({ result }: Outcome): object | BatchFailure {
  if (!result.ok) return result.error;
  return {
    fixes: result.value.fixes.map(({ index, fix }) => `${index} ${fix.imei}`),
    rejected: result.value.rejected.map(({ index, code }) => `${index} ${code}`),
    ignored: result.value.ignored.map(({ index, field }) => `${index} ${field}`),
  };
}

const imei = (n: number) => String(350_000_000_000_000 + n);
const point = (n: number, more: object = {}) => ({
  imei: imei(n),
  recorded_at: NOW - n,
  latitude: 41.9,
  longitude: 12.5,
  ...more,
});
const text = (n: number, more?: object) => JSON.stringify(point(n, more));

const MIXED = [
  text(0),
  text(1, { latitude: 91 }),
  '5',
  text(3, { heading: 400, speed_kmh: -1 }),
  '{}',
  text(5),
];
const MIXED_SUMMARY = {
  fixes: [`0 ${imei(0)}`, `3 ${imei(3)}`, `5 ${imei(5)}`],
  rejected: ['1 INVALID_COORDINATES', '2 INVALID_BODY', '4 INVALID_IMEI'],
  ignored: ['3 speed_kmh', '3 heading'],
};
const NONE = { fixes: [], rejected: [], ignored: [] };
const ONE = { ...NONE, fixes: [`0 ${imei(0)}`] };

describe('one bad point costs none of its neighbours', () => {
  test('in an array', () => assert.deepEqual(summary(run(`[${MIXED.join(',')}]`, 'json')), MIXED_SUMMARY));
  test('in lines', () => assert.deepEqual(summary(run(MIXED.join('\n'), 'ndjson')), MIXED_SUMMARY));
  test('in lines that are no JSON', () => {
    const lines = [text(0), '{"imei":', text(2), 'garbage', '', '  ', text(4)];
    assert.deepEqual(summary(run(lines.join('\r\n'), 'ndjson')), {
      fixes: [`0 ${imei(0)}`, `2 ${imei(2)}`, `4 ${imei(4)}`],
      rejected: ['1 INVALID_BODY', '3 INVALID_BODY'],
      ignored: [],
    });
  });
  test('of absurd length', () => {
    const long = text(1, { note: 'x'.repeat(70_000) });
    const expected = {
      ...NONE,
      fixes: [`0 ${imei(0)}`, `2 ${imei(2)}`],
      rejected: ['1 INVALID_BODY'],
    };
    assert.deepEqual(summary(run(`[${text(0)},${long},${text(2)}]`, 'json')), expected);
    assert.deepEqual(summary(run(`${text(0)}\n${long}\n${text(2)}`, 'ndjson')), expected);
  });
});

describe('whole bodies', () => {
  const cases: [
    name: string,
    body: string | Buffer,
    format: 'json' | 'ndjson',
    expected: object | BatchFailure,
  ][] = [
    ['one object', text(0), 'json', ONE],
    ['one object in bytes', Buffer.from(text(0)), 'json', ONE],
    ['one line', text(0), 'ndjson', ONE],
    ['one line and its end', `${text(0)}\n`, 'ndjson', ONE],
    ['a byte order mark', Buffer.from(`\ufeff${text(0)}`), 'json', ONE],
    ['a byte order mark before lines', `\ufeff${text(0)}\n`, 'ndjson', ONE],
    ['an empty array', ' [ ] ', 'json', NONE],
    ['no lines', '', 'ndjson', NONE],
    ['blank lines', '\n \r\n', 'ndjson', NONE],
    [
      'an array on a line',
      `[${text(0)}]\n${text(1)}`,
      'ndjson',
      { ...NONE, fixes: [`1 ${imei(1)}`], rejected: ['0 INVALID_BODY'] },
    ],
    ['nothing', '', 'json', 'INVALID_BODY'],
    ['a number', '5', 'json', 'INVALID_BODY'],
    ['null', 'null', 'json', 'INVALID_BODY'],
    ['text', '"[]"', 'json', 'INVALID_BODY'],
    ['garbage', 'imei=5', 'json', 'INVALID_BODY'],
    ['bytes that are no text', Buffer.from([0xff, 0xfe, 0x00]), 'json', 'INVALID_BODY'],
    ['an array cut short', `[${text(0)},`, 'json', 'INVALID_BODY'],
    ['a comma too many', `[${text(0)},]`, 'json', 'INVALID_BODY'],
    ['more behind the array', `[${text(0)}] 5`, 'json', 'INVALID_BODY'],
    ['an element that is no JSON', `[${text(0)},{imei:5}]`, 'json', 'INVALID_BODY'],
    ['lines as json', `${text(0)}\n${text(1)}`, 'json', 'INVALID_BODY'],
    ['garbage as lines', 'imei=5\nlat=7', 'ndjson', 'INVALID_BODY'],
    [
      'an indented array as lines',
      JSON.stringify([point(0)], null, 2).replace(/^ *[\]}],?$/gm, '}'),
      'ndjson',
      'INVALID_BODY',
    ],
  ];
  for (const [name, body, format, expected] of cases) {
    test(name, () => assert.deepEqual(summary(run(body, format)), expected));
  }
});

describe('size', () => {
  const bodies = (count: number): ['json' | 'ndjson', string][] => {
    const points = Array.from({ length: count }, (_, n) => text(n));
    return [
      ['json', `[${points.join(',')}]`],
      ['ndjson', points.join('\n')],
    ];
  };
  for (const [format, body] of bodies(MAX_POINTS)) {
    test(`${format}: ${MAX_POINTS} points are read in order, giving way in between`, () => {
      const { slices, result } = run(body, format);
      assert.ok(result.ok);
      assert.deepEqual(
        result.value.fixes.map(({ index, fix }) => [index, fix.imei]),
        Array.from({ length: MAX_POINTS }, (_, n) => [n, imei(n)]),
      );
      assert.ok(slices >= 20, `${slices} slices`);
    });
    test(`${format}: trailing garbage behind ${MAX_POINTS} points is judged as such`, () => {
      assert.equal(summary(run(`${body}\n]`, format)), format === 'json' ? 'INVALID_BODY' : 'TOO_MANY');
    });
  }
  for (const [format, body] of bodies(MAX_POINTS + 1)) {
    test(`${format}: one more is too many`, () => assert.equal(summary(run(body, format)), 'TOO_MANY'));
  }
  test('bad points count too', () => {
    assert.equal(summary(run(`[${'1,'.repeat(MAX_POINTS)}1]`, 'json')), 'TOO_MANY');
  });
  test('few but fat points give way as well', () => {
    const fat = text(0, { note: 'x'.repeat(60_000) });
    assert.ok(run(`[${Array(50).fill(fat).join(',')}]`, 'json').slices >= 10);
  });
});
