import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FileResult } from './messages.ts';
import { Report } from './report.ts';

const resultOf = (file: string, own: Partial<FileResult> = {}): FileResult => ({
  file,
  counts: { passed: 10, failed: 0, skipped: 0 },
  failures: [],
  skipped: [],
  seconds: 1,
  ...own,
});

function reportOf(files: number, results: readonly FileResult[], note: string | null = null) {
  let text = '';
  const report = new Report(files, (more) => {
    text += more;
  });
  for (const result of results) report.take(result);
  report.end(61.4, note);
  return { text, isGreen: report.isGreen };
}

describe('the report of a test run', () => {
  test('of 400 green files fits one screen, and ends with the totals', () => {
    const { text, isGreen } = reportOf(
      400,
      Array.from({ length: 400 }, (_, i) => resultOf(`test/${i}.test.ts`)),
    );
    assert.ok(isGreen);
    assert.ok(text.split('\n').length < 12, text);
    assert.ok(text.endsWith('\n400 files, 4000 tests: 4000 passed, 0 failed, 0 skipped, in 61 s\n'), text);
  });

  test('names what was skipped and why, once for each file', () => {
    const skipped = ['a', 'b'].map((name) => ({ name, reason: 'there is no Redis' }));
    const { text, isGreen } = reportOf(1, [
      resultOf('test/a.test.ts', { counts: { passed: 1, failed: 0, skipped: 2 }, skipped }),
    ]);
    assert.ok(isGreen);
    assert.match(text, /^skipped 2 of test\/a\.test\.ts: there is no Redis$/m);
    assert.match(text, /^1 files, 3 tests: 1 passed, 0 failed, 2 skipped, in 61 s$/m);
  });

  test('has each failure in full when it comes, and the names of the failed files at the end', () => {
    const failures = ['test/a.test.ts:3 it works\n  Error: it does not\n    at there'];
    const { text, isGreen } = reportOf(2, [
      resultOf('test/a.test.ts', { counts: { passed: 1, failed: 1, skipped: 0 }, failures }),
      resultOf('test/b.test.ts'),
    ]);
    assert.ok(!isGreen);
    assert.ok(text.startsWith(`F\n\nFAILED ${failures[0]}\n\n.\n`), text);
    assert.match(
      text,
      /^FAILED test\/a\.test\.ts\n2 files, 12 tests: 11 passed, 1 failed, 0 skipped, in 61 s$/m,
    );
  });

  test('is not green when a file has no result, and says why the run ended early', () => {
    const { text, isGreen } = reportOf(2, [resultOf('test/a.test.ts')], 'The tests were ended by SIGINT.');
    assert.ok(!isGreen);
    assert.match(text, /^1 of 2 files, .*\nThe tests were ended by SIGINT\.$/m);
  });

  test('is not green when the process of a green file fails at its end', () => {
    const late = resultOf('test/a.test.ts', { failures: ['test/a.test.ts\n  Its process failed.'] });
    assert.ok(!reportOf(1, [resultOf('test/a.test.ts'), late]).isGreen);
  });
});
