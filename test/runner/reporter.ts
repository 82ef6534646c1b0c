import { relative } from 'node:path';
import { Transform } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect, stripVTControlCharacters } from 'node:util';
import type { Counts, FileOrder, FileResult, SkippedTest } from './messages.ts';

/** What is used of the events of node:test. */
interface TestEvent {
  readonly type: string;
  readonly data: {
    readonly name: string;
    /** 0 for the suite of a file, more for what is in it. */
    readonly nesting: number;
    readonly file?: string;
    readonly line?: number;
    readonly skip?: string | boolean;
    readonly details?: { readonly type?: string; readonly error?: TestError };
  };
}

interface TestError extends Error {
  readonly failureType?: string;
  readonly cause?: unknown;
}

const POLL_MS = 10;
/** Failures that follow from another one: a subtest of the test failed, or the suite around it ended early. */
const CONSEQUENCES = ['subtestsFailed', 'cancelledByParent'];

let running: RunningFile | null = null;

/** Must be called before the suite of a test file is made. */
export function beginFile(order: FileOrder): void {
  running = new RunningFile(order);
}

/** The reporter of node:test in a worker: sends the result of a test file as soon as its suite has ended. */
export default new Transform({
  writableObjectMode: true,
  transform: (event: TestEvent, _, done) => {
    takeEvent(event).then(() => done(), done);
  },
});

async function takeEvent({ type, data }: TestEvent): Promise<void> {
  if (type === 'test:start') running?.start(data);
  if (type !== 'test:pass' && type !== 'test:fail') return;
  running?.add(data);
  if (data.nesting === 0) process.send?.(await running?.end());
}

/** Errors that nothing has caught. Those of a test that runs fail it; node:test only notes the others. */
const strayErrors: unknown[] = [];
process.on('uncaughtException', (error) => strayErrors.push(error));
process.on('unhandledRejection', (error) => strayErrors.push(error));

/** What is known of a test file that runs. */
class RunningFile {
  readonly #order: FileOrder;
  readonly #sinceMs = performance.now();
  readonly #openBefore = openResources();
  readonly #counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  readonly #failures: string[] = [];
  readonly #skipped: SkippedTest[] = [];
  readonly #failedBy = new Set<unknown>();
  /** The names around the test that is reported, from that of the file. */
  #names: string[] = [];

  constructor(order: FileOrder) {
    this.#order = order;
  }

  start({ name, nesting }: TestEvent['data']): void {
    this.#names = [...this.#names.slice(0, nesting), name];
  }

  add({ name, nesting, skip, file, line, details }: TestEvent['data']): void {
    const isSuite = details?.type === 'suite';
    if (skip !== undefined && skip !== false) {
      this.#counts.skipped += 1;
      this.#skipped.push({ name, reason: skip === true ? '' : String(skip) });
    } else if (details?.error !== undefined) {
      this.#failedBy.add(details.error.cause);
      if (CONSEQUENCES.includes(details.error.failureType ?? '')) return;
      const isWhole = nesting === 0 || file === undefined;
      const place = isWhole ? this.#order.file : `${relative(process.cwd(), file)}:${line} `;
      const names = nesting === 0 ? '' : [...this.#names.slice(1, nesting), name].join(' > ');
      this.#fail(`${place}${names}`, details.error.cause ?? details.error);
    } else if (!isSuite) {
      this.#counts.passed += 1;
    }
  }

  /** Waits until nothing of the file is open. */
  async end(): Promise<FileResult> {
    const { file, openLimitMs } = this.#order;
    const untilMs = performance.now() + openLimitMs;
    while (this.#leftOpen().length > 0 && performance.now() < untilMs) {
      await sleep(POLL_MS, undefined, { ref: false });
    }
    const open = this.#leftOpen();
    if (open.length > 0) this.#fail(file, `It has ended and leaves open: ${open.join(', ')}.`);
    for (const error of strayErrors.splice(0)) {
      if (!this.#failedBy.has(error)) this.#fail(`${file}, outside of its tests`, error);
    }
    return {
      file,
      counts: this.#counts,
      failures: this.#failures,
      skipped: this.#skipped,
      seconds: (performance.now() - this.#sinceMs) / 1_000,
    };
  }

  #fail(where: string, error: unknown): void {
    const text = typeof error === 'string' ? error : inspect(error);
    this.#counts.failed += 1;
    this.#failures.push(stripVTControlCharacters(`${where}\n${text.replaceAll(/^/gm, '  ')}`));
  }

  #leftOpen(): string[] {
    const open = openResources();
    for (const known of this.#openBefore) {
      const index = open.indexOf(known);
      if (index !== -1) open.splice(index, 1);
    }
    return open;
  }
}

/** What keeps this process running. Its two outputs are opened when they are first used, so they are used here. */
function openResources(): string[] {
  void process.stdout;
  void process.stderr;
  return process.getActiveResourcesInfo();
}
