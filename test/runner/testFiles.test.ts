import assert from 'node:assert/strict';
import { relative } from 'node:path';
import { describe, test } from 'node:test';
import { findTestFiles, selectTestFiles } from './testFiles.ts';

const FILES = [
  'test/ingest/killed.slow.test.ts',
  'test/devices/nearest.test.ts',
  'test/runner/options.test.ts',
];

describe('the test files', () => {
  test('are all files of the folder that end in .test.ts, each once', () => {
    const files = findTestFiles({ quick: false });
    assert.ok(files.includes(relative(process.cwd(), import.meta.filename)));
    assert.ok(files.length > 200);
    assert.equal(new Set(files).size, files.length);
  });

  test('of a quick run are some of them, and none that starts processes', () => {
    const [all, quick] = [false, true].map((quick) => findTestFiles({ quick })) as [string[], string[]];
    assert.ok(quick.every((file) => all.includes(file)));
    assert.ok(quick.length > 150);
    const unit = 'test/geo/';
    assert.deepEqual(
      quick.filter((file) => file.startsWith(unit)),
      all.filter((file) => file.startsWith(unit)),
    );
    assert.ok(!quick.some((file) => file.includes('.slow.')));
  });

  const cases: readonly [what: string, words: string[], selected: string[]][] = [
    ['no word: all', [], FILES],
    ['a word of the name', ['nearest'], ['test/devices/nearest.test.ts']],
    ['a folder', ['test/runner'], ['test/runner/options.test.ts']],
    ['a folder as the shell completes it', ['./test/runner/'], ['test/runner/options.test.ts']],
    ['a file', [import.meta.filename.replace('testFiles', 'options')], ['test/runner/options.test.ts']],
    [
      'any of several words',
      ['options', 'killed'],
      ['test/ingest/killed.slow.test.ts', 'test/runner/options.test.ts'],
    ],
  ];
  for (const [what, words, selected] of cases) {
    test(`selected by ${what}`, () => {
      assert.deepEqual(selectTestFiles(FILES, words), { ok: true, value: selected });
    });
  }

  test('are not run when one of the words is in no path', () => {
    const error = 'No test file has "neerest" in its path.';
    assert.deepEqual(selectTestFiles(FILES, ['options', 'neerest']), { ok: false, error });
  });
});
