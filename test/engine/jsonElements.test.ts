import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { jsonElements, ndjsonLines } from '../../src/engine/jsonElements.ts';

/** The values that the pieces give, or null when the text is refused. */
function read(text: string): unknown[] | null {
  try {
    return Array.from(jsonElements(text), (piece) => {
      if (piece === null) throw new SyntaxError();
      return JSON.parse(piece) as unknown;
    });
  } catch (error) {
    assert.ok(error instanceof SyntaxError);
    return null;
  }
}

/** The same by one JSON.parse of everything. */
function readAtOnce(text: string): unknown[] | null {
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value)) return value;
    return typeof value === 'object' && value !== null ? [value] : null;
  } catch {
    return null;
  }
}

describe('texts are read or refused as one JSON.parse does', () => {
  const texts = [
    '',
    ' ',
    '[]',
    ' [ ] ',
    '[ ]x',
    '[] []',
    '[[]]',
    '[[],[]]',
    '[1]',
    '[1,2]',
    '\t[ 1 ,\r\n 2 ]\n',
    '[,]',
    '[1,]',
    '[,1]',
    '[1,,2]',
    '[1 2]',
    '[1',
    '[1,',
    '[',
    ']',
    '[1]]',
    '[1],[2]',
    '[{]}',
    '[{]},{}]',
    '[}',
    '[1}',
    '{"a":[1,{"b":"]"}]}',
    '{} {}',
    '{}]',
    '{',
    '[{"a":"],["},{"b":"}\\"],"}]',
    '["\\\\"]',
    '["\\\\\\"",1]',
    '["\\"]',
    '["',
    '["a","b]',
    '["a\nb"]',
    '[null,true,false,-1.5e3,"é🚚"]',
    '[nul]',
    'null',
    '5',
    '"[]"',
    '\u00a0[]',
    '[\u00a01]',
  ];
  for (const text of texts) {
    test(JSON.stringify(text), () => assert.deepEqual(read(text), readAtOnce(text)));
  }

  test('any JSON, whole or with characters changed', () => {
    const mark = fc.constantFrom('[', ']', '{', '}', ',', '"', '\\', ':', ' ', '', '1', 'x');
    const edit = fc.tuple(fc.nat(), mark, fc.boolean());
    let refused = 0;
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue(), { maxLength: 5 }),
        fc.array(edit, { maxLength: 2 }),
        (value, edits) => {
          let text = JSON.stringify(value);
          for (const [place, character, insert] of edits) {
            const at = place % (text.length + 1);
            text = text.slice(0, at) + character + text.slice(insert ? at : at + 1);
          }
          const expected = readAtOnce(text);
          assert.deepEqual(read(text), expected, text);
          if (expected === null) refused++;
        },
      ),
      { seed: 20_260_314, numRuns: 5_000 },
    );
    assert.ok(refused > 500, `only ${refused} refused`);
  });
});

test('lines are the text between line feeds, without the blank ones', () => {
  const cases: [text: string, lines: string[]][] = [
    ['', []],
    ['\n \r\n\t\n', []],
    ['a', ['a']],
    ['a\nb', ['a', 'b']],
    ['a\n\n\nb\n', ['a', 'b']],
    ['a\r\nb\r\n', ['a\r', 'b\r']],
    ['\n a b \n', ['a b ']],
    ['a\rb', ['a\rb']],
  ];
  for (const [text, lines] of cases) assert.deepEqual([...ndjsonLines(text)], lines, JSON.stringify(text));
});
