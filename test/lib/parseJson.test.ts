import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseJson, parseJsonText } from '../../src/lib/parseText.ts';
import { runs } from '../support/torture.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const nested = (levels: number, open = '[', close = ']'): string =>
  open.repeat(levels) + close.repeat(levels);

describe('JSON is read as JSON.parse reads it', () => {
  const texts = [
    '{}',
    ' \t\r\n[1, 2]\n',
    'null',
    '"text"',
    '-0',
    '1e400',
    '{"a":1,"a":2}',
    '{"__proto__":{"x":1},"constructor":2,"toJSON":3}',
    '"\\ud800"',
    '"è € 𝄞"',
    '"[[[[{{{{"',
    '["\\"[","\\\\","]\\\\\\""]',
    nested(64),
    nested(64, '{"a":', '}').replace('}', '1}'),
    `[${nested(63)},${nested(63)}]`,
    `"${'['.repeat(100)}\\"${'['.repeat(100)}"`,
  ];
  for (const text of texts) {
    test(text.slice(0, 40), () => {
      assert.deepEqual(parseJson(bytesOf(text)), { ok: true, value: JSON.parse(text) });
    });
  }

  test('whatever the value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => {
        const text = JSON.stringify(value);
        assert.deepEqual(parseJson(bytesOf(text)), { ok: true, value: JSON.parse(text) });
      }),
      { seed: 1, numRuns: runs(50) },
    );
  });

  test('a byte order mark before it is passed over', () => {
    assert.deepEqual(parseJson(bytesOf('\ufeff{"a":1}')), { ok: true, value: { a: 1 } });
  });
});

describe('what is no JSON fails', () => {
  const rows: readonly (readonly [title: string, bytes: string | Uint8Array])[] = [
    ['nothing', ''],
    ['blanks', '  '],
    ['a word', 'undefined'],
    ['half an object', '{"a":1'],
    ['a comma too many', '[1,]'],
    ['single quotes', "{'a':1}"],
    ['a comment', '{}//x'],
    ['two values', '{}{}'],
    ['an open string', '"abc'],
    ['a string that ends in a backslash', '"abc\\'],
    ['closing brackets only', ']'.repeat(1_000)],
    ['NaN', '{"a":NaN}'],
    ['a byte order mark and nothing', '\ufeff'],
    ['two byte order marks', '\ufeff\ufeff{}'],
    ['Latin-1', Uint8Array.from([0x22, 0xe8, 0x22])],
    ['a sequence cut off', Uint8Array.from([0x22, 0xe2, 0x82, 0x22])],
    ['a sequence cut off by the end', Uint8Array.from([0x22, 0xe2, 0x82])],
    ['a surrogate in UTF-8', Uint8Array.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ['an overlong sequence', Uint8Array.from([0x22, 0xc0, 0xaf, 0x22])],
    ['UTF-16', Buffer.from('{"a":1}', 'utf16le')],
  ];
  for (const [title, bytes] of rows) {
    test(title, () => {
      const input = typeof bytes === 'string' ? bytesOf(bytes) : bytes;
      assert.deepEqual(parseJson(input), { ok: false, error: 'not_json' });
      assert.deepEqual(parseJson(bytesOf('[1]')), { ok: true, value: [1] }, 'and nothing of it stays');
    });
  }

  test('whatever the bytes: the value that JSON.parse finds in them, or a failure', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 12 }), (bytes) => {
        let expected: unknown;
        try {
          expected = { ok: true, value: JSON.parse(Buffer.from(bytes).toString('utf8')) };
        } catch {
          expected = { ok: false, error: 'not_json' };
        }
        if (Buffer.from(bytes).toString('utf8').includes('\ufffd'))
          expected = { ok: false, error: 'not_json' };
        assert.deepEqual(parseJson(bytes), expected);
      }),
      { seed: 2, numRuns: runs(125) },
    );
  });
});

describe('what is nested too deep fails, however deep', () => {
  for (const levels of [65, 100_000, 1_000_000]) {
    test(`${levels} levels`, () => {
      assert.deepEqual(parseJson(bytesOf(nested(levels))), { ok: false, error: 'too_deep' });
      assert.deepEqual(parseJson(bytesOf('{"a":'.repeat(levels))), { ok: false, error: 'too_deep' });
      assert.deepEqual(parseJson(bytesOf(`["x\\\\",${nested(levels)}]`)), { ok: false, error: 'too_deep' });
    });
  }

  test('what holds more values and names than it may fails, and nothing of it is built', () => {
    const rows: readonly (readonly [text: string, count: number])[] = [
      ['1', 1],
      ['[1,2,3]', 4],
      ['{"a":1,"b":{"c":2}}', 7],
      ['["a,b:c[d{e","\\",\\","]', 3],
      ['[[],{}]', 5],
      [`{"points":[${'{"lat":1,"lng":2},'.repeat(1_999)}{"lat":1,"lng":2}]}`, 10_003],
    ];
    for (const [text, count] of rows) {
      assert.ok(parseJson(bytesOf(text), count).ok, text.slice(0, 40));
      assert.deepEqual(parseJson(bytesOf(text), count - 1), { ok: false, error: 'too_many_values' });
    }
  });

  test('unless its reader allows more, that is 40 000', () => {
    assert.ok(parseJson(bytesOf(`[${'0,'.repeat(39_997)}0]`)).ok);
    for (const text of [
      `[${'0,'.repeat(39_999)}0]`,
      `[${'[],'.repeat(20_000)}0]`,
      `{${'"a":1,'.repeat(20_000)}}`,
    ])
      assert.deepEqual(parseJson(bytesOf(text)), { ok: false, error: 'too_many_values' });
  });

  test('a megabyte of quotes and backslashes is read as fast as any other (else this would take hours)', () => {
    for (const piece of ['\\"', '""', '\\\\', '"\\\\']) {
      assert.equal(parseJson(bytesOf(`"${piece.repeat(500_000)}`)).ok, false);
    }
  });
});

describe('JSON text of our own', () => {
  for (const text of [
    'null',
    '0',
    '"a"',
    '[]',
    '{"a":[1,null]}',
    ` ${'['.repeat(100)}${']'.repeat(100)}\n`,
  ]) {
    test(`is read at any depth: ${text.slice(0, 20)}`, () => {
      assert.deepEqual(parseJsonText(text), JSON.parse(text));
    });
  }

  for (const text of ['', 'undefined', '{', '{"a":1}}', "{'a':1}"]) {
    test(`gives undefined where it is not JSON: ${text}`, () => {
      assert.equal(parseJsonText(text), undefined);
    });
  }
});
