import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { JsonElements } from '../../../src/ingest/formats/batchReader.ts';
import { runs } from '../../support/torture.ts';

/** The values that the elements give, or null when the text is refused. It comes in pieces of so many bytes. */
function read(text: string, pieceBytes = 1_000): unknown[] | null {
  const values: unknown[] = [];
  const elements = new JsonElements((text, count) => {
    const taken: unknown[] = JSON.parse(`[${text as string}]`);
    if (taken.length !== count) throw new SyntaxError('an element is empty');
    values.push(...taken);
  });
  try {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += pieceBytes) elements.push(bytes.subarray(at, at + pieceBytes));
    return elements.end() && !elements.isBroken ? values : null;
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
    ' [ ] ',
    '[ ]x',
    '[[],[]]',
    '\t[ 1 ,\r\n 2 ]\n',
    '[1,]',
    '[,1]',
    '[1 2]',
    '[1',
    '[1]]',
    '[1],[2]',
    '[{]},{}]',
    '{"a":[1,{"b":"]"}]}',
    '{} {}',
    '[{"a":"],["},{"b":"}\\"],"}]',
    '["\\\\\\"",1]',
    '["a","b]',
    '["a\nb"]',
    '[null,true,false,-1.5e3,"é🚚"]',
    '"[]"',
    '\u00a0[]',
  ];
  for (const text of texts) {
    test(JSON.stringify(text), () => {
      for (const pieceBytes of [1_000, 1, 2, 3]) assert.deepEqual(read(text, pieceBytes), readAtOnce(text));
    });
  }

  test('any JSON, whole or with characters changed', () => {
    const mark = fc.constantFrom('[', ']', '{', '}', ',', '"', '\\', ':', ' ', '', '1', 'x');
    const edit = fc.tuple(fc.nat(), mark, fc.boolean());
    let rejected = 0;
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue(), { maxLength: 5 }),
        fc.array(edit, { maxLength: 2 }),
        fc.integer({ min: 1, max: 40 }),
        (value, edits, pieceBytes) => {
          let text = JSON.stringify(value);
          for (const [place, character, insert] of edits) {
            const at = place % (text.length + 1);
            text = text.slice(0, at) + character + text.slice(insert ? at : at + 1);
          }
          const expected = readAtOnce(text);
          assert.deepEqual(read(text, pieceBytes), expected, text);
          if (expected === null) rejected++;
        },
      ),
      { seed: 20_260_314, numRuns: runs(1_250) },
    );
    assert.ok(rejected > 125, `only ${rejected} refused`);
  });
});
