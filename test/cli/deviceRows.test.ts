import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DeviceRows } from '../../src/cli/deviceRows.ts';

const IMEI = '350000000000017';

/** Rows by line: the patch, or why there is none; a text when the file as a whole is refused. */
function read(text: string): [number, object | string][] | string {
  const rows = new DeviceRows();
  const lines = text === '' ? [] : text.split('\n').map((line, index) => ({ number: index + 1, text: line }));
  const pushed = rows.push(lines);
  if (!pushed.ok) return pushed.error;
  const ended = rows.end();
  if (!ended.ok) return ended.error;
  return [...pushed.value, ...ended.value].map(({ line, patch }) => [
    line,
    patch.ok ? patch.value : patch.error,
  ]);
}

describe('CSV', () => {
  const cases: readonly [string, string, [number, object | string][] | string][] = [
    ['only a header', 'imei,name', []],
    [
      'all columns',
      `imei,name,plate,device_model,groups,organization\n${IMEI},Truck 1,RM 1,FMB920,a;b,true`,
      [
        [
          2,
          {
            imei: IMEI,
            name: 'Truck 1',
            plate: 'RM 1',
            model: 'FMB920',
            groups: ['a', 'b'],
            organization: true,
          },
        ],
      ],
    ],
    ['a missing column says nothing', `imei\n${IMEI}`, [[2, { imei: IMEI }]]],
    [
      'an empty cell clears',
      `imei,name,groups,organization\n${IMEI},,,`,
      [[2, { imei: IMEI, name: null, groups: [], organization: false }]],
    ],
    [
      'columns in any order and case, values with blanks',
      `Plate , IMEI\n RM 1 , ${IMEI} `,
      [[2, { imei: IMEI, plate: 'RM 1' }]],
    ],
    [
      'groups are trimmed, each once, blank ones left out',
      `imei,groups\n${IMEI}, a ; b;;a; `,
      [[2, { imei: IMEI, groups: ['a', 'b'] }]],
    ],
    [
      'TRUE as spreadsheets write it',
      `imei,organization\n${IMEI},TRUE\n${IMEI},False`,
      [
        [2, { imei: IMEI, organization: true }],
        [3, { imei: IMEI, organization: false }],
      ],
    ],
    [
      'neither true nor false',
      `imei,organization\n${IMEI},yes`,
      [[2, 'organization is neither true nor false']],
    ],
    ['no IMEI', 'imei,name\n,x', [[2, 'imei is not an IMEI of 14 to 17 digits']]],
    ['an IMEI too short', 'imei\n3500000000000', [[2, 'imei is not an IMEI of 14 to 17 digits']]],
    ['an IMEI as spreadsheets break it', 'imei\n3.5E+14', [[2, 'imei is not an IMEI of 14 to 17 digits']]],
    [
      'a value too long',
      `imei,name\n${IMEI},${'x'.repeat(101)}\n${IMEI},${'🚚'.repeat(100)}`,
      [
        [2, 'name is longer than 100 characters'],
        [3, { imei: IMEI, name: '🚚'.repeat(100) }],
      ],
    ],
    [
      'control characters',
      `imei,plate\n${IMEI},a\u0000b\n${IMEI},"a\nb"`,
      [
        [2, 'plate holds control characters'],
        [3, 'plate holds control characters'],
      ],
    ],
    [
      'bytes that were no UTF-8',
      `imei,name,groups\n${IMEI},a\ufffd,\n${IMEI},,b\ufffd`,
      [
        [2, 'name holds bytes that are no UTF-8'],
        [3, 'groups holds bytes that are no UTF-8'],
      ],
    ],
    [
      'too many groups',
      `imei,groups\n${IMEI},${Array.from({ length: 51 }, (_, index) => index).join(';')}`,
      [[2, 'groups has more than 50 groups']],
    ],
    [
      'a group too long',
      `imei,groups\n${IMEI},${'x'.repeat(101)}`,
      [[2, 'groups has a group that is longer than 100 characters']],
    ],
    [
      'too few and too many values',
      `imei,name\n${IMEI}\n${IMEI},a,b`,
      [
        [2, 'has 1 values, the header has 2 columns'],
        [3, 'has 3 values, the header has 2 columns'],
      ],
    ],
    [
      'a wrong line costs no other',
      `imei,name\nx,y\n${IMEI},a"b\n${IMEI},z`,
      [
        [2, 'imei is not an IMEI of 14 to 17 digits'],
        [3, 'a quote stands in the middle of a value, or text follows its end'],
        [4, { imei: IMEI, name: 'z' }],
      ],
    ],
    ['lines above the header', `\n\nimei\n${IMEI}`, [[4, { imei: IMEI }]]],
    [
      'an unknown column',
      'imei,colour,name',
      'the header has unknown columns: "colour"; known are imei, name, plate, device_model, groups, organization',
    ],
    [
      'another separator',
      'imei;name',
      'the header has unknown columns: "imei;name"; known are imei, name, plate, device_model, groups, organization',
    ],
    ['a column twice', 'imei,name,Name', 'the header has a column twice'],
    ['no column imei', 'name,plate', 'the header has no column imei'],
    [
      'a broken header',
      'im"ei,name',
      'the header cannot be read: a quote stands in the middle of a value, or text follows its end',
    ],
    ['nothing', '', 'the file is empty'],
    ['nothing but line ends', '\n\n', 'the file is empty'],
    [
      'a JSON array',
      '[{"imei":"1"}]',
      'the file is a JSON array; write one object on each line instead (NDJSON)',
    ],
  ];
  for (const [name, text, expected] of cases) {
    test(name, () => assert.deepEqual(read(text), expected));
  }
});

describe('NDJSON', () => {
  const cases: readonly [string, string, [number, object | string][] | string][] = [
    [
      'all fields',
      JSON.stringify({
        imei: IMEI,
        name: ' a ',
        plate: null,
        device_model: 'x',
        groups: ['g', ' g '],
        organization: false,
      }),
      [[1, { imei: IMEI, name: 'a', plate: null, model: 'x', groups: ['g'], organization: false }]],
    ],
    [
      'null clears',
      JSON.stringify({ imei: IMEI, groups: null, organization: null }),
      [[1, { imei: IMEI, groups: [], organization: false }]],
    ],
    [
      'empty lines',
      `\n{"imei":"${IMEI}"}\n\n{"imei":"${IMEI}"}\n`,
      [
        [2, { imei: IMEI }],
        [4, { imei: IMEI }],
      ],
    ],
    ['a number as IMEI', `{"imei":${IMEI}}`, [[1, 'imei must be a JSON string']]],
    ['no IMEI', '{}', [[1, 'imei is not an IMEI of 14 to 17 digits']]],
    ['groups as text', `{"imei":"${IMEI}","groups":"a;b"}`, [[1, 'groups must be an array of strings']]],
    ['groups of numbers', `{"imei":"${IMEI}","groups":[1]}`, [[1, 'groups must be an array of strings']]],
    ['a number as name', `{"imei":"${IMEI}","name":5}`, [[1, 'name must be a JSON string']]],
    ['a blank name', `{"imei":"${IMEI}","name":" "}`, [[1, 'name is blank']]],
    ['half a character', `{"imei":"${IMEI}","name":"\\ud83d"}`, [[1, 'name holds control characters']]],
    [
      'the word true',
      `{"imei":"${IMEI}","organization":"true"}`,
      [[1, 'organization is neither true nor false']],
    ],
    [
      'an unknown field',
      `{"imei":"${IMEI}","colour":"red"}`,
      [[1, 'has unknown fields: "colour"; known are imei, name, plate, device_model, groups, organization']],
    ],
    [
      'a field named like a part of every object',
      `{"imei":"${IMEI}","__proto__":1}`,
      [
        [
          1,
          'has unknown fields: "__proto__"; known are imei, name, plate, device_model, groups, organization',
        ],
      ],
    ],
    [
      'no JSON, no object',
      `{"imei":\n[1]\n5\nnull\n{"imei":"${IMEI}"}`,
      [
        [1, 'is no JSON object'],
        [2, 'is no JSON object'],
        [3, 'is no JSON object'],
        [4, 'is no JSON object'],
        [5, { imei: IMEI }],
      ],
    ],
  ];
  for (const [name, text, expected] of cases) {
    test(name, () => assert.deepEqual(read(text), expected));
  }
});
