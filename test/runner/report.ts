import { relative } from 'node:path';
import { inspect, stripVTControlCharacters } from 'node:util';

/** What is used of the events of node:test. */
export interface RunEvent {
  readonly type: string;
  readonly data: {
    readonly name: string;
    /** 0 for the suite of a file and for a process of the runner, more for what is in a file. */
    readonly nesting: number;
    readonly file?: string;
    readonly line?: number;
    readonly skip?: string | boolean;
    readonly message?: string;
    readonly details?: {
      readonly type?: string;
      readonly duration_ms: number;
      readonly error?: Error & { readonly failureType?: string };
    };
    readonly summary?: { readonly files: readonly FileCoverage[]; readonly totals: Coverage };
  };
}

interface Coverage {
  readonly coveredLinePercent: number;
  readonly coveredBranchPercent: number;
}

interface FileCoverage extends Coverage {
  readonly path: string;
  readonly lines: readonly { readonly line: number; readonly count: number }[];
}

const LINE_WIDTH = 80;
const SLOWEST = 5;
const UNFINISHED = 10;
/** Failures that follow from another one: a subtest of the test failed, or the suite around it ended early. */
const CONSEQUENCES = ['subtestsFailed', 'cancelledByParent'];

const print = (text: string): void => void process.stdout.write(text);

/** What a run came to. */
export interface Outcome {
  /** The files with a failed test. */
  readonly failedFiles: readonly string[];
  /** Whether every file has run, or with a pattern of names those with such tests, and no process failed for itself. */
  readonly isComplete: boolean;
}

/**
 * Prints a run: a sign per file while it runs, each failure in full when it comes, and the totals at the end. `tells`: also
 * what tests say of themselves, such as figures.
 */
export async function report(
  events: AsyncIterable<RunEvent>,
  files: readonly string[],
  isPart: boolean,
  tells = false,
): Promise<Outcome> {
  const sinceMs = performance.now();
  const seconds = new Map<string, number>();
  const failedFiles = new Set<string>();
  const failedProcesses = new Set<string>();
  const skipped = new Map<string, number>();
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for await (const { type, data } of events) {
    const { name, nesting, file = '', line, skip, details, message = '', summary } = data;
    if (type === 'test:stdout' || type === 'test:stderr') process.stderr.write(message);
    const isTold = tells && file !== '';
    if (type === 'test:diagnostic' && (isTold || message.startsWith('Error: '))) print(`\n${message}\n`);
    if (summary !== undefined) printCoverage(summary.files, summary.totals);
    if (type !== 'test:complete') continue;
    const path = relative(process.cwd(), file);
    const error = details?.error;
    if (file === name) {
      // The end of a process. It fails for itself when it was killed, or when an error reached no test.
      if (error?.failureType === 'testCodeFailure')
        failedProcesses.add(`${path}: one of its processes failed`);
    } else if (skip !== undefined && skip !== false) {
      counts.skipped += 1;
      const text = skip === true ? path : `${path}: ${skip}`;
      skipped.set(text, (skipped.get(text) ?? 0) + 1);
    } else if (error !== undefined) {
      failedFiles.add(nesting === 0 ? name : path);
      if (!CONSEQUENCES.includes(error.failureType ?? '')) {
        counts.failed += 1;
        const text = stripVTControlCharacters(inspect(error.cause ?? error)).replaceAll(/^(?=.)/gm, '  ');
        print(`\n\nFAILED ${nesting === 0 ? name : `${path}:${line} ${name}`}\n${text}\n\n`);
      }
    } else if (details?.type !== 'suite') counts.passed += 1;
    if (nesting > 0 || !files.includes(name)) continue;
    seconds.set(name, (details?.duration_ms ?? 0) / 1_000);
    print(error === undefined ? '.' : 'F');
    if (seconds.size % LINE_WIDTH === 0) print(` ${seconds.size} of ${files.length}\n`);
  }
  print('\n\n');
  for (const [text, tests] of skipped) print(`skipped ${tests} of ${text}\n`);
  const slowest = [...seconds].sort(([, a], [, b]) => b - a).slice(0, SLOWEST);
  if (slowest.length > 0)
    print(`slowest: ${slowest.map(([file, s]) => `${file} ${s.toFixed(0)} s`).join(', ')}\n`);
  for (const text of [...failedFiles, ...failedProcesses]) print(`FAILED ${text}\n`);
  const unfinished = isPart ? [] : files.filter((file) => !seconds.has(file));
  for (const file of unfinished.slice(0, UNFINISHED)) print(`NOT FINISHED ${file}\n`);
  const tests = counts.passed + counts.failed + counts.skipped;
  print(
    `${seconds.size} of ${files.length} files, ${tests} tests: ${counts.passed} passed, ${counts.failed} failed, ` +
      `${counts.skipped} skipped, in ${((performance.now() - sinceMs) / 1_000).toFixed(0)} s\n`,
  );
  return {
    failedFiles: [...failedFiles],
    isComplete: failedProcesses.size === 0 && unfinished.length === 0 && tests > 0,
  };
}

function printCoverage(files: readonly FileCoverage[], totals: Coverage): void {
  const percents = (of: Coverage): string =>
    [of.coveredLinePercent, of.coveredBranchPercent]
      .map((percent) => percent.toFixed(1).padStart(6))
      .join('');
  print('\n\n lines branches\n');
  for (const file of files) {
    const missed = file.lines.filter(({ count }) => count === 0).map(({ line }) => line);
    print(`${percents(file)}  ${relative(process.cwd(), file.path)}  ${missed.join(' ')}\n`);
  }
  print(`${percents(totals)}  all files\n`);
}
