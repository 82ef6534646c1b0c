import type { Counts, FileResult } from './messages.ts';

const LINE_WIDTH = 80;
const SLOWEST = 5;

/** Prints a run: a sign per file while it runs, each failure in full, and at the end the totals. */
export class Report {
  readonly #files: number;
  readonly #write: (text: string) => void;
  readonly #results: FileResult[] = [];
  #column = 0;

  constructor(files: number, write: (text: string) => void) {
    this.#files = files;
    this.#write = write;
  }

  /** Whether every file has run, and none of its tests has failed. */
  get isGreen(): boolean {
    return this.#count === this.#files && this.#results.every(({ failures }) => failures.length === 0);
  }

  /** Files that have run; one may have a second result, if its process fails when it ends. */
  get #count(): number {
    return new Set(this.#results.map(({ file }) => file)).size;
  }

  take(result: FileResult): void {
    this.#results.push(result);
    const isGreen = result.failures.length === 0;
    this.#sign(isGreen ? '.' : 'F');
    if (isGreen) return;
    this.#endLine();
    this.#write(`\n${result.failures.map((failure) => `FAILED ${failure}\n`).join('\n')}\n`);
  }

  /** The totals, with what was skipped and why; `note` says why the run ended early. */
  end(seconds: number, note: string | null): void {
    this.#endLine();
    this.#write(
      `\n${[...this.#skipped(), ...this.#slowest(), ...this.#failed(), this.#totals(seconds)].join('\n')}\n`,
    );
    if (note !== null) this.#write(`${note}\n`);
  }

  #sign(sign: string): void {
    this.#write(sign);
    this.#column += 1;
    if (this.#column < LINE_WIDTH) return;
    this.#write(` ${this.#count} of ${this.#files}`);
    this.#endLine();
  }

  #endLine(): void {
    if (this.#column > 0) this.#write('\n');
    this.#column = 0;
  }

  #skipped(): string[] {
    const byReason = Map.groupBy(
      this.#results.flatMap(({ file, skipped }) => skipped.map(({ reason }) => ({ file, reason }))),
      ({ file, reason }) => `${file}${reason === '' ? '' : `: ${reason}`}`,
    );
    return [...byReason].map(([text, tests]) => `skipped ${tests.length} of ${text}`);
  }

  #slowest(): string[] {
    const slowest = [...this.#results].sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
    if (this.#results.length <= SLOWEST) return [];
    return [`slowest: ${slowest.map(({ file, seconds }) => `${file} ${seconds.toFixed(0)} s`).join(', ')}`];
  }

  #failed(): string[] {
    return this.#results.filter(({ failures }) => failures.length > 0).map(({ file }) => `FAILED ${file}`);
  }

  #totals(seconds: number): string {
    const total: Counts = { passed: 0, failed: 0, skipped: 0 };
    for (const { counts } of this.#results) {
      total.passed += counts.passed;
      total.failed += counts.failed;
      total.skipped += counts.skipped;
    }
    const { passed, failed, skipped } = total;
    const files = this.#count === this.#files ? `${this.#files}` : `${this.#count} of ${this.#files}`;
    const tests = passed + failed + skipped;
    return `${files} files, ${tests} tests: ${passed} passed, ${failed} failed, ${skipped} skipped, in ${seconds.toFixed(0)} s`;
  }
}
