import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type CsvRecord, CsvRecords } from '../../src/cli/commands/deviceImport.ts';
import { readLines } from '../../src/cli/input.ts';
import { runs } from '../support/torture.ts';

/** Reads a text in pieces of the given number of bytes. */
async function read(text: string | Buffer, pieceBytes = 7): Promise<CsvRecord[]> {
  const bytes = Buffer.from(text);
  const records = new CsvRecords();
  const found: CsvRecord[] = [];
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
  }
  for await (const lines of readLines(pieces())) found.push(...records.push(lines));
  return [...found, ...records.end()];
}

/** Cells by line; of a broken record, its error. */
async function cellsByLine(text: string | Buffer): Promise<[number, readonly string[] | string][]> {
  return (await read(text)).map(({ line, cells }) => [line, cells.ok ? cells.value : cells.error]);
}

const STRAY = 'a quote stands in the middle of a value, or text follows its end';
const OPEN = 'a quote is opened and never closed';

describe('a text becomes its records', () => {
  /** Records as "line: cells, between |", or the error of the line. */
  const cases: readonly [name: string, text: string | Buffer, ...records: string[]][] = [
    ['nothing', ''],
    ['only line ends', '\n\r\n\n'],
    ['no line end at the end', 'a,b\nc,d', '1: a|b', '2: c|d'],
    ['CRLF and LF mixed', 'a,b\r\nc\nd\r\n', '1: a|b', '2: c', '3: d'],
    ['empty lines are passed over and counted', 'a\n\n  \nb', '1: a', '4: b'],
    ['blanks are kept', ' a , b \n', '1:  a | b '],
    ['a byte order mark', '\ufeffa,b\n', '1: a|b'],
    ['a line end inside quotes', '"a\nb",c\nd,e\n', '1: a\nb|c', '3: d|e'],
    ['a CRLF inside quotes', '"a\r\nb"\r\nc', '1: a\nb', '3: c'],
    ['an empty line inside quotes', '"a\n\nb"\nc', '1: a\n\nb', '4: c'],
    ['letters of several bytes, cut anywhere', 'é,日本\n🚚,ü', '1: é|日本', '2: 🚚|ü'],
    ['a quote in the middle costs its own line', 'a,b"c\nd,e\n', `1: ${STRAY}`, '2: d|e'],
    ['text after a closing quote costs its own line', '"a"b,c\nd,e\n', `1: ${STRAY}`, '2: d|e'],
    ['a blank before a quote is text before it', 'a, "b"\nd,e\n', `1: ${STRAY}`, '2: d|e'],
    ['a quote never closed costs its own line', 'a,"b\nc,d\ne,f', `1: ${OPEN}`, '2: c|d', '3: e|f'],
    ['two quotes never closed', '"a\nb\n"c\nd', `1: ${STRAY}`, '2: b', `3: ${OPEN}`, '4: d'],
    ['an open quote as the last byte', 'a\n"', '1: a', `2: ${OPEN}`],
    ['bytes that are no UTF-8', Buffer.from('a\xff,b\nc', 'latin1'), '1: a\ufffd|b', '2: c'],
  ];
  for (const [name, text, ...expected] of cases) {
    test(name, async () => {
      const found = await cellsByLine(text);
      assert.deepEqual(
        found.map(([line, cells]) => `${line}: ${typeof cells === 'string' ? cells : cells.join('|')}`),
        expected,
      );
    });
  }
});

test('a quote never closed costs one line, however long the file goes on', async () => {
  const rest = Array.from({ length: 500 }, (_, index) => `x${index},y`);
  const found = await cellsByLine(['a,"b', ...rest].join('\n'));
  assert.deepEqual(found[0], [1, OPEN]);
  assert.deepEqual(
    found.slice(1),
    rest.map((line, index) => [index + 2, line.split(',')]),
  );
});

test('a value of more than 20 lines is taken for a quote never closed', async () => {
  const value = (lines: number) => `"${Array.from({ length: lines }, () => 'x').join('\n')}"`;
  assert.equal((await read(`${value(20)},b`)).length, 1);
  assert.deepEqual((await cellsByLine(`${value(21)},b`))[0], [1, OPEN]);
});

test('a line too long to be looked at costs itself', async () => {
  const found = await read(`a,b\n${'x'.repeat(200_000)}\n"${'y'.repeat(70_000)}\nc,d`, 1_000);
  assert.deepEqual(
    found.map(({ line, cells }) => [line, cells.ok ? cells.value : cells.error]),
    [
      [1, ['a', 'b']],
      [2, 'the line is too long'],
      [3, 'the line is too long'],
      [4, ['c', 'd']],
    ],
  );
});

test('whatever is written by the rules of RFC 4180 is read back, in pieces of any size', async () => {
  const value = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', ' ', 'é', '🚚'), maxLength: 6 });
  const record = fc.array(value, { minLength: 2, maxLength: 4 });
  const lineEnd = fc.constantFrom('\n', '\r\n');
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { maxLength: 8 }),
      lineEnd,
      fc.integer({ min: 1, max: 40 }),
      async (rows, end, piece) => {
        const text = rows.map((cells) => cells.map(quoted).join(',') + end).join('');
        const found = await read(text, piece);
        assert.deepEqual(
          found.map(({ cells }) => cells.ok && cells.value),
          rows,
        );
      },
    ),
    { seed: 4180, numRuns: runs(75) },
  );
});

function quoted(value: string): string {
  return `"${value.replaceAll('"', '""')}"`;
}
