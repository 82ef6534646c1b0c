import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ImportRows } from '../../src/cli/commands/deviceImport.ts';

const IMEI = '350000000000017';
const NO_IMEI = 'imei is not an IMEI of 14 to 17 digits';
const KNOWN = 'known are imei, name, plate, device_model, groups, organization';
const NO_BOOLEAN = 'organization is neither true nor false';
const STRAY = 'a quote stands in the middle of a value, or text follows its end';
const FILE = 0;

/** The patch of a line or its error; of line 0 why the whole file is refused. */
type Row = readonly [line: number, patch: object | string];
type Case = readonly [name: string, text: string, ...rows: Row[]];

function read(text: string): Row[] {
  const rows = new ImportRows();
  const lines = text === '' ? [] : text.split('\n').map((line, index) => ({ number: index + 1, text: line }));
  const pushed = rows.push(lines);
  if (!pushed.ok) return [[FILE, pushed.error]];
  const ended = rows.end();
  if (!ended.ok) return [[FILE, ended.error]];
  return [...pushed.value, ...ended.value].map(({ line, patch }) => [
    line,
    patch.ok ? patch.value : patch.error,
  ]);
}

function testAll(cases: readonly Case[]): void {
  for (const [name, text, ...rows] of cases) {
    const expected = rows.map(([line, patch]) => [
      line,
      typeof patch === 'string' ? patch : { imei: IMEI, ...patch },
    ]);
    test(name, () => assert.deepEqual(read(text), expected));
  }
}

describe('CSV', () => {
  const all = { name: 'Truck 1', plate: 'RM 1', model: 'FMB920', groups: ['a', 'b'], organization: true };
  const names = `${IMEI},${'x'.repeat(101)}\n${IMEI},${'🚚'.repeat(100)}`;
  const groups = Array.from({ length: 51 }, (_, index) => index).join(';');
  testAll([
    ['only a header', 'imei,name'],
    [
      'all columns',
      `imei,name,plate,device_model,groups,organization\n${IMEI},Truck 1,RM 1,FMB920,a;b,true`,
      [2, all],
    ],
    ['a missing column says nothing', `imei\n${IMEI}`, [2, {}]],
    [
      'an empty cell clears',
      `imei,name,groups,organization\n${IMEI},,,`,
      [2, { name: null, groups: [], organization: false }],
    ],
    [
      'columns in any order and case, values with blanks',
      `Plate , IMEI\n RM 1 , ${IMEI} `,
      [2, { plate: 'RM 1' }],
    ],
    [
      'groups are trimmed, each once, blank ones left out',
      `imei,groups\n${IMEI}, a ; b;;a; `,
      [2, { groups: ['a', 'b'] }],
    ],
    [
      'TRUE as spreadsheets write it',
      `imei,organization\n${IMEI},TRUE\n${IMEI},False`,
      [2, { organization: true }],
      [3, { organization: false }],
    ],
    ['neither true nor false', `imei,organization\n${IMEI},yes`, [2, NO_BOOLEAN]],
    ['no IMEI', 'imei,name\n,x', [2, NO_IMEI]],
    ['an IMEI too short', 'imei\n3500000000000', [2, NO_IMEI]],
    ['an IMEI as spreadsheets break it', 'imei\n3.5E+14', [2, NO_IMEI]],
    [
      'a value too long',
      `imei,name\n${names}`,
      [2, 'name is longer than 100 characters'],
      [3, { name: '🚚'.repeat(100) }],
    ],
    [
      'control characters',
      `imei,plate\n${IMEI},a\u0000b\n${IMEI},"a\nb"`,
      [2, 'plate holds control characters'],
      [3, 'plate holds control characters'],
    ],
    [
      'bytes that were no UTF-8',
      `imei,name,groups\n${IMEI},a\ufffd,\n${IMEI},,b\ufffd`,
      [2, 'name holds bytes that are not UTF-8'],
      [3, 'groups holds bytes that are not UTF-8'],
    ],
    ['too many groups', `imei,groups\n${IMEI},${groups}`, [2, 'groups has more than 50 groups']],
    [
      'a group too long',
      `imei,groups\n${IMEI},${'x'.repeat(101)}`,
      [2, 'groups has a group that is longer than 100 characters'],
    ],
    [
      'too few and too many values',
      `imei,name\n${IMEI}\n${IMEI},a,b`,
      [2, 'has 1 values, the header has 2 columns'],
      [3, 'has 3 values, the header has 2 columns'],
    ],
    [
      'a wrong line costs no other',
      `imei,name\nx,y\n${IMEI},a"b\n${IMEI},z`,
      [2, NO_IMEI],
      [3, STRAY],
      [4, { name: 'z' }],
    ],
    ['lines above the header', `\n\nimei\n${IMEI}`, [4, {}]],
    ['an unknown column', 'imei,colour,name', [FILE, `the header has unknown columns: "colour"; ${KNOWN}`]],
    ['another separator', 'imei;name', [FILE, `the header has unknown columns: "imei;name"; ${KNOWN}`]],
    ['a column twice', 'imei,name,Name', [FILE, 'the header has a column twice']],
    ['no column imei', 'name,plate', [FILE, 'the header has no column imei']],
    ['a broken header', 'im"ei,name', [FILE, `the header cannot be read: ${STRAY}`]],
    ['nothing', '', [FILE, 'the file is empty']],
    ['nothing but line ends', '\n\n', [FILE, 'the file is empty']],
    [
      'a JSON array',
      '[{"imei":"1"}]',
      [FILE, 'the file is a JSON array; write one object on each line instead (NDJSON)'],
    ],
  ]);
});

describe('NDJSON', () => {
  const line = (fields: object): string => JSON.stringify({ imei: IMEI, ...fields });
  const sent = { name: ' a ', plate: null, device_model: 'x', groups: ['g', ' g '], organization: false };
  testAll([
    [
      'all fields',
      line(sent),
      [1, { name: 'a', plate: null, model: 'x', groups: ['g'], organization: false }],
    ],
    ['null clears', line({ groups: null, organization: null }), [1, { groups: [], organization: false }]],
    ['empty lines', `\n${line({})}\n\n${line({})}\n`, [2, {}], [4, {}]],
    ['a number as IMEI', `{"imei":${IMEI}}`, [1, 'imei must be a JSON string']],
    ['no IMEI', '{}', [1, NO_IMEI]],
    ['groups as text', line({ groups: 'a;b' }), [1, 'groups must be an array of strings']],
    ['groups of numbers', line({ groups: [1] }), [1, 'groups must be an array of strings']],
    ['a number as name', line({ name: 5 }), [1, 'name must be a JSON string']],
    ['a blank name', line({ name: ' ' }), [1, 'name is blank']],
    ['half a character', `{"imei":"${IMEI}","name":"\\ud83d"}`, [1, 'name holds control characters']],
    ['the word true', line({ organization: 'true' }), [1, NO_BOOLEAN]],
    ['an unknown field', line({ colour: 'red' }), [1, `has unknown fields: "colour"; ${KNOWN}`]],
    [
      'a field named like a part of every object',
      `{"imei":"${IMEI}","__proto__":1}`,
      [1, `has unknown fields: "__proto__"; ${KNOWN}`],
    ],
    ...['{"imei":', '[1]', '5', 'null'].map(
      (text): Case => [
        `no JSON object: ${text}`,
        `${line({})}\n${text}\n${line({})}`,
        [1, {}],
        [2, 'is not a JSON object'],
        [3, {}],
      ],
    ),
  ]);
});
