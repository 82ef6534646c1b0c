import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Batch,
  type BatchError,
  BatchReader,
  MAX_ELEMENT_BYTES,
  MAX_ELEMENT_VALUES,
  MAX_POINTS,
} from '../../../src/ingest/formats/batchReader.ts';
import type { Result } from '../../../src/lib/result.ts';

const NOW = Date.UTC(2026, 2, 14, 12);

type Outcome = { steps: number; result: Result<Batch, BatchError> };

/** The outcome of a body that comes in pieces of so many bytes, and the steps in which it was read. */
function run(body: string | Buffer, format: 'json' | 'ndjson', pieceBytes = 65_536): Outcome {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const reader = new BatchReader(format, NOW, 0);
  let steps = 0;
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    // A piece of its own, overwritten afterwards, as a socket may do.
    const piece = Buffer.from(bytes.subarray(at, at + pieceBytes));
    for (const _ of reader.read(piece)) steps++;
    piece.fill(0);
  }
  return { steps, result: reader.finish() };
}

/** What matters of a batch: "index imei" of every fix, "index code" of every rejection, "index field" of the ignored. */
function summary({ result }: Outcome): object | BatchError {
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

const NONE = { fixes: [], rejected: [], ignored: [] };
const ONE = { ...NONE, fixes: [`0 ${imei(0)}`] };

test('a comma before the end is no JSON, wherever the body is cut', () => {
  const body = `[${text(0)},${text(1)},]`;
  for (let pieceBytes = 1; pieceBytes <= body.length; pieceBytes++)
    assert.equal(summary(run(body, 'json', pieceBytes)), 'INVALID_BODY', `${pieceBytes} bytes`);
});

describe('whole bodies', () => {
  const cases: [
    name: string,
    body: string | Buffer,
    format: 'json' | 'ndjson',
    expected: object | BatchError,
  ][] = [
    ['one object', text(0), 'json', ONE],
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
    ['bytes that are no text', Buffer.from([0xff, 0xfe, 0x00]), 'json', 'INVALID_BODY'],
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
    test(name, () => {
      for (const pieceBytes of [65_536, 7, 1]) {
        assert.deepEqual(summary(run(body, format, pieceBytes)), expected, `in pieces of ${pieceBytes}`);
      }
    });
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
      const { steps, result } = run(body, format);
      assert.ok(result.ok);
      assert.deepEqual(
        result.value.fixes.map(({ index, fix }) => [index, fix.imei]),
        Array.from({ length: MAX_POINTS }, (_, n) => [n, imei(n)]),
      );
      assert.ok(steps >= 200, `${steps} steps`);
    });
    test(`${format}: trailing garbage behind ${MAX_POINTS} points is evaluated as such`, () => {
      assert.equal(summary(run(`${body}\n]`, format)), format === 'json' ? 'INVALID_BODY' : 'TOO_MANY');
    });
  }
  for (const [format, body] of bodies(MAX_POINTS + 1)) {
    test(`${format}: one more is too many`, () => assert.equal(summary(run(body, format)), 'TOO_MANY'));
  }
  test('what comes behind a failure is not read', () => {
    const reader = new BatchReader('json', NOW, 0);
    for (const _ of reader.read(Buffer.from('[1,x,'))) assert.ok(true);
    assert.ok(reader.hasFailed);
    assert.deepEqual([...reader.read(Buffer.alloc(1_000_000, '{},'))], []);
  });
});

describe('an element larger than any point', () => {
  const long = (bytes: number) => {
    const bare = text(1, { note: '' });
    return text(1, { note: 'x'.repeat(bytes - bare.length) });
  };
  const rich = (values: number) => text(1, { note: Array(values).fill(1) });
  /** The commas and brackets of a point without note, and of the note itself. */
  const OTHER_VALUES = 6;
  const cases: [name: string, element: string, isTaken: boolean][] = [
    [`of ${MAX_ELEMENT_BYTES} bytes`, long(MAX_ELEMENT_BYTES), true],
    ['of one byte more', long(MAX_ELEMENT_BYTES + 1), false],
    ['of a megabyte', long(1_000_000), false],
    [`of ${MAX_ELEMENT_VALUES} values`, rich(MAX_ELEMENT_VALUES - OTHER_VALUES), true],
    ['of one value more', rich(MAX_ELEMENT_VALUES - OTHER_VALUES + 1), false],
    ['of very many values', rich(100_000), false],
    ['nested deeply', text(1, { note: 0 }).replace('0}', `${'['.repeat(5_000)}${']'.repeat(5_000)}}`), false],
    ['with many commas in a text', text(1, { note: ','.repeat(5_000) }), true],
    ['with many escapes', text(1, { note: '"\\",[{'.repeat(1_000) }), true],
    ['with another text, of two bytes a character', text(1, { note: 'é'.repeat(8_000) }), true],
  ];
  for (const [name, element, isTaken] of cases) {
    test(`${name} is ${isTaken ? 'taken' : 'rejected, and its neighbours stand'}`, () => {
      const expected = {
        ...NONE,
        fixes: (isTaken ? [0, 1, 2] : [0, 2]).map((n) => `${n} ${imei(n)}`),
        rejected: isTaken ? [] : ['1 INVALID_BODY'],
      };
      for (const pieceBytes of [65_536, 1_021]) {
        const inArray = run(`[${text(0)},${element},${text(2)}]`, 'json', pieceBytes);
        assert.deepEqual(summary(inArray), expected);
        assert.deepEqual(summary(run(`${text(0)}\n${element}\n${text(2)}`, 'ndjson', pieceBytes)), expected);
      }
    });
  }
  test('alone is rejected too', () => {
    const expected = { ...NONE, rejected: ['0 INVALID_BODY'] };
    assert.deepEqual(summary(run(long(100_000), 'json')), expected);
    assert.deepEqual(summary(run(long(100_000), 'ndjson')), expected);
    assert.equal(summary(run(long(100_000).slice(0, -1), 'json')), 'INVALID_BODY');
  });
});

test('a body of any kind is read in steps of four kilobytes', () => {
  const bytes = 1_000_000;
  for (const [format, text] of [
    ['ndjson', '\n'],
    ['ndjson', ' \r\t'],
    ['ndjson', 'x'],
    ['ndjson', '{},'],
    ['json', ' '],
    ['json', '['],
    ['json', '{"a":"'],
  ] as const) {
    assert.ok(run(Buffer.alloc(bytes, text), format).steps >= bytes / 4_096, `${format} of ${text}`);
  }
});
