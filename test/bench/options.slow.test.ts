import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseOptions } from '../../bench/options.ts';

const KNOWN = ['nearest', 'ingest'];

describe('the arguments of a bench run', () => {
  test('none mean every case', () => {
    const options = parseOptions([], KNOWN);
    assert.deepEqual(options, {
      ok: true,
      value: {
        cases: KNOWN,
        smoke: false,
        record: false,
        results: false,
        profile: false,
        seconds: 9,
        sizes: null,
      },
    });
  });

  test('cases, times and sizes are taken as given, sizes in ascending order', () => {
    const options = parseOptions(['ingest', '--seconds', '2.5', '--sizes', '5000,10', '--profile'], KNOWN);
    assert.ok(options.ok);
    assert.deepEqual(options.value, {
      cases: ['ingest'],
      smoke: false,
      record: false,
      results: false,
      profile: true,
      seconds: 2.5,
      sizes: [10, 5000],
    });
  });

  const rejected: readonly (readonly [argv: readonly string[], error: RegExp])[] = [
    [['fastest'], /no case fastest; there are nearest, ingest/],
    [['--fast'], /--fast/],
    [['--seconds', '0'], /--seconds/],
    [['--seconds', 'x'], /--seconds/],
    [['--sizes', '10,x'], /--sizes/],
    [['--sizes', '2000000'], /--sizes/],
    [['--sizes', ''], /--sizes/],
    [['--record', '--sizes', '10'], /--record is for the sizes that cases choose/],
    [['--results', 'nearest'], /--results measures nothing/],
    [['--smoke', '--record'], /--record is not for --smoke/],
    [['--smoke', '--sizes', '10'], /--smoke has its own/],
  ];
  for (const [argv, error] of rejected) {
    test(`rejected: ${argv.join(' ')}`, () => {
      const options = parseOptions(argv, KNOWN);
      assert.ok(!options.ok);
      assert.match(options.error.join('\n'), error);
    });
  }

  test('all errors are reported at once', () => {
    const options = parseOptions(['fastest', '--seconds', '0', '--sizes', '0'], KNOWN);
    assert.ok(!options.ok);
    assert.equal(options.error.length, 3);
  });
});
