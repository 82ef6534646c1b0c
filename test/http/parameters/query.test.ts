import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { LENGTH_MESSAGE, parseDecimal, REPEATED_MESSAGE, readQuery } from '../../../src/http/parameters.ts';
import { runs } from '../../support/torture.ts';

/** The WHATWG parser (URL Standard, application/x-www-form-urlencoded), with the rule against repetition. */
function oracle(query: string): Record<string, string> | null {
  const all = [...new URLSearchParams(`?${query}`)];
  return new Set(all.map(([name]) => name)).size < all.length ? null : Object.fromEntries(all);
}

const parsed = (target: string) => {
  const read = readQuery(target, null);
  return 'query' in read ? Object.fromEntries(Object.entries(read.query)) : null;
};

test('a query is read as the URL standard has it, escaped or plain', () => {
  const piece = fc.constantFrom(
    ...['a', 'b', 'lat', '=', '=', '&', '&', '?', '%41', '%', '+', '1', '-', 'é', '#', ''],
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const query = pieces.join('');
      assert.deepEqual(parsed(`/path?${query}`), oracle(query), query);
    }),
    { numRuns: runs(500) },
  );
});

describe('hard cases', () => {
  const cases: [target: string, expected: Record<string, string> | null][] = [
    ['/a', {}],
    ['/a?', {}],
    ['/a?&&', {}],
    ['/a?x', { x: '' }],
    ['/a?x=', { x: '' }],
    ['/a?=x', { '': 'x' }],
    ['/a?=', { '': '' }],
    ['/a?x=1=2', { x: '1=2' }],
    ['/a?x=1&y=2', { x: '1', y: '2' }],
    ['/a?x=1&x=1', null],
    ['/a?x&x', null],
    ['/a?%78=1&x=2', null],
    ['/a?x=+1', { x: ' 1' }],
    ['/a?x=%2B1', { x: '+1' }],
    ['/a?x=?', { x: '?' }],
    ['/a??x=1', { '?x': '1' }],
    ['/a??x=%31', { '?x': '1' }],
    ['/a?constructor=1', { constructor: '1' } as never],
  ];
  for (const [target, expected] of cases) {
    test(target, () => assert.deepEqual(parsed(target), expected));
  }

  test('a parameter called __proto__ is a parameter like any other', () => {
    assert.deepEqual(Object.entries(parsed('/a?__proto__=1') ?? {}), [['__proto__', '1']]);
    assert.equal(parsed('/a?__proto__=1&__proto__=2'), null);
    const read = readQuery('/a?x=1', null);
    assert.ok('query' in read && read.query['toString'] === undefined);
  });
});

describe('no parameter is longer than 2048 characters', () => {
  const long = 'x'.repeat(2_048);
  const rows: readonly (readonly [title: string, target: string, expected: object | string])[] = [
    ['a value of so many', `/a?x=${long}`, { x: long }],
    ['several of them', `/a?x=${long}&y=${long}`, { x: long, y: long }],
    ['one more', `/a?y=1&x=${long}x&z=1`, LENGTH_MESSAGE],
    ['as sent, not as decoded', `/a?x=${'%41'.repeat(1_000)}`, LENGTH_MESSAGE],
    ['a name', `/a?${long}x`, LENGTH_MESSAGE],
    ['a path', `/${long}`, LENGTH_MESSAGE],
    ['a path before a query', `/${long}?x=1`, LENGTH_MESSAGE],
    ['a path of so many', `/${long.slice(1)}?x=1`, { x: '1' }],
    ['twice', '/a?x=1&x=1', REPEATED_MESSAGE],
  ];
  for (const [title, target, expected] of rows) {
    test(title, () => {
      const read = readQuery(target, null);
      assert.deepEqual('query' in read ? { ...read.query } : read.problem, expected);
    });
  }
});

test('a number is decimal notation', () => {
  const rows: readonly (readonly [text: string, value: number | null])[] = [
    ['1', 1],
    ['1.', 1],
    ['1.5', 1.5],
    ['.5', 0.5],
    ['-0.5', -0.5],
    ['+7', 7],
    ['9'.repeat(400), Number.POSITIVE_INFINITY],
    ['.', null],
    ['', null],
    ['1.5.', null],
    ['1e3', null],
    ['0x1', null],
    [' 1', null],
    [`${'1'.repeat(2_000)}x`, null],
  ];
  for (const [text, value] of rows) assert.equal(parseDecimal(text), value, text.slice(0, 20));
});
